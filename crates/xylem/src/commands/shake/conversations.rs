//! The real conversations: connections that last and carry as much as they can, and short visits one after the other. Every
//! byte comes back from the server and is compared; a digest of all of it goes into the report.

use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use xylem_host::net::{TcpListener, TcpStream};
use xylem_host::stack::Stack;
use xylem_sim::content::Content;

/// Bytes that are underway at once on a connection that lasts.
const PIECE: usize = 64 << 10;
/// Bytes of a visit.
const VISIT: usize = 1000;

/// What came of some conversations.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Conversations that ended in order.
    pub ended: u64,
    /// Bytes that came back as they were sent.
    pub bytes: u64,
    /// What went wrong, in words; at most [`FAILURES_MAX`].
    pub failures: Vec<String>,
    /// The digest of what came back on a connection that lasted, and of what was sent.
    pub digests: Option<(String, String)>,
}

/// So many failures are told in words.
pub const FAILURES_MAX: usize = 20;

/// How long a client may say nothing before the server asks whether it is there.
const SILENT_MAX: Duration = Duration::from_secs(1);

/// Serves whoever connects, a thread each, until the listener's stack stops.
pub fn echo(listener: &TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        thread::spawn(move || -> io::Result<()> {
            stream.set_keepalive(Some(SILENT_MAX))?;
            let mut buffer = vec![0; PIECE];
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(()),
                    count => stream.write_all(&buffer[..count])?,
                }
            }
        });
    }
}

/// A connection that sends and gets back until `stop`.
pub fn lasting(stack: &Stack, to: SocketAddr, seed: u64, stop: &AtomicBool) -> Talk {
    let mut talk = Talk::default();
    let (mut sent, mut got) = (Sha256::new(), Sha256::new());
    let result = (|| -> io::Result<()> {
        let mut stream = TcpStream::connect_on(stack, to)?;
        let (mut there, mut back) = (vec![0; PIECE], vec![0; PIECE]);
        while !stop.load(Ordering::Acquire) {
            Content(seed).fill(talk.bytes, &mut there);
            sent.update(&there);
            stream.write_all(&there)?;
            stream.read_exact(&mut back)?;
            got.update(&back);
            talk.bytes += PIECE as u64;
        }
        finish(stream)
    })();
    match result {
        Ok(()) => talk.ended = 1,
        Err(error) => talk.failures.push(format!("a connection that lasts, after {} bytes: {error}", talk.bytes)),
    }
    talk.digests = Some((hexadecimal(&got.finalize()), hexadecimal(&sent.finalize())));
    talk
}

/// Short visits until `stop`.
pub fn visits(stack: &Stack, to: SocketAddr, seed: u64, stop: &AtomicBool) -> Talk {
    let mut talk = Talk::default();
    let mut number = 0;
    while !stop.load(Ordering::Acquire) {
        number += 1;
        let result = (|| -> io::Result<()> {
            let mut stream = TcpStream::connect_on(stack, to)?;
            let (mut there, mut back) = ([0; VISIT], [0; VISIT]);
            Content(seed ^ number).fill(0, &mut there);
            stream.write_all(&there)?;
            stream.read_exact(&mut back)?;
            if there != back {
                return Err(io::Error::other("other bytes came back"));
            }
            finish(stream)
        })();
        match result {
            Ok(()) => (talk.ended, talk.bytes) = (talk.ended + 1, talk.bytes + VISIT as u64),
            Err(error) if talk.failures.len() < FAILURES_MAX => talk.failures.push(format!("visit {number}: {error}")),
            Err(_) => {}
        }
    }
    talk
}

/// Ends a connection in order: nothing more goes there, nothing more comes back.
fn finish(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0; 1])? {
        0 => Ok(()),
        _ => Err(io::Error::other("more came back than was sent")),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
