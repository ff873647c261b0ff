//! Bytes that cannot be mistaken for others, and a digest of what arrived.

use sha2::{Digest, Sha256};
use std::io::{Read, Write};

/// A stream of bytes that depends on its seed and never repeats within a test.
pub struct Content(u64);

impl Content {
    pub fn new(seed: u64) -> Content {
        Content(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next bytes.
    pub fn fill(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            chunk.copy_from_slice(&self.0.to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Writes `total` bytes in pieces of `piece`; returns their digest.
pub fn send(mut to: impl Write, seed: u64, total: usize, piece: usize) -> [u8; 32] {
    let (mut content, mut digest, mut left) = (Content::new(seed), Sha256::new(), total);
    let mut buffer = vec![0; piece];
    while left > 0 {
        let count = left.min(piece);
        content.fill(&mut buffer[..count]);
        digest.update(&buffer[..count]);
        to.write_all(&buffer[..count]).expect("the peer reads on");
        left -= count;
    }
    digest.finalize().into()
}

/// Reads to the end; returns the digest and how many bytes there were.
pub fn receive(mut from: impl Read) -> ([u8; 32], usize) {
    let (mut digest, mut total) = (Sha256::new(), 0);
    let mut buffer = vec![0; 128 << 10];
    loop {
        match from.read(&mut buffer).expect("the peer ends in order") {
            0 => return (digest.finalize().into(), total),
            count => {
                digest.update(&buffer[..count]);
                total += count;
            }
        }
    }
}
