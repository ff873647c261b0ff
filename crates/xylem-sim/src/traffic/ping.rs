//! Messages that the peer's protocol itself sends back (ICMP's echo, or any protocol that opens like it): no application
//! stands at the other end. Each carries its number and a content; what comes back is checked and counted.

use super::numbers::Numbers;
use super::{Outline, Progress, Traffic};
use crate::content::Content;
use crate::end::End;
use crate::host::Host;
use crate::sim::HostId;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use xylem_core::{Instant, Message, Part, Participants, PathId};
use xylem_graph::instance::Work;

/// The least size of a message in bytes: its number.
const NUMBER_LENGTH: usize = 8;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The host that sends.
    pub client: HostId,
    /// The node (by protocol) at which it opens.
    pub protocol: String,
    /// The peer's address.
    pub address: IpAddr,
    /// How many.
    pub count: u64,
    /// Bytes each, at least 8.
    pub size: usize,
    /// Time from one to the next.
    pub interval: Duration,
    /// When the first is sent.
    pub start: Duration,
    /// How long the last answer is waited for.
    pub patience: Duration,
    /// The seed of the content.
    pub seed: u64,
    /// How many must come back.
    pub returned_min: u64,
}

/// See the module's text.
pub struct Ping {
    wish: Wish,
    path: Option<(PathId, Arc<End>)>,
    sent: u64,
    returned: Numbers,
    failure: Option<String>,
    done_at: Option<Instant>,
}

impl Ping {
    /// Messages that have not been sent yet.
    pub fn new(mut wish: Wish) -> Ping {
        wish.size = wish.size.max(NUMBER_LENGTH);
        Ping { wish, path: None, sent: 0, returned: Numbers::default(), failure: None, done_at: None }
    }

    fn work(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        let host = &mut hosts[self.wish.client.0];
        let mut busy = self.send(now, host)?;
        busy |= self.receive(host)?;
        let over =
            self.sent == self.wish.count && (self.returned.count() >= self.sent || now >= self.end_of_patience());
        if over {
            let returned = self.returned.count();
            if returned < self.wish.returned_min {
                return Err(format!("{returned} came back; at least {} had to", self.wish.returned_min));
            }
            self.finish(now, host);
        }
        Ok(busy || over)
    }

    fn send(&mut self, now: Instant, host: &mut Host) -> Result<bool, String> {
        if self.sent == self.wish.count || now < self.next_send() {
            return Ok(false);
        }
        let path = match &self.path {
            Some((path, _)) => *path,
            None => self.open(host)?,
        };
        let mut bytes = vec![0; self.wish.size];
        Content(self.wish.seed ^ self.sent).fill(0, &mut bytes);
        bytes[..NUMBER_LENGTH].copy_from_slice(&self.sent.to_be_bytes());
        let mut message = Message::from_bytes(&bytes);
        // Sequence numbers come round after 2^16; the number in the content does not.
        message.attributes.activity = self.sent as u32 & 0xffff;
        self.sent += 1;
        host.ask(|instance, port, shepherd| instance.request(port, shepherd, path, Work::Push(message)));
        Ok(true)
    }

    fn open(&mut self, host: &mut Host) -> Result<PathId, String> {
        let protocol = &self.wish.protocol;
        let node = host.instance.node_of_kind(protocol);
        let node = node.ok_or_else(|| format!("{} has no protocol {protocol}", host.name))?;
        let participants = Participants::new([], [Part::Host(self.wish.address)]);
        let end = End::new();
        let anchor = end.clone();
        let opened = host.ask(|instance, port, shepherd| instance.open(port, shepherd, node, participants, anchor));
        let path = opened.map_err(|error| error.to_string())?;
        self.path = Some((path, end));
        Ok(path)
    }

    fn receive(&mut self, host: &mut Host) -> Result<bool, String> {
        let Some((path, end)) = &self.path else { return Ok(false) };
        let arrived = std::mem::take(&mut end.state().arrived);
        let mut credit = 0;
        for message in &arrived {
            let bytes = message.to_vec();
            credit += bytes.len();
            let number = bytes.first_chunk().map(|number| u64::from_be_bytes(*number));
            let number = number.filter(|number| *number < self.sent).ok_or("an answer has no number that was sent")?;
            let content = Content(self.wish.seed ^ number);
            let right = bytes.len() == self.wish.size && content.differs(8, &bytes[NUMBER_LENGTH..]).is_none();
            if !right || message.attributes.activity != number as u32 & 0xffff {
                return Err(format!("message {number} came back changed"));
            }
            self.returned.add(number);
        }
        drop(arrived);
        if credit > 0 {
            let path = *path;
            host.ask(|instance, port, shepherd| instance.request(port, shepherd, path, Work::Credit(credit)));
        }
        Ok(credit > 0)
    }

    fn finish(&mut self, now: Instant, host: &mut Host) {
        self.done_at = Some(now);
        if let Some((path, _)) = self.path {
            host.ask(|instance, port, shepherd| instance.request(port, shepherd, path, Work::Close));
        }
    }

    fn next_send(&self) -> Instant {
        Instant::ZERO + self.wish.start + self.wish.interval * u32::try_from(self.sent).unwrap_or(u32::MAX)
    }

    fn end_of_patience(&self) -> Instant {
        self.next_send() + self.wish.patience
    }
}

impl Traffic for Ping {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        match self.work(now, hosts) {
            Ok(busy) => busy,
            Err(failure) => {
                self.failure = Some(failure);
                self.finish(now, &mut hosts[self.wish.client.0]);
                true
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        Some(if self.sent < self.wish.count { self.next_send() } else { self.end_of_patience() })
    }

    fn progress(&self) -> Progress {
        match (&self.failure, self.done_at) {
            (Some(_), _) => Progress::Wrong,
            (None, Some(_)) => Progress::Right,
            (None, None) => Progress::Going,
        }
    }

    fn outline(&self) -> Outline {
        let Wish { count, size, address, protocol, .. } = &self.wish;
        Outline {
            what: format!("{count} {protocol} echoes of {size} bytes to {address}"),
            how: self.failure.clone().unwrap_or_else(|| self.returned.said(self.sent)),
            failed: false,
            bytes: self.returned.count() * *size as u64,
            done_at: self.done_at,
        }
    }
}
