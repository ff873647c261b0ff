//! The server of iperf3's measurements over TCP, in both directions and with several streams, so that the program many
//! people measure with has somebody to talk to. Its protocol is written down nowhere but in its source
//! (https://github.com/esnet/iperf, iperf_api.h): one connection in which states are bytes and facts are JSON behind a
//! length, and streams that carry bytes; what belongs together begins with the same cookie.

use super::{Conversation, Progress, SCRATCH_BYTES, Service, TURN_BYTES, without_waiting};
use crate::net::Stream;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of a cookie: 36 letters and digits and a zero.
const COOKIE_BYTES: usize = 37;
/// The most bytes of JSON a client may send.
const JSON_BYTES_MAX: usize = 64 << 10;
/// Measurements at a time.
const MEASUREMENTS_MAX: usize = 64;
/// Streams of one measurement: what the program allows.
const STREAMS_MAX: u64 = 128;

// The states, as bytes on the wire.
const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
const IPERF_DONE: u8 = 16;
/// -1: this server measures for too many already.
const ACCESS_DENIED: u8 = 255;
/// -2: this server cannot do what is asked for; two error numbers follow.
const SERVER_ERROR: u8 = 254;
/// The program's number for "parameters that the server does not support" (IEUNIMP).
const NOT_IMPLEMENTED: u32 = 13;

/// The iperf3 service.
#[derive(Clone, Default)]
pub struct Iperf3 {
    running: Arc<Mutex<HashMap<[u8; COOKIE_BYTES], Arc<Measurement>>>>,
}

/// What the connections of one measurement share.
#[derive(Default)]
struct Measurement {
    /// The server sends.
    reverse: AtomicBool,
    ended: AtomicBool,
    /// The streams that have begun.
    streams: AtomicU64,
    /// Bytes received, or sent if it is reverse, by all streams together.
    bytes: AtomicU64,
}

impl Service for Iperf3 {
    fn name(&self) -> &str {
        "iperf3"
    }

    fn converse(&self, _peer: SocketAddr) -> Box<dyn Conversation> {
        let (inbox, outbox) = (Vec::new(), Vec::new());
        Box::new(Measuring { service: self.clone(), stage: Stage::Cookie, inbox, outbox })
    }
}

/// One connection: of facts, or of bytes.
struct Measuring {
    service: Iperf3,
    stage: Stage,
    /// Received and not understood yet.
    inbox: Vec<u8>,
    /// To be sent.
    outbox: Vec<u8>,
}

enum Stage {
    /// Nothing is known yet.
    Cookie,
    /// The client says what it wants.
    Parameters(Facts),
    /// Streams carry bytes.
    Running(Facts),
    /// The client says what it has counted.
    Results(Facts),
    /// The client thanks.
    Thanks,
    /// This connection is one of the streams.
    Carrying(Arc<Measurement>),
    /// What is in the outbox, and no more.
    Refusing,
}

/// The measurement, and its place in the table for as long as the connection of facts lasts.
struct Facts {
    service: Iperf3,
    cookie: [u8; COOKIE_BYTES],
    measurement: Arc<Measurement>,
}

impl Drop for Facts {
    fn drop(&mut self) {
        self.measurement.ended.store(true, Ordering::Relaxed);
        self.service.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.cookie);
    }
}

impl Conversation for Measuring {
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
        loop {
            if let Stage::Carrying(measurement) = &self.stage {
                return carry(measurement, stream, scratch);
            }
            while !self.outbox.is_empty() {
                match without_waiting(|| stream.write(&self.outbox))? {
                    None => return Ok(Progress::Waiting),
                    Some(0) => return Err(ErrorKind::WriteZero.into()),
                    Some(count) => drop(self.outbox.drain(..count)),
                }
            }
            if matches!(self.stage, Stage::Refusing) {
                return Ok(Progress::Over);
            }
            // A cookie is read alone: what follows it may be the bytes of a stream.
            let wanted = match self.stage {
                Stage::Cookie => COOKIE_BYTES - self.inbox.len(),
                _ => JSON_BYTES_MAX.min(scratch.len()),
            };
            match without_waiting(|| stream.read(&mut scratch[..wanted]))? {
                None => return Ok(Progress::Waiting),
                Some(0) => return Ok(Progress::Over),
                Some(count) => self.inbox.extend_from_slice(&scratch[..count]),
            }
            while self.understand()? {}
            if matches!(&self.stage, Stage::Thanks) && self.inbox.first() == Some(&IPERF_DONE) {
                return Ok(Progress::Over);
            }
        }
    }
}

impl Measuring {
    /// Acts on the front of the inbox; true if it was enough to act on.
    fn understand(&mut self) -> io::Result<bool> {
        match std::mem::replace(&mut self.stage, Stage::Refusing) {
            Stage::Cookie => {
                let Ok(cookie) = self.inbox[..].try_into() else {
                    self.stage = Stage::Cookie;
                    return Ok(false);
                };
                self.inbox.clear();
                self.begin(cookie);
                Ok(false)
            }
            Stage::Parameters(facts) => match self.take_json()? {
                None => Ok(self.stays(Stage::Parameters(facts))),
                Some(wishes) => {
                    self.hear(facts, &wishes);
                    Ok(true)
                }
            },
            Stage::Running(facts) => {
                let Some(state) = self.take_byte() else { return Ok(self.stays(Stage::Running(facts))) };
                if state != TEST_END {
                    // The client was interrupted, or knows states that this server does not.
                    return Err(ErrorKind::ConnectionAborted.into());
                }
                facts.measurement.ended.store(true, Ordering::Relaxed);
                self.outbox.push(EXCHANGE_RESULTS);
                self.stage = Stage::Results(facts);
                Ok(true)
            }
            Stage::Results(facts) => match self.take_json()? {
                None => Ok(self.stays(Stage::Results(facts))),
                Some(theirs) => {
                    self.put_json(&results(&facts.measurement, &theirs));
                    self.outbox.push(DISPLAY_RESULTS);
                    self.stage = Stage::Thanks;
                    Ok(false)
                }
            },
            stage @ (Stage::Thanks | Stage::Carrying(_) | Stage::Refusing) => Ok(self.stays(stage)),
        }
    }

    /// Nothing to act on: false.
    fn stays(&mut self, stage: Stage) -> bool {
        self.stage = stage;
        false
    }

    /// The first connection with a cookie carries the facts, later ones are its streams.
    fn begin(&mut self, cookie: [u8; COOKIE_BYTES]) {
        let mut running = self.service.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(measurement) = running.get(&cookie) {
            let before = measurement.streams.fetch_add(1, Ordering::Relaxed);
            if before < STREAMS_MAX {
                self.stage = Stage::Carrying(Arc::clone(measurement));
            }
            return;
        }
        if running.len() >= MEASUREMENTS_MAX {
            self.outbox.push(ACCESS_DENIED);
            return;
        }
        let measurement = Arc::<Measurement>::default();
        running.insert(cookie, Arc::clone(&measurement));
        drop(running);
        self.outbox.push(PARAM_EXCHANGE);
        self.stage = Stage::Parameters(Facts { service: self.service.clone(), cookie, measurement });
    }

    /// The client has said what it wants.
    fn hear(&mut self, facts: Facts, wishes: &Value) {
        let is_set = |name: &str| wishes[name].as_bool().unwrap_or(false) || wishes[name].as_u64().unwrap_or(0) > 0;
        if !is_set("tcp") || is_set("bidirectional") || wishes["parallel"].as_u64().unwrap_or(1) > STREAMS_MAX {
            self.outbox.push(SERVER_ERROR);
            self.outbox.extend_from_slice(&NOT_IMPLEMENTED.to_be_bytes());
            self.outbox.extend_from_slice(&0u32.to_be_bytes());
            return;
        }
        facts.measurement.reverse.store(is_set("reverse"), Ordering::Relaxed);
        // The client does one thing after the other, so it need not be waited for in between.
        self.outbox.extend_from_slice(&[CREATE_STREAMS, TEST_START, TEST_RUNNING]);
        self.stage = Stage::Running(facts);
    }

    fn take_byte(&mut self) -> Option<u8> {
        let first = *self.inbox.first()?;
        self.inbox.remove(0);
        Some(first)
    }

    /// JSON behind its length in four bytes, if it is all there.
    ///
    /// # Errors
    /// It is too long, or no JSON.
    fn take_json(&mut self) -> io::Result<Option<Value>> {
        let Some((length, rest)) = self.inbox.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > JSON_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let Some(text) = rest.get(..length) else { return Ok(None) };
        let value = serde_json::from_slice(text)?;
        self.inbox.drain(..4 + length);
        Ok(Some(value))
    }

    fn put_json(&mut self, value: &Value) {
        let text = value.to_string();
        // A few hundred bytes for each of at most 128 streams.
        self.outbox.extend_from_slice(&(text.len() as u32).to_be_bytes());
        self.outbox.extend_from_slice(text.as_bytes());
    }
}

/// One of the streams goes on.
fn carry(measurement: &Measurement, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
    let reverse = measurement.reverse.load(Ordering::Relaxed);
    let mut moved = 0;
    while moved < TURN_BYTES {
        if reverse && measurement.ended.load(Ordering::Relaxed) {
            return Ok(Progress::Over);
        }
        let step = if reverse {
            without_waiting(|| stream.write(&scratch[..SCRATCH_BYTES]))?
        } else {
            without_waiting(|| stream.read(scratch))?
        };
        match step {
            None => return Ok(Progress::Waiting),
            Some(0) => return Ok(Progress::Over),
            Some(count) => {
                measurement.bytes.fetch_add(count as u64, Ordering::Relaxed);
                moved += count;
            }
        }
    }
    Ok(Progress::Again)
}

/// What this server counted, in the shape the client sent: the bytes are divided among its streams, since connections are
/// not told apart by what they carry.
fn results(measurement: &Measurement, theirs: &Value) -> Value {
    let bytes = measurement.bytes.load(Ordering::Relaxed);
    let streams = theirs["streams"].as_array().map_or(&[][..], |streams| streams);
    let share = bytes / (streams.len() as u64).max(1);
    let stream = |theirs: &Value| {
        json!({
            "id": theirs["id"], "bytes": share, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0,
            "start_time": theirs["start_time"], "end_time": theirs["end_time"],
        })
    };
    json!({
        "cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0, "sender_has_retransmits": -1,
        "streams": streams.iter().take(STREAMS_MAX as usize).map(stream).collect::<Vec<_>>(),
    })
}
