//! The other small services of the early Internet: discard (RFC 863) reads and forgets, daytime (RFC 867) says the time
//! in one line, chargen (RFC 864) sends lines of characters for as long as somebody reads them.

use super::{Conversation, Progress, Service, TURN_BYTES, without_waiting};
use crate::http::date::HttpDate;
use crate::net::Stream;
use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

/// The discard service (RFC 863).
#[derive(Clone, Copy, Debug, Default)]
pub struct Discard;

impl Service for Discard {
    fn name(&self) -> &str {
        "discard"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        Box::new(Discarding)
    }
}

struct Discarding;

impl Conversation for Discarding {
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
        let mut moved = 0;
        while moved < TURN_BYTES {
            match without_waiting(|| stream.read(scratch))? {
                None => return Ok(Progress::Waiting),
                Some(0) => return Ok(Progress::Over),
                Some(count) => moved += count,
            }
        }
        Ok(Progress::Again)
    }
}

/// The daytime service (RFC 867): one line, then the connection is closed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Daytime;

impl Service for Daytime {
    fn name(&self) -> &str {
        "daytime"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        Box::new(Telling { line: format!("{}\r\n", HttpDate(SystemTime::now())).into_bytes(), sent: 0 })
    }
}

struct Telling {
    line: Vec<u8>,
    sent: usize,
}

impl Conversation for Telling {
    fn advance(&mut self, stream: &mut dyn Stream, _scratch: &mut [u8]) -> io::Result<Progress> {
        while self.sent < self.line.len() {
            match without_waiting(|| stream.write(&self.line[self.sent..]))? {
                None => return Ok(Progress::Waiting),
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(count) => self.sent += count,
            }
        }
        Ok(Progress::Over)
    }
}

/// The character generator (RFC 864): lines of 72 of the 95 printable characters, each line one character further on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chargen;

impl Service for Chargen {
    fn name(&self) -> &str {
        "chargen"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        Box::new(Generating { at: 0 })
    }
}

/// The printable characters of ASCII, the space among them.
const CHARACTERS: usize = 95;
/// The characters of a line.
const LINE_CHARACTERS: usize = 72;
/// The bytes of a line, its end counted.
const LINE_BYTES: usize = LINE_CHARACTERS + 2;
/// After this many bytes the pattern begins again.
const PATTERN_BYTES: usize = LINE_BYTES * CHARACTERS;

/// The byte at `offset` in the stream of the character generator.
fn generated(offset: usize) -> u8 {
    let (line, column) = (offset / LINE_BYTES, offset % LINE_BYTES);
    match column {
        LINE_CHARACTERS => b'\r',
        column if column > LINE_CHARACTERS => b'\n',
        // At most 32 + 94, which is a byte.
        column => b' ' + ((line + column) % CHARACTERS) as u8,
    }
}

struct Generating {
    /// Where in the pattern the next byte stands.
    at: usize,
}

impl Conversation for Generating {
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
        // One pattern from where this client stands is written again and again.
        let pattern = &mut scratch[..PATTERN_BYTES];
        for (offset, byte) in pattern.iter_mut().enumerate() {
            *byte = generated((self.at + offset) % PATTERN_BYTES);
        }
        let (mut moved, mut sent) = (0, 0);
        while moved < TURN_BYTES {
            match without_waiting(|| stream.write(&pattern[sent..]))? {
                None => {
                    self.at = (self.at + sent) % PATTERN_BYTES;
                    return Ok(Progress::Waiting);
                }
                Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                Some(count) => (moved, sent) = (moved + count, (sent + count) % PATTERN_BYTES),
            }
        }
        self.at = (self.at + sent) % PATTERN_BYTES;
        Ok(Progress::Again)
    }
}

const _: () = assert!(PATTERN_BYTES <= super::SCRATCH_BYTES, "the pattern must fit the shared buffer");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generated_lines_are_those_of_rfc_864() {
        let text: Vec<u8> = (0..PATTERN_BYTES).map(generated).collect();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 95);
        assert!(lines.iter().all(|line| line.len() == 74 && line.ends_with(b"\r\n")));
        assert!(lines[0].starts_with(b" !\"#$%") && lines[1].starts_with(b"!\"#$%&"));
        assert!(text.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\r' | b'\n')));
        // Line 23 ends with the last printable character, and the next line wraps to the first.
        assert_eq!((lines[23][71], lines[24][71]), (b'~', b' '));
    }
}
