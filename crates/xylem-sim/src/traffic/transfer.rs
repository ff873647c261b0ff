//! A transfer over a stream: so many bytes each way, every one of them checked, then an orderly close.

use super::{Outline, Progress, Traffic};
use crate::content::Content;
use crate::end::{End, Listener};
use crate::host::Host;
use crate::sim::HostId;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use xylem_core::{Control, EnableWish, Event, Instant, Message, Part, Participants, PathId, Setting};
use xylem_graph::instance::{Listening, Work};
use xylem_wire::Port;

/// The most bytes one push carries.
const PUSH_MAX: usize = 16 * 1024;

/// Who sends how much to whom.
pub struct Transfer {
    wish: Wish,
    listener: Arc<Listener>,
    listening: Option<Listening>,
    client: Option<Side>,
    server: Option<Side>,
    failure: Option<String>,
    done_at: Option<Instant>,
}

/// What a transfer is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The host that opens.
    pub client: HostId,
    /// The host that is enabled.
    pub server: HostId,
    /// The node (by protocol) at which both do.
    pub protocol: String,
    /// The server's address.
    pub address: IpAddr,
    /// The server's port.
    pub port: Port,
    /// Bytes from client to server.
    pub there: u64,
    /// Bytes from server to client.
    pub back: u64,
    /// When the client opens.
    pub start: Duration,
    /// The seed of the content.
    pub seed: u64,
    /// A failure of the connection is an acceptable end (the peer or the link dies), as long as every byte that
    /// arrived was right.
    pub may_fail: bool,
}

/// One end of the stream at work.
struct Side {
    host: HostId,
    path: PathId,
    end: Arc<End>,
    send: Flow,
    receive: Flow,
    finished: bool,
    closed: bool,
}

/// One direction.
struct Flow {
    content: Content,
    done: u64,
    total: u64,
}

impl Transfer {
    /// A transfer that has not begun.
    pub fn new(wish: Wish) -> Transfer {
        Transfer {
            wish,
            listener: Listener::new(),
            listening: None,
            client: None,
            server: None,
            failure: None,
            done_at: None,
        }
    }

    fn flows(&self) -> (Flow, Flow) {
        let there = Flow { content: Content(self.wish.seed), done: 0, total: self.wish.there };
        let back = Flow { content: Content(!self.wish.seed), done: 0, total: self.wish.back };
        (there, back)
    }

    fn begin(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        let mut busy = false;
        if self.listening.is_none() {
            let server = &mut hosts[self.wish.server.0];
            let node = server.instance.node_of_kind(&self.wish.protocol).ok_or("the server has no such protocol")?;
            let local = [Part::Port(self.wish.port)];
            let participants = Participants::new(local, []);
            let wish = EnableWish { participants, wild: false, backlog: 16, shared: false };
            let listening = server.instance.enable(node, wish, self.listener.clone()).map_err(|it| it.to_string())?;
            self.listening = Some(listening);
            busy = true;
        }
        if self.client.is_none() && now >= Instant::ZERO + self.wish.start {
            let client = &mut hosts[self.wish.client.0];
            let node = client.instance.node_of_kind(&self.wish.protocol).ok_or("the client has no such protocol")?;
            let participants = Participants::internet((None, None), (self.wish.address, self.wish.port));
            let end = End::new();
            let anchor = end.clone();
            let opened =
                client.ask(|instance, port, shepherd| instance.open(port, shepherd, node, participants, anchor));
            let path = opened.map_err(|error| error.to_string())?;
            let (send, receive) = self.flows();
            self.client = Some(Side::new(self.wish.client, path, end, send, receive));
            busy = true;
        }
        if self.server.is_none()
            && let Some(accepted) = self.listener.accept()
        {
            let (receive, send) = self.flows();
            self.server = Some(Side::new(self.wish.server, accepted.path, accepted.end, send, receive));
            busy = true;
        }
        Ok(busy)
    }

    fn work(&mut self, now: Instant, hosts: &mut [Host]) -> Result<bool, String> {
        let mut busy = self.begin(now, hosts)?;
        for side in [&mut self.client, &mut self.server].into_iter().flatten() {
            busy |= side.step(&mut hosts[side.host.0])?;
        }
        if let (Some(client), Some(server)) = (&self.client, &self.server)
            && client.closed
            && server.closed
            && client.end.state().gone
            && server.end.state().gone
        {
            self.finish(now, hosts);
            busy = true;
        }
        Ok(busy)
    }

    fn finish(&mut self, now: Instant, hosts: &mut [Host]) {
        self.done_at = Some(now);
        if let Some(listening) = self.listening.take() {
            hosts[self.wish.server.0].instance.disable(listening.id);
        }
    }
}

impl Traffic for Transfer {
    fn step(&mut self, now: Instant, hosts: &mut [Host]) -> bool {
        match self.work(now, hosts) {
            Ok(busy) => busy,
            Err(failure) => {
                self.failure = Some(failure);
                // Both ends let go, so that nothing is left behind.
                for side in [&mut self.client, &mut self.server].into_iter().flatten() {
                    side.abandon(&mut hosts[side.host.0]);
                }
                self.finish(now, hosts);
                true
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        self.client.is_none().then(|| Instant::ZERO + self.wish.start)
    }

    fn progress(&self) -> Progress {
        match (&self.failure, self.done_at) {
            (Some(failure), _) if self.wish.may_fail && failure.starts_with(ENDED) => Progress::Right,
            (Some(_), _) => Progress::Wrong,
            (None, Some(_)) => Progress::Right,
            (None, None) => Progress::Going,
        }
    }

    fn outline(&self) -> Outline {
        let Wish { there, back, address, port, protocol, .. } = &self.wish;
        let received = |side: &Option<Side>| side.as_ref().map_or(0, |side| side.receive.done);
        let bytes = received(&self.client) + received(&self.server);
        let how = match &self.failure {
            Some(failure) => failure.clone(),
            None if self.done_at.is_some() => "every byte right, closed in order".to_owned(),
            None => format!("{bytes} of {} bytes arrived", there + back),
        };
        Outline {
            what: format!("{protocol} transfer to {address}:{port}, {there} bytes there, {back} back"),
            how,
            failed: self.failure.as_ref().is_some_and(|failure| failure.starts_with(ENDED)),
            bytes,
            done_at: self.done_at,
        }
    }
}

/// How the report of a connection's failure begins.
const ENDED: &str = "the connection ended";

impl Side {
    fn new(host: HostId, path: PathId, end: Arc<End>, send: Flow, receive: Flow) -> Side {
        Side { host, path, end, send, receive, finished: false, closed: false }
    }

    fn step(&mut self, host: &mut Host) -> Result<bool, String> {
        let mut busy = self.read(host)?;
        if let Some(event) = self.end.state().failure()
            && !self.closed
        {
            return Err(format!("{ENDED}: {event:?} after {} bytes in and {} out", self.receive.done, self.send.done));
        }
        let (opened, over) = {
            let state = self.end.state();
            (state.saw(Event::Opened), state.saw(Event::PeerClosed))
        };
        if opened {
            busy |= self.write(host);
        }
        if over && self.receive.done < self.receive.total {
            return Err(format!("the stream ended after {} of {} bytes", self.receive.done, self.receive.total));
        }
        if over && self.finished && !self.closed {
            self.closed = true;
            self.request(host, Work::Close);
            busy = true;
        }
        Ok(busy)
    }

    fn read(&mut self, host: &mut Host) -> Result<bool, String> {
        let arrived = std::mem::take(&mut self.end.state().arrived);
        let mut credit = 0;
        for message in &arrived {
            for piece in message.slices() {
                if let Some(at) = self.receive.content.differs(self.receive.done, piece) {
                    return Err(format!("byte {at} is wrong"));
                }
                self.receive.done += piece.len() as u64;
                credit += piece.len();
            }
        }
        if self.receive.done > self.receive.total {
            return Err(format!("{} bytes arrived of {}", self.receive.done, self.receive.total));
        }
        if credit > 0 {
            drop(arrived);
            self.request(host, Work::Credit(credit));
        }
        Ok(credit > 0)
    }

    fn write(&mut self, host: &mut Host) -> bool {
        let mut busy = false;
        while self.send.done < self.send.total {
            let left = (self.send.total - self.send.done) as usize;
            let count = self.end.state().room.min(PUSH_MAX).min(left);
            if count == 0 {
                return busy;
            }
            let mut bytes = vec![0; count];
            self.send.content.fill(self.send.done, &mut bytes);
            self.send.done += count as u64;
            self.request(host, Work::Push(Message::from_bytes(&bytes)));
            busy = true;
        }
        if !self.finished {
            self.finished = true;
            self.request(host, Work::Control(Control::Set(Setting::SendClosed)));
            busy = true;
        }
        busy
    }

    fn abandon(&mut self, host: &mut Host) {
        self.request(host, Work::Control(Control::Set(Setting::Abort)));
        self.request(host, Work::Close);
    }

    fn request(&self, host: &mut Host, work: Work) {
        host.ask(|instance, port, shepherd| instance.request(port, shepherd, self.path, work));
    }
}
