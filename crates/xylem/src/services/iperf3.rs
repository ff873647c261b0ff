//! The server of iperf3's measurements over TCP, in both directions and with several streams, so that the program many
//! people measure with has somebody to talk to. Its protocol is written down nowhere but in its source
//! (<https://github.com/esnet/iperf>, iperf_api.h): one connection in which states are bytes and facts are JSON behind a
//! length, and streams that carry bytes; what belongs together begins with the same cookie.

use super::{Conversation, Progress, Service, TURN_BYTES, without_waiting};
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
            // It is IPERF_DONE, and if not it is the end all the same.
            if matches!(&self.stage, Stage::Thanks) && !self.inbox.is_empty() {
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

/// What is sent: nobody's bytes, unlike what stands in the scratch.
static NOTHING: [u8; 64 << 10] = [0; 64 << 10];

/// One of the streams goes on.
fn carry(measurement: &Measurement, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
    let reverse = measurement.reverse.load(Ordering::Relaxed);
    let mut moved = 0;
    while moved < TURN_BYTES {
        if reverse && measurement.ended.load(Ordering::Relaxed) {
            return Ok(Progress::Over);
        }
        let step = if reverse {
            without_waiting(|| stream.write(&NOTHING))?
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::Shutdown;

    /// A client that has sent `said` and reads everything.
    #[derive(Default)]
    struct Client {
        said: Vec<u8>,
        heard: Vec<u8>,
    }

    impl Read for Client {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = into.len().min(self.said.len());
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            into[..count].copy_from_slice(&self.said[..count]);
            self.said.drain(..count);
            Ok(count)
        }
    }

    impl Write for Client {
        fn write(&mut self, from: &[u8]) -> io::Result<usize> {
            self.heard.extend_from_slice(from);
            Ok(from.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Client {
        fn is_connected(&self) -> io::Result<bool> {
            Ok(true)
        }
        fn shutdown(&self, _how: Shutdown) -> io::Result<()> {
            Ok(())
        }
        fn set_nodelay(&self, _nodelay: bool) -> io::Result<()> {
            Ok(())
        }
    }

    fn cookie(letter: u8) -> Vec<u8> {
        vec![letter; COOKIE_BYTES]
    }

    fn with_length(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
    }

    /// Says something on a connection, and returns what it heard.
    fn say(conversation: &mut dyn Conversation, said: Vec<u8>) -> (io::Result<Progress>, Vec<u8>) {
        let mut client = Client { said, ..Client::default() };
        let progress = conversation.advance(&mut client, &mut vec![b'!'; super::super::SCRATCH_BYTES]);
        (progress, client.heard)
    }

    fn converse(service: &Iperf3) -> Box<dyn Conversation> {
        service.converse("10.0.0.1:1".parse().expect("an address"))
    }

    #[test]
    fn a_measurement_goes_through_its_states_and_leaves_nothing() {
        let service = Iperf3::default();
        let (mut facts, mut bytes) = (converse(&service), converse(&service));
        assert_eq!(say(&mut *facts, cookie(b'a')).1, [PARAM_EXCHANGE]);
        let states = [CREATE_STREAMS, TEST_START, TEST_RUNNING];
        assert_eq!(say(&mut *facts, with_length(r#"{"tcp":true,"parallel":1}"#)).1, states);
        let carried = [cookie(b'a'), vec![7; 1000]].concat();
        assert!(matches!(say(&mut *bytes, carried), (Ok(Progress::Waiting), heard) if heard.is_empty()));
        assert_eq!(say(&mut *facts, vec![TEST_END]).1, [EXCHANGE_RESULTS]);
        let (progress, heard) = say(&mut *facts, with_length(r#"{"streams":[{"id":1}]}"#));
        assert_eq!((progress.expect("it goes on"), heard.last()), (Progress::Waiting, Some(&DISPLAY_RESULTS)));
        let said: Value = serde_json::from_slice(&heard[4..heard.len() - 1]).expect("JSON");
        assert_eq!((&said["streams"][0]["id"], &said["streams"][0]["bytes"]), (&json!(1), &json!(1000)));
        assert_eq!(say(&mut *facts, vec![16]).0.expect("thanks"), Progress::Over);
        drop(facts);
        assert!(service.running.lock().expect("nobody panicked").is_empty());
    }

    #[test]
    fn nobody_is_sent_what_others_said() {
        let service = Iperf3::default();
        let (mut facts, mut bytes) = (converse(&service), converse(&service));
        let _begun = say(&mut *facts, [cookie(b'a'), with_length(r#"{"tcp":true,"reverse":true}"#)].concat());
        let (progress, heard) = say(&mut *bytes, cookie(b'a'));
        assert_eq!(progress.expect("it sends"), Progress::Again);
        assert!(heard.len() >= TURN_BYTES && heard.iter().all(|byte| *byte == 0));
        drop(facts);
        assert_eq!(say(&mut *bytes, vec![]).0.expect("the measurement has ended"), Progress::Over);
    }

    #[test]
    fn what_is_not_served_is_refused_and_rubbish_ends_the_connection() {
        let service = Iperf3::default();
        for wishes in [r#"{"udp":true}"#, r#"{"tcp":true,"bidirectional":1}"#, r#"{"tcp":true,"parallel":129}"#] {
            let (progress, heard) = say(&mut *converse(&service), [cookie(b'a'), with_length(wishes)].concat());
            assert_eq!((progress.expect("it is told"), heard[1]), (Progress::Over, SERVER_ERROR), "{wishes}");
        }
        let mut random = xylem_core::Random::seeded(1);
        for seed in 0..2000 {
            let mut rubbish = vec![0; random.below(200) as usize];
            random.fill(&mut rubbish);
            // Half of them get beyond the length.
            let front = [cookie(b'a'), if seed % 2 == 0 { vec![0, 0, 0, 40] } else { vec![] }].concat();
            let mut conversation = converse(&service);
            let _whatever = say(&mut *conversation, [front, rubbish].concat());
        }
        assert!(service.running.lock().expect("nobody panicked").is_empty(), "what ended is forgotten");
        let (progress, _) = say(&mut *converse(&service), [cookie(b'a'), vec![0xff; 4]].concat());
        assert!(progress.is_err(), "more JSON than anybody needs");
        let many: Vec<_> = (0..=MEASUREMENTS_MAX as u8)
            .map(|letter| {
                let mut conversation = converse(&service);
                let heard = say(&mut *conversation, cookie(letter)).1;
                (conversation, heard)
            })
            .collect();
        assert_eq!(many.last().expect("there is one").1, [ACCESS_DENIED]);
    }
}
