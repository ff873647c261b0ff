//! Datagrams to an echo: each carries its number and a content; what comes back is checked, and how many did is counted.

use super::numbers::Numbers;
use super::{Outline, Progress, Traffic};
use crate::content::Content;
use crate::end::{End, Listener};
use crate::host::Host;
use crate::sim::HostId;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use xylem_core::{EnableWish, Instant, Message, Part, Participants, PathId};
use xylem_graph::instance::{Listening, Work};
use xylem_wire::Port;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The host that sends.
    pub client: HostId,
    /// The host that echoes.
    pub server: HostId,
    /// The node (by protocol) at which both stand.
    pub protocol: String,
    /// The server's address.
    pub address: IpAddr,
    /// The server's port.
    pub port: Port,
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
pub struct Datagrams {
    wish: Wish,
    listener: Arc<Listener>,
    listening: Option<Listening>,
    client: Option<(PathId, Arc<End>)>,
    sent: u64,
    /// The numbers of those that came back.
    returned: Numbers,
    failure: Option<String>,
    done_at: Option<Instant>,
}

impl Datagrams {
    /// Datagrams that have not been sent yet.
    pub fn new(mut wish: Wish) -> Datagrams {
        wish.size = wish.size.max(8);
        Datagrams {
            wish,
            listener: Listener::new(),
            listening: None,
            client: None,
            sent: 0,
            returned: Numbers::default(),
            failure: None,
            done_at: None,
        }
    }

    fn work(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        let mut busy = self.begin(hosts)?;
        busy |= self.echo(hosts)?;
        busy |= self.send(now, hosts)?;
        busy |= self.receive(hosts)?;
        let over =
            self.sent == self.wish.count && (self.returned.count() >= self.sent || now >= self.end_of_patience());
        if over {
            let returned = self.returned.count();
            if returned < self.wish.returned_min {
                return Err(format!("{returned} came back; at least {} had to", self.wish.returned_min));
            }
            self.finish(now, hosts);
        }
        Ok(busy || over)
    }

    fn begin(&mut self, hosts: &mut [Host]) -> Result<bool, String> {
        if self.listening.is_some() {
            return Ok(false);
        }
        let server = &mut hosts[self.wish.server.0];
        let node = server.instance.node_of_kind(&self.wish.protocol).ok_or("the server has no such protocol")?;
        let participants = Participants::new([Part::Port(self.wish.port)], []);
        let wish = EnableWish { participants, wild: true, backlog: 0, shared: false };
        let listening = server.instance.enable(node, wish, self.listener.clone()).map_err(|it| it.to_string())?;
        self.listening = Some(listening);
        Ok(true)
    }

    /// The server's side: everything goes back to whence it came.
    fn echo(&mut self, hosts: &mut [Host]) -> Result<bool, String> {
        let Some(listening) = &self.listening else { return Ok(false) };
        let mut busy = false;
        while let Some(message) = self.listener.receive() {
            let (local, remote) = message.attributes.participants.ok_or("a wild message came without participants")?;
            let participants =
                Participants::internet((Some(local.address), Some(local.port)), (remote.address, remote.port));
            let back = Message::from_bytes(&message.to_vec());
            let id = listening.id;
            hosts[self.wish.server.0]
                .ask(|instance, port, shepherd| instance.send_wild(port, shepherd, id, participants, back))
                .map_err(|error| error.to_string())?;
            busy = true;
        }
        Ok(busy)
    }

    fn send(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        if self.sent == self.wish.count || now < self.next_send() {
            return Ok(false);
        }
        let host = &mut hosts[self.wish.client.0];
        if self.client.is_none() {
            let node = host.instance.node_of_kind(&self.wish.protocol).ok_or("the client has no such protocol")?;
            let participants = Participants::internet((None, None), (self.wish.address, self.wish.port));
            let end = End::new();
            let anchor = end.clone();
            let opened = host.ask(|instance, port, shepherd| instance.open(port, shepherd, node, participants, anchor));
            self.client = Some((opened.map_err(|error| error.to_string())?, end));
        }
        let (path, _) = *self.client.as_ref().map(|(path, end)| (path, end)).as_ref().expect("opened above");
        let mut bytes = vec![0; self.wish.size];
        Content(self.wish.seed ^ self.sent).fill(0, &mut bytes);
        bytes[..8].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        let push = Work::Push(Message::from_bytes(&bytes));
        host.ask(|instance, port, shepherd| instance.request(port, shepherd, *path, push));
        Ok(true)
    }

    fn receive(&mut self, hosts: &mut [Host]) -> Result<bool, String> {
        let Some((path, end)) = &self.client else { return Ok(false) };
        let arrived = std::mem::take(&mut end.state().arrived);
        for message in &arrived {
            let bytes = message.to_vec();
            let number = bytes.first_chunk().map(|number| u64::from_be_bytes(*number));
            let number = number.filter(|number| *number < self.sent).ok_or("an answer has no number that was sent")?;
            if bytes.len() != self.wish.size || Content(self.wish.seed ^ number).differs(8, &bytes[8..]).is_some() {
                return Err(format!("datagram {number} came back changed"));
            }
            self.returned.add(number);
        }
        let (busy, path) = (!arrived.is_empty(), *path);
        drop(arrived);
        if busy {
            let host = &mut hosts[self.wish.client.0];
            host.ask(|instance, port, shepherd| instance.request(port, shepherd, path, Work::Credit(self.wish.size)));
        }
        Ok(busy)
    }

    fn finish(&mut self, now: Instant, hosts: &mut [Host]) {
        self.done_at = Some(now);
        if let Some(listening) = self.listening.take() {
            hosts[self.wish.server.0].instance.disable(listening.id);
        }
        if let Some((path, _)) = self.client {
            let host = &mut hosts[self.wish.client.0];
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

impl Traffic for Datagrams {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        match self.work(now, hosts) {
            Ok(busy) => busy,
            Err(failure) => {
                self.failure = Some(failure);
                self.finish(now, hosts);
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
        let Wish { count, size, address, port, protocol, .. } = &self.wish;
        let returned = self.returned.said(self.sent);
        Outline {
            what: format!("{count} {protocol} datagrams of {size} bytes to {address}:{port}"),
            how: self.failure.clone().unwrap_or(returned),
            failed: false,
            bytes: self.returned.count() * *size as u64,
            done_at: self.done_at,
        }
    }
}
