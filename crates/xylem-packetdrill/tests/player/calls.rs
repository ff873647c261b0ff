//! System calls as scripts write them, in the driver's words; and what a call must have brought besides its result.

use super::driver::{Outcome, hex};
use super::packet::Ends;
use super::script::Call;
use super::words::{ERRORS, Value};
use std::net::Ipv4Addr;

/// A call for the driver, and the ints that its rooms must hold afterwards.
pub struct Prepared {
    pub words: String,
    expected: Vec<(usize, i64)>,
    /// Entries of poll(2) and what is to be found there.
    found: Vec<i64>,
}

/// `sockaddr_in`.
fn address(host: Ipv4Addr, port: u16) -> String {
    let family = (libc::AF_INET as u16).to_ne_bytes();
    hex(&[&family[..], &port.to_be_bytes(), &host.octets(), &[0; 8]].concat())
}

fn ints(values: &[i64]) -> String {
    let bytes: Vec<u8> = values.iter().flat_map(|value| (*value as i32).to_ne_bytes()).collect();
    format!("x:{}", hex(&bytes))
}

/// The first int of a list.
fn only(value: &Value) -> Result<i64, String> {
    match value {
        Value::List(values) if values.len() == 1 => values[0].number(),
        other => Err(format!("expected a number in brackets, got {other:?}")),
    }
}

impl Prepared {
    pub fn new(call: &Call, ends: &Ends) -> Result<Prepared, String> {
        let a = &call.arguments;
        let number = |index: usize| a.get(index).ok_or(format!("{}: too few arguments", call.name))?.number();
        let mut expected = Vec::new();
        let mut found = Vec::new();
        let name = call.name.as_str();
        let words = match name {
            "socket" => {
                let domain = if a[0] == Value::Usual { i64::from(libc::AF_INET) } else { number(0)? };
                format!("{domain} {} {}", number(1)?, number(2)?)
            }
            "bind" => format!("{} x:{} 16", number(0)?, address(Ipv4Addr::UNSPECIFIED, ends.local.1)),
            "connect" => format!("{} x:{} 16", number(0)?, address(ends.remote.0, ends.remote.1)),
            "accept" => format!("{} o:16 l:16", number(0)?),
            "listen" | "shutdown" => format!("{} {}", number(0)?, number(1)?),
            "close" | "epoll_create" => number(0)?.to_string(),
            "read" => format!("{} o:{} {}", number(0)?, number(2)?, number(2)?),
            "write" => format!("{} z:{} {}", number(0)?, number(2)?, number(2)?),
            "recv" => format!("{} o:{} {} {}", number(0)?, number(2)?, number(2)?, number(3)?),
            "send" => format!("{} z:{} {} {}", number(0)?, number(2)?, number(2)?, number(3)?),
            "sendto" => {
                let to = address(ends.remote.0, ends.remote.1);
                format!("{} z:{} {} {} x:{to} 16", number(0)?, number(2)?, number(2)?, number(3)?)
            }
            "readv" | "writev" => {
                let Value::List(pieces) = &a[1] else { return Err("expected a vector".to_owned()) };
                let lengths: Result<Vec<String>, String> =
                    pieces.iter().map(|piece| piece.member("1").map(|length| length.to_string())).collect();
                format!("{} v:{} {}", number(0)?, lengths?.join(","), number(2)?)
            }
            "fcntl" if a.len() == 2 => format!("{} {}", number(0)?, number(1)?),
            "fcntl" => format!("{} {} {}", number(0)?, number(1)?, number(2)?),
            "ioctl" => {
                expected.push((0, only(&a[2])?));
                format!("{} {} o:4", number(0)?, number(1)?)
            }
            "setsockopt" => {
                let (value, length) = match &a[3] {
                    Value::Text(text) => (format!("x:{}", hex(text.as_bytes())), text.len() as i64),
                    value @ Value::Struct(_) => (ints(&[value.member("onoff")?, value.member("linger")?]), 8),
                    value => (ints(&[only(value)?]), number(4)?),
                };
                format!("{} {} {} {value} {length}", number(0)?, number(1)?, number(2)?)
            }
            "getsockopt" => {
                expected.push((0, only(&a[3])?));
                format!("{} {} {} o:4 l:4", number(0)?, number(1)?, number(2)?)
            }
            "poll" => {
                let Value::List(entries) = &a[0] else { return Err("expected entries in brackets".to_owned()) };
                let mut bytes = Vec::new();
                for entry in entries {
                    bytes.extend((entry.member("fd")? as i32).to_ne_bytes());
                    bytes.extend((entry.member("events")? as i16).to_ne_bytes());
                    bytes.extend([0; 2]);
                    found.push(entry.member("revents")?);
                }
                format!("p:{} {} {}", hex(&bytes), number(1)?, number(2)?)
            }
            "epoll_ctl" => {
                let event = &a[3];
                let mut bytes = (event.member("events")? as u32).to_ne_bytes().to_vec();
                bytes.extend((event.member("fd")? as u64).to_ne_bytes());
                format!("{} {} {} x:{}", number(0)?, number(1)?, number(2)?, hex(&bytes))
            }
            "epoll_wait" => {
                expected.push((0, a[1].member("events")?));
                format!("{} o:{} {} {}", number(0)?, 12 * number(2)?, number(2)?, number(3)?)
            }
            other => return Err(format!("the player does not know the call `{other}`")),
        };
        Ok(Prepared { words: format!("{name} {words}"), expected, found })
    }

    /// What is wrong with the outcome.
    pub fn differs(&self, call: &Call, outcome: &Outcome) -> Option<String> {
        let named = |errno: i32| ERRORS.iter().find(|(_, number)| *number == errno).map_or("?", |(name, _)| *name);
        let errno = call.error.as_ref().and_then(|error| error.number().ok());
        let result = call.result?;
        let got = || format!("{} {} ({})", outcome.result, named(outcome.errno), outcome.errno);
        if result != outcome.result {
            return Some(format!("expected {result}, got {}", got()));
        }
        if errno.is_some_and(|errno| errno != i64::from(outcome.errno)) {
            return Some(format!("expected {:?}, got {}", call.error, got()));
        }
        if result < 0 {
            return None;
        }
        let int = |bytes: &[u8]| bytes.first_chunk().map(|bytes| i64::from(i32::from_ne_bytes(*bytes)));
        for (room, expected) in &self.expected {
            let value = outcome.rooms.get(*room).and_then(|bytes| int(bytes));
            // A call that found nothing has written nothing.
            if value != Some(*expected) && !(result == 0 && call.name == "epoll_wait") {
                return Some(format!("expected {expected} to be written, got {value:?}"));
            }
        }
        for (index, expected) in self.found.iter().enumerate() {
            let revents =
                outcome.rooms[0].get(8 * index + 6..8 * index + 8).map(|it| i16::from_ne_bytes([it[0], it[1]]));
            if revents.map(i64::from) != Some(*expected) {
                return Some(format!("entry {index}: expected revents {expected:#x}, got {revents:x?}"));
            }
        }
        None
    }
}
