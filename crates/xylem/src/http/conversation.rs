//! One connection of the file server, as a state machine: listening for a request, answering, receiving a file, or
//! leaving. It keeps no buffer while it has nothing to do, so that an idle connection costs a few hundred bytes.

use super::date::HttpDate;
use super::head::{self, Method, Request, Status, status};
use super::site::{Found, Refusal, Site, Upload};
use super::{HEAD_BYTES_MAX, UNWANTED_BYTES_MAX};
use crate::net::Stream;
use crate::services::{Conversation, Progress, SCRATCH_BYTES, TURN_BYTES, without_waiting};
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How long a peer may take over the head of one request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(30);

/// The least read from a file at once; the most is the shared buffer.
const FILE_READ_MIN: usize = 32 << 10;

const _: () = assert!(HEAD_BYTES_MAX <= FILE_READ_MIN && FILE_READ_MIN < SCRATCH_BYTES, "a head fits beside its file");

/// See the module's text.
pub(super) struct Talking {
    site: Arc<dyn Site>,
    /// What was received and not yet used: the front of a head, or the front of a body that came with one.
    received: Vec<u8>,
    /// When the first byte of the head came that is not complete yet.
    begun: Option<Instant>,
    state: State,
}

enum State {
    /// Waiting for a request.
    Listening,
    /// Sending an answer.
    Answering(Answer),
    /// Taking a file.
    Receiving(Receiving),
    /// The last answer is sent; what the peer still sends, up to a limit, is read so that it can read the answer.
    Leaving { unwanted: u64 },
}

struct Answer {
    head: Vec<u8>,
    body: Option<(Arc<File>, u64)>,
    /// How many bytes of head and body have been sent.
    sent: u64,
    /// How much to read from the file at once: what the stream took the last time.
    appetite: usize,
    then: Then,
}

/// What follows an answer.
enum Then {
    Listen,
    Receive(Receiving),
    Leave,
}

struct Receiving {
    upload: Box<dyn Upload>,
    left: u64,
    keep: bool,
}

/// What became of one step.
enum Step {
    /// The state has changed or may be stepped again.
    On,
    /// The state could go on, but has moved enough for this turn.
    Enough,
    /// The stream is not ready.
    Wait,
    /// The connection is over.
    Over,
}

impl Talking {
    pub(super) fn new(site: Arc<dyn Site>) -> Talking {
        Talking { site, received: Vec::new(), begun: None, state: State::Listening }
    }
}

impl Conversation for Talking {
    fn advance(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Progress> {
        let mut moved = 0;
        while moved < TURN_BYTES {
            let step = match &mut self.state {
                State::Listening => self.listen(stream, scratch)?,
                State::Answering(answer) => match answer.send(stream, scratch, &mut moved)? {
                    Step::On => self.answered(stream)?,
                    other => other,
                },
                State::Receiving(_) => self.receive(stream, scratch, &mut moved)?,
                State::Leaving { unwanted } => match without_waiting(|| stream.read(scratch))? {
                    None => Step::Wait,
                    Some(count) if count > 0 && count as u64 <= *unwanted => {
                        *unwanted -= count as u64;
                        Step::On
                    }
                    Some(_) => Step::Over,
                },
            };
            match step {
                Step::On | Step::Enough => {}
                Step::Wait => return Ok(Progress::Waiting),
                Step::Over => return Ok(Progress::Over),
            }
        }
        Ok(Progress::Again)
    }
}

impl Talking {
    /// Reads until a head is complete, and begins to answer it.
    fn listen(&mut self, stream: &mut dyn Stream, scratch: &mut [u8]) -> io::Result<Step> {
        // A request that came behind the one before it is here already.
        if !self.received.is_empty() {
            let received = std::mem::take(&mut self.received);
            if self.heard(&received) {
                return Ok(Step::On);
            }
            self.received = received;
        }
        let read = match without_waiting(|| stream.read(&mut scratch[..HEAD_BYTES_MAX]))? {
            None => return Ok(Step::Wait),
            Some(0) => return Ok(Step::Over),
            Some(read) => read,
        };
        if self.received.is_empty() {
            // The usual case: a request arrives whole and is never copied.
            if !self.heard(&scratch[..read]) {
                self.received.extend_from_slice(&scratch[..read]);
            }
            return Ok(Step::On);
        }
        self.received.extend_from_slice(&scratch[..read]);
        Ok(Step::On)
    }

    /// Takes a request from the front of `bytes`, keeps what is behind it, and begins to answer; false if the head is
    /// not complete, and then nothing has happened.
    fn heard(&mut self, bytes: &[u8]) -> bool {
        // Empty lines before a request are ignored (RFC 9112, section 2.2); the parser does.
        let refusal = match head::parse(bytes) {
            Ok(Some((request, length))) => {
                self.received = bytes[length..].to_vec();
                self.begun = None;
                self.state = self.begin(request);
                return true;
            }
            Err(refusal) => refusal,
            Ok(None) if bytes.len() >= HEAD_BYTES_MAX => status::FIELDS_TOO_LARGE,
            Ok(None) if self.begun.get_or_insert_with(Instant::now).elapsed() > HEAD_TIME_MAX => {
                status::REQUEST_TIMEOUT
            }
            Ok(None) => return false,
        };
        // Whatever else it sent cannot be understood either.
        self.received = Vec::new();
        self.state = State::Answering(self.refuse(refusal, false));
        true
    }

    /// The state in which a request is answered.
    fn begin(&mut self, request: Request) -> State {
        if request.method == Method::Upload {
            return self.begin_upload(request);
        }
        // A file request with a body is answered, but what follows the body is not waited for.
        let keep = request.keep && request.body_bytes.unwrap_or(0) == 0;
        match self.site.find(&request.path) {
            Ok(found) => State::Answering(Answer::file(found, request.method == Method::Get, keep)),
            Err(refusal) => State::Answering(self.refuse(status_of(&refusal), keep)),
        }
    }

    fn begin_upload(&mut self, request: Request) -> State {
        if !self.site.takes_uploads() {
            return State::Answering(self.refuse(status::METHOD_NOT_ALLOWED, false));
        }
        let Some(left) = request.body_bytes else {
            return State::Answering(self.refuse(status::LENGTH_REQUIRED, false));
        };
        let upload = match self.site.receive(&request.path, left) {
            Ok(upload) => upload,
            Err(refusal) => return State::Answering(self.refuse(status_of(&refusal), false)),
        };
        let receiving = Receiving { upload, left, keep: request.keep };
        if request.expects_continue && self.received.is_empty() && left > 0 {
            let head = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
            return State::Answering(Answer::new(head, None, Then::Receive(receiving)));
        }
        State::Receiving(receiving)
    }

    /// An answer that refuses a request in a line of text.
    fn refuse(&self, status: Status, keep: bool) -> Answer {
        let text = format!("{status}\n");
        let allow = match (status == status::METHOD_NOT_ALLOWED, self.site.takes_uploads()) {
            (true, true) => "Allow: GET, HEAD, PUT, POST\r\n",
            (true, false) => "Allow: GET, HEAD\r\n",
            (false, _) => "",
        };
        let fields = format!("Content-Type: text/plain\r\nContent-Length: {}\r\n{allow}", text.len());
        let mut head = answer_head(status, &fields, keep);
        head.extend_from_slice(text.as_bytes());
        Answer::new(head, None, if keep { Then::Listen } else { Then::Leave })
    }

    /// The answer has been sent.
    fn answered(&mut self, stream: &mut dyn Stream) -> io::Result<Step> {
        let State::Answering(answer) = std::mem::replace(&mut self.state, State::Listening) else {
            unreachable!("only an answer is answered");
        };
        match answer.then {
            Then::Listen => {}
            Then::Receive(receiving) => self.state = State::Receiving(receiving),
            Then::Leave => {
                self.received = Vec::new();
                stream.shutdown(Shutdown::Write)?;
                self.state = State::Leaving { unwanted: UNWANTED_BYTES_MAX };
            }
        }
        Ok(Step::On)
    }

    /// Takes the next bytes of a file.
    fn receive(&mut self, stream: &mut dyn Stream, scratch: &mut [u8], moved: &mut usize) -> io::Result<Step> {
        let State::Receiving(receiving) = &mut self.state else {
            unreachable!("called in this state only");
        };
        // The body's front may have come with the head; at most a few kilobytes.
        let front = self.received.len().min(usize::try_from(receiving.left).unwrap_or(usize::MAX));
        let written = if front > 0 {
            receiving.upload.append(&self.received[..front])?;
            self.received.drain(..front);
            front
        } else if receiving.left > 0 {
            let room = scratch.len().min(usize::try_from(receiving.left).unwrap_or(usize::MAX));
            match without_waiting(|| stream.read(&mut scratch[..room]))? {
                None => return Ok(Step::Wait),
                // It is incomplete: the upload leaves nothing.
                Some(0) => return Ok(Step::Over),
                Some(count) => {
                    receiving.upload.append(&scratch[..count])?;
                    count
                }
            }
        } else {
            0
        };
        receiving.left -= written as u64;
        *moved += written;
        if receiving.left == 0 {
            let State::Receiving(receiving) = std::mem::replace(&mut self.state, State::Listening) else {
                unreachable!("it was one a line ago");
            };
            self.state = State::Answering(match receiving.upload.finish() {
                Ok(()) => {
                    let head = answer_head(status::CREATED, "Content-Length: 0\r\n", receiving.keep);
                    Answer::new(head, None, if receiving.keep { Then::Listen } else { Then::Leave })
                }
                Err(_) => self.refuse(status::INTERNAL, false),
            });
        }
        Ok(Step::On)
    }
}

impl Answer {
    fn new(head: Vec<u8>, body: Option<(Arc<File>, u64)>, then: Then) -> Answer {
        Answer { head, body, sent: 0, appetite: SCRATCH_BYTES, then }
    }

    fn file(found: Found, with_body: bool, keep: bool) -> Answer {
        let mut fields = format!("Content-Type: {}\r\nContent-Length: {}\r\n", found.content_type, found.length);
        if let Some(modified) = found.modified {
            fields.push_str(&format!("Last-Modified: {}\r\n", HttpDate(modified)));
        }
        let head = answer_head(status::OK, &fields, keep);
        let body = with_body.then_some((found.file, found.length));
        Answer::new(head, body, if keep { Then::Listen } else { Then::Leave })
    }

    /// Sends what is left of head and body; the head goes out with the front of the body.
    fn send(&mut self, stream: &mut dyn Stream, scratch: &mut [u8], moved: &mut usize) -> io::Result<Step> {
        while *moved < TURN_BYTES {
            let head_sent = usize::try_from(self.sent).unwrap_or(usize::MAX).min(self.head.len());
            let head = &self.head[head_sent..];
            scratch[..head.len()].copy_from_slice(head);
            let mut filled = head.len();
            if let Some((file, length)) = &self.body {
                let offset = self.sent.saturating_sub(self.head.len() as u64);
                let left = usize::try_from(length - offset).unwrap_or(usize::MAX);
                let room = self.appetite.max(filled) - filled;
                let count = file.read_at(&mut scratch[filled..filled + room.min(left)], offset)?;
                if count == 0 && left > 0 && room > 0 {
                    // The file has become shorter: the length that was promised cannot be kept.
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                filled += count;
            }
            let mut written = 0;
            while written < filled {
                match without_waiting(|| stream.write(&scratch[written..filled]))? {
                    None => {
                        self.appetite = written.clamp(FILE_READ_MIN, SCRATCH_BYTES);
                        self.sent += written as u64;
                        return Ok(Step::Wait);
                    }
                    Some(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Some(count) => written += count,
                }
            }
            self.sent += written as u64;
            *moved += written;
            self.appetite = (2 * self.appetite).min(SCRATCH_BYTES);
            if self.sent == self.head.len() as u64 + self.body.as_ref().map_or(0, |(_, length)| *length) {
                return Ok(Step::On);
            }
        }
        // The loop of the conversation sees that its turn is over.
        Ok(Step::Enough)
    }
}

/// The head of an answer, complete: status, date, `fields`, and whether the connection goes on.
fn answer_head(status: Status, fields: &str, keep: bool) -> Vec<u8> {
    let date = HttpDate(SystemTime::now());
    let connection = if keep { "keep-alive" } else { "close" };
    format!("HTTP/1.1 {status}\r\nServer: xylem\r\nDate: {date}\r\n{fields}Connection: {connection}\r\n\r\n")
        .into_bytes()
}

fn status_of(refusal: &Refusal) -> Status {
    match refusal {
        Refusal::NotFound => status::NOT_FOUND,
        Refusal::Forbidden => status::FORBIDDEN,
        Refusal::TooLong => status::CONTENT_TOO_LARGE,
        Refusal::Broken(_) => status::INTERNAL,
    }
}
