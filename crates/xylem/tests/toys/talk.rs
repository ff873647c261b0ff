//! Applications that talk in records over a path: each sends what it was given, reads at its own pace, closes its
//! direction when it has said all, and the path when the peer has too. What came of it is judged by `judge`.

use super::end::{End, Said};
use super::pair::{Pair, pooled};
use std::sync::Arc;
use xylem_core::{Control, Event, Message, PathId, Random, Setting};
use xylem_graph::instance::Work;

/// One end of a conversation.
pub struct Talker {
    pub host: usize,
    pub path: PathId,
    pub end: Arc<End>,
    pub to_send: Vec<Vec<u8>>,
    pub sent: usize,
    pub received: Vec<Vec<u8>>,
    partial: Vec<u8>,
    /// Bytes read for which no credit was returned yet.
    owed: usize,
    pub error: Option<Event>,
    peer_closed: bool,
    send_closed: bool,
    closed: bool,
    pub gone: bool,
    random: Random,
}

impl Talker {
    pub fn new(host: usize, path: PathId, end: Arc<End>, to_send: Vec<Vec<u8>>, random: Random) -> Talker {
        Talker {
            host,
            path,
            end,
            to_send,
            sent: 0,
            received: Vec::new(),
            partial: Vec::new(),
            owed: 0,
            error: None,
            peer_closed: false,
            send_closed: false,
            closed: false,
            gone: false,
            random,
        }
    }

    /// Reads, credits, sends and closes as far as it goes. Someone who is `hurried` returns all credit.
    pub fn step(&mut self, pair: &mut Pair, hurried: bool) {
        self.hear();
        if self.gone {
            return;
        }
        if self.owed > 0 && (hurried || self.random.chance_per_million(500_000)) {
            let part = if hurried { self.owed } else { 1 + self.random.below(self.owed as u64) as usize };
            self.owed -= part;
            self.ask(pair, Work::Credit(part));
        }
        while let Some(record) = self.to_send.get(self.sent) {
            let room = self.end.room_now();
            if room < record.len().max(1) {
                break;
            }
            let Some(message) = in_buffers(pair, self.host, record) else { break };
            self.sent += 1;
            self.ask(pair, Work::Push(message));
            self.hear();
            if self.gone {
                return;
            }
        }
        if self.sent == self.to_send.len() && !self.send_closed {
            self.send_closed = true;
            self.ask(pair, Work::Control(Control::Set(Setting::SendClosed)));
        }
        if self.peer_closed && self.send_closed && !self.closed {
            self.closed = true;
            self.ask(pair, Work::Close);
        }
        self.hear();
    }

    /// Pushes one record more than the path has said it has room for. It waits its turn.
    pub fn push_regardless(&mut self, pair: &mut Pair) {
        let Some(record) = self.to_send.get(self.sent) else { return };
        if let Some(message) = in_buffers(pair, self.host, record) {
            self.sent += 1;
            self.ask(pair, Work::Push(message));
        }
    }

    /// Does not wait any longer for a peer who may be gone: nobody told, since this end only waited to read.
    pub fn lose_patience(&mut self, pair: &mut Pair) {
        if !self.gone {
            self.error = Some(Event::TimedOut);
            self.ask(pair, Work::Control(Control::Set(Setting::Abort)));
            self.hear();
        }
    }

    fn ask(&self, pair: &mut Pair, work: Work) {
        let host = &mut pair.hosts[self.host];
        host.instance.request(&host.port, &mut host.shepherd, self.path, work);
    }

    /// Takes in everything that was said.
    pub fn hear(&mut self) {
        while let Some(said) = self.end.next() {
            match said {
                Said::Message(message) => {
                    self.owed += message.len();
                    self.partial.extend(message.to_vec());
                    if message.attributes.end_of_message {
                        self.received.push(std::mem::take(&mut self.partial));
                    }
                }
                Said::Told(Control::Event(Event::PeerClosed)) => self.peer_closed = true,
                Said::Told(Control::Event(Event::Opened)) => {}
                Said::Told(Control::Event(event)) => self.error = Some(event),
                Said::Told(_) => {}
                Said::Gone => self.gone = true,
            }
        }
    }
}

/// The record in buffers of the host's pool: as many small ones as it takes.
fn in_buffers(pair: &Pair, host: usize, record: &[u8]) -> Option<Message> {
    let pool = pair.hosts[host].instance.pool();
    let mut message = Message::new(pool)?;
    for part in record.chunks(1500) {
        message.append(pooled(pool, part)?);
    }
    Some(message)
}

/// Records of random lengths and contents.
pub fn random_records(random: &mut Random, count_max: u64, length_max: u64) -> Vec<Vec<u8>> {
    let count = random.below(count_max + 1);
    let record = |_| {
        let mut record = vec![0; random.below(length_max + 1) as usize];
        random.fill(&mut record);
        record
    };
    (0..count).map(record).collect()
}

/// What the law says of a conversation: each direction carried exactly what was sent, in order, or an error was
/// reported and what arrived is the beginning of what was sent. `Ok(true)` if there was no error.
pub fn judge(one: &Talker, other: &Talker) -> Result<bool, String> {
    let clean = one.error.is_none() && other.error.is_none();
    for (sender, receiver) in [(one, other), (other, one)] {
        let complete = receiver.received.len() == sender.to_send.len() && receiver.partial.is_empty();
        if clean && !complete {
            let (got, sent) = (receiver.received.len(), sender.to_send.len());
            return Err(format!("host {} got {got} records of {sent} and nobody reported an error", receiver.host));
        }
        let mut expected = sender.to_send.iter();
        for (index, record) in receiver.received.iter().enumerate() {
            if expected.next() != Some(record) {
                return Err(format!("record {index} that host {} got is not what was sent", receiver.host));
            }
        }
        if !expected.next().unwrap_or(&Vec::new()).starts_with(&receiver.partial) {
            return Err(format!("the unfinished record that host {} got is not what was sent", receiver.host));
        }
    }
    for talker in [one, other] {
        if !talker.gone {
            return Err(format!("the path of host {} never ended", talker.host));
        }
    }
    Ok(clean)
}
