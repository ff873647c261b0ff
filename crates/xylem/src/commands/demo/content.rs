//! What is transferred: files of random bytes with their digests, in memory that no file name leads to, so that nothing
//! is left behind however the demonstration ends. The site serves them and takes uploads into such memory as well.

use crate::http::site::{Found, Refusal, Site, Upload};
use rustix::fs::{MemfdFlags, memfd_create};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use xylem_core::Random;

/// The piece of a file that is written or hashed at once.
const PIECE_BYTES: usize = 1 << 20;

/// A SHA-256 digest.
pub type Sum = [u8; 32];

/// A file in memory.
#[derive(Clone)]
pub struct Content {
    /// The file.
    pub file: Arc<File>,
    /// Its bytes.
    pub length: u64,
    /// Their digest, at the time it was made.
    pub sum: Sum,
}

impl Content {
    /// `length` random bytes from `seed`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn random(length: u64, seed: u64) -> io::Result<Content> {
        let file = File::from(memfd_create("xylem-content", MemfdFlags::CLOEXEC)?);
        let mut random = Random::seeded(seed);
        let (mut piece, mut sum, mut at) = (vec![0; PIECE_BYTES], Sha256::new(), 0);
        while at < length {
            let count = PIECE_BYTES.min(usize::try_from(length - at).unwrap_or(PIECE_BYTES));
            random.fill(&mut piece[..count]);
            sum.update(&piece[..count]);
            file.write_all_at(&piece[..count], at)?;
            at += count as u64;
        }
        Ok(Content { file: Arc::new(file), length, sum: sum.finalize().into() })
    }

    /// `length` bytes of zeros, all of them there: the first use costs no page faults.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn blank(length: u64) -> io::Result<Content> {
        let file = Arc::new(File::from(memfd_create("xylem-blank", MemfdFlags::CLOEXEC)?));
        wipe(&file, length)?;
        Ok(Content { file, length, sum: Sum::default() })
    }

    /// The name by which another process of the same user opens it, while this process lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// Overwrites `length` bytes with zeros, so that what an earlier transfer left cannot pass for a later one's.
///
/// # Errors
/// There is not enough memory.
pub fn wipe(file: &File, length: u64) -> io::Result<()> {
    let zeros = vec![0; PIECE_BYTES];
    let mut at = 0;
    while at < length {
        let count = PIECE_BYTES.min(usize::try_from(length - at).unwrap_or(PIECE_BYTES));
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
    }
    Ok(())
}

/// The digest of the first `length` bytes of a file.
///
/// # Errors
/// There are fewer.
pub fn sum_of(file: &File, length: u64) -> io::Result<Sum> {
    let (mut piece, mut sum, mut at) = (vec![0; PIECE_BYTES], Sha256::new(), 0);
    while at < length {
        let count = PIECE_BYTES.min(usize::try_from(length - at).unwrap_or(PIECE_BYTES));
        file.read_exact_at(&mut piece[..count], at)?;
        sum.update(&piece[..count]);
        at += count as u64;
    }
    Ok(sum.finalize().into())
}

/// A site whose files are in memory.
pub struct Shelf {
    files: BTreeMap<String, Content>,
    /// Where uploads go, one after the other; and how long the last complete one was.
    inbox: Arc<Mutex<Inbox>>,
}

struct Inbox {
    room: Content,
    arrived: Option<u64>,
}

impl Shelf {
    /// A site of these files, which takes uploads of up to `inbox_bytes`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(files: impl IntoIterator<Item = (String, Content)>, inbox_bytes: u64) -> io::Result<Shelf> {
        let inbox = Inbox { room: Content::blank(inbox_bytes)?, arrived: None };
        Ok(Shelf { files: files.into_iter().collect(), inbox: Arc::new(Mutex::new(inbox)) })
    }

    /// The length and the digest of the last upload that arrived whole; the next one starts from zeros.
    ///
    /// # Errors
    /// The memory cannot be read.
    pub fn take_upload(&self) -> io::Result<Option<(u64, Sum)>> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(length) = inbox.arrived.take() else { return Ok(None) };
        let sum = sum_of(&inbox.room.file, length)?;
        wipe(&inbox.room.file, inbox.room.length)?;
        Ok(Some((length, sum)))
    }
}

impl Site for Shelf {
    fn find(&self, path: &[String]) -> Result<Found, Refusal> {
        let content = self.files.get(&path.join("/")).ok_or(Refusal::NotFound)?;
        Ok(Found {
            file: Arc::clone(&content.file),
            length: content.length,
            content_type: "application/octet-stream",
            modified: None,
        })
    }

    fn takes_uploads(&self) -> bool {
        true
    }

    fn receive(&self, _path: &[String], length: u64) -> Result<Box<dyn Upload>, Refusal> {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        if length > inbox.room.length {
            return Err(Refusal::TooLong);
        }
        Ok(Box::new(Arriving { file: Arc::clone(&inbox.room.file), at: 0, inbox: Arc::clone(&self.inbox) }))
    }
}

struct Arriving {
    file: Arc<File>,
    at: u64,
    inbox: Arc<Mutex<Inbox>>,
}

impl Upload for Arriving {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).arrived = Some(self.at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_digest_of_its_bytes_and_a_changed_one_does_not() {
        let content = Content::random(2_500_000, 7).expect("a little memory");
        assert_eq!(sum_of(&content.file, content.length).expect("it is there"), content.sum);
        assert_ne!(Content::random(2_500_000, 8).expect("a little memory").sum, content.sum);
        content.file.write_all_at(&[1], 1_234_567).expect("memory");
        content.file.write_all_at(&[2], 1_234_568).expect("memory");
        assert_ne!(sum_of(&content.file, content.length).expect("it is there"), content.sum);
    }

    #[test]
    fn an_upload_is_taken_once_and_its_traces_are_wiped() {
        let shelf = Shelf::new([], 1000).expect("a little memory");
        let mut upload = shelf.receive(&[], 3).expect("it is short");
        upload.append(b"ab").expect("memory");
        upload.append(b"c").expect("memory");
        upload.finish().expect("nothing to do");
        let (length, sum) = shelf.take_upload().expect("memory").expect("it arrived");
        assert_eq!((length, sum), (3, Sha256::digest(b"abc").into()));
        assert!(shelf.take_upload().expect("memory").is_none());
        let inbox = shelf.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = [9; 3];
        inbox.room.file.read_exact_at(&mut bytes, 0).expect("memory");
        assert_eq!(bytes, [0; 3]);
        drop(inbox);
        assert!(matches!(shelf.receive(&[], 1001), Err(Refusal::TooLong)));
    }
}
