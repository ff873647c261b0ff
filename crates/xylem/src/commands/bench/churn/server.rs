//! The server of a churn: it answers each request with the same bytes and closes when the client has. The loop is the same
//! over both networks.

use super::order::BYTES;
use crate::net::{Net, Stream, Token};
use slab::Slab;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

/// Connections that may wait to be accepted, at each port.
const BACKLOG: usize = 4096;

/// How long the loop sleeps at most before it looks whether it shall end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// One connection: what has arrived of a request, or is left of a response.
struct Served<S> {
    stream: S,
    bytes: [u8; BYTES],
    filled: usize,
    /// Of a whole request, so many bytes have gone back; `None` while it is still arriving.
    sent: Option<usize>,
}

/// Serves at all of these until `ends` says so. `ready` is called when it listens.
///
/// # Errors
/// An address is not this host's, or the network is gone.
pub fn serve<N: Net>(net: &mut N, at: &[SocketAddr], ready: impl FnOnce(), ends: impl Fn() -> bool) -> io::Result<()> {
    let mut listeners = Vec::with_capacity(at.len());
    for (number, at) in at.iter().enumerate() {
        listeners.push(net.listen(*at, BACKLOG, Token(number))?);
    }
    ready();
    let mut served: Slab<Served<N::Stream>> = Slab::new();
    let mut tokens = Vec::new();
    while !ends() {
        net.wait(&mut tokens, Some(LOOK_EVERY))?;
        for token in tokens.drain(..) {
            match token.0.checked_sub(listeners.len()) {
                None => accept(net, &listeners[token.0], listeners.len(), &mut served),
                Some(key) => attend(&mut served, key),
            }
        }
    }
    Ok(())
}

fn accept<N: Net>(net: &mut N, listener: &N::Listener, base: usize, served: &mut Slab<Served<N::Stream>>) {
    loop {
        let key = served.vacant_key();
        match net.accept(listener, Token(base + key)) {
            Ok((stream, _)) => {
                served.insert(Served { stream, bytes: [0; BYTES], filled: 0, sent: None });
                // What came with the handshake is there already.
                attend(served, key);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // That one connection has gone: the client counts it.
            Err(_) => {}
        }
    }
}

/// Does what can be done for one connection; a name of one that has gone means nothing.
fn attend<S: Stream>(served: &mut Slab<Served<S>>, key: usize) {
    if served.get_mut(key).is_some_and(|it| it.go_on().is_err()) {
        served.remove(key);
    }
}

impl<S: Stream> Served<S> {
    /// Goes on as far as it can; an error when it is over, in order or not.
    fn go_on(&mut self) -> io::Result<()> {
        loop {
            let step = match self.sent {
                None => self.stream.read(&mut self.bytes[self.filled..]),
                Some(sent) => self.stream.write(&self.bytes[sent..]),
            };
            match (step, self.sent) {
                (Ok(0), _) => return Err(ErrorKind::UnexpectedEof.into()),
                (Ok(count), None) => {
                    self.filled += count;
                    self.sent = (self.filled == BYTES).then_some(0);
                }
                (Ok(count), Some(sent)) => {
                    self.sent = (sent + count < BYTES).then_some(sent + count);
                    self.filled = if self.sent.is_some() { BYTES } else { 0 };
                }
                (Err(error), _) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                (Err(error), _) => return Err(error),
            }
        }
    }
}
