//! Many small requests on many connections at once, over either network's sockets, each timed from the first byte written to
//! the last byte read. One thread that waits
//! in one place: the client costs as little as it can, since it shares the machine with
//! what it measures. Every body is compared with what was expected.

use crate::commands::interruption::Interruption;
use crate::net::{Net, Stream, Token};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The most bytes an answer's head may have.
const HEAD_BYTES_MAX: usize = 4096;

/// How long nothing may happen before the mill gives up.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// What shall be asked for.
pub struct Order<'a> {
    /// The server.
    pub to: SocketAddr,
    /// The path.
    pub path: &'a str,
    /// What every answer must contain.
    pub body: &'a [u8],
    /// How many requests in all.
    pub requests: usize,
    /// On how many connections.
    pub connections: usize,
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Milled {
    /// The time each request took, in ascending order.
    pub latencies: Vec<Duration>,
    /// The time from the first connection's beginning to the last answer.
    pub span: Duration,
    /// Answers whose status or body was not what was expected.
    pub wrong: usize,
}

impl Milled {
    /// The time within which `per_mille` of a thousand requests were answered.
    pub fn within(&self, per_mille: usize) -> Duration {
        let last = self.latencies.len().saturating_sub(1);
        let rank = (self.latencies.len() * per_mille).div_ceil(1000).saturating_sub(1);
        self.latencies.get(rank.min(last)).copied().unwrap_or_default()
    }
}

/// One connection: what is still to be written, and what came.
struct Worker<S> {
    stream: S,
    /// How much of the request has been written.
    written: usize,
    answer: Vec<u8>,
    begun: Option<Instant>,
}

/// Runs the requests.
///
/// # Errors
/// The server cannot be reached or closed a connection, nothing happened for too long, or the user has had enough.
pub fn run<N: Net>(net: &mut N, order: &Order<'_>, interruption: &Interruption) -> io::Result<Milled> {
    let request = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", order.path, order.to.ip());
    let begun = Instant::now();
    let mut workers = Vec::new();
    for number in 0..order.connections {
        let stream = net.connect(order.to, Token(number))?;
        stream.set_nodelay(true)?;
        workers.push(Worker { stream, written: 0, answer: Vec::new(), begun: None });
    }
    let mut mill = Mill { order, request: request.into_bytes(), left: order.requests, milled: Milled::default() };
    let (mut ready, mut heard) = (Vec::new(), Instant::now());
    while mill.milled.latencies.len() < order.requests {
        net.wait(&mut ready, Some(Duration::from_millis(100)))?;
        interruption.check()?;
        if !ready.is_empty() {
            heard = Instant::now();
        } else if heard.elapsed() > SILENCE_MAX {
            return Err(io::Error::new(ErrorKind::TimedOut, format!("no answer for {} s", SILENCE_MAX.as_secs())));
        }
        for token in ready.drain(..) {
            mill.advance(&mut workers[token.0])?;
        }
    }
    mill.milled.span = begun.elapsed();
    mill.milled.latencies.sort_unstable();
    Ok(mill.milled)
}

struct Mill<'a> {
    order: &'a Order<'a>,
    request: Vec<u8>,
    /// Requests that nobody has begun.
    left: usize,
    milled: Milled,
}

impl Mill<'_> {
    /// Writes and reads for one connection until it has to wait.
    fn advance<S: Stream>(&mut self, worker: &mut Worker<S>) -> io::Result<()> {
        loop {
            if worker.begun.is_none() {
                // Not connected yet, or no more to ask: nothing happens here.
                if self.left == 0 || !worker.stream.is_connected()? {
                    return Ok(());
                }
                self.left -= 1;
                (worker.begun, worker.written) = (Some(Instant::now()), 0);
            }
            while worker.written < self.request.len() {
                match worker.stream.write(&self.request[worker.written..]) {
                    Ok(count) => worker.written += count,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
            let mut buffer = [0; 16 << 10];
            match worker.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => worker.answer.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            self.judge(worker)?;
        }
    }

    /// Takes an answer that is complete.
    fn judge<S>(&mut self, worker: &mut Worker<S>) -> io::Result<()> {
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut fields);
        let invalid = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
        let head = match response.parse(&worker.answer) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) if worker.answer.len() < HEAD_BYTES_MAX => return Ok(()),
            _ => return Err(invalid("an answer that is not HTTP")),
        };
        let length = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse::<usize>().ok());
        let length = length.ok_or_else(|| invalid("an answer without its length"))?;
        if worker.answer.len() < head + length {
            return Ok(());
        }
        let (ok, right) = (response.code == Some(200), worker.answer[head..] == *self.order.body);
        self.milled.wrong += usize::from(!ok || !right);
        let begun = worker.begun.take().ok_or_else(|| invalid("an answer that nobody asked for"))?;
        self.milled.latencies.push(begun.elapsed());
        worker.answer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::content::{Content, Shelf};
    use crate::http::Http;
    use crate::net::kernel::Kernel;
    use crate::services::{Limits, Server};
    use std::sync::Arc;

    #[test]
    fn every_answer_is_timed_and_a_wrong_body_is_seen() {
        let content = Content::random(512, 3).expect("a little memory");
        let shelf = Shelf::new([("small".into(), content.clone())], 0).expect("a little memory");
        let mut server = Server::new(Kernel::new().expect("an epoll"), Limits::default());
        let to = SocketAddr::from(([127, 0, 0, 1], 41_401));
        server.offer(to, Arc::new(Http::new(Arc::new(shelf)))).expect("the port is free");
        let stop = server.stop().expect("a waker");
        let thread = std::thread::spawn(move || server.run().expect("the network stays"));
        let mut body = vec![0; 512];
        std::os::unix::fs::FileExt::read_exact_at(&*content.file, &mut body, 0).expect("memory");
        let order = Order { to, path: "/small", body: &body, requests: 333, connections: 10 };
        let milled =
            run(&mut Kernel::new().expect("an epoll"), &order, &Interruption::default()).expect("the server answers");
        assert_eq!((milled.latencies.len(), milled.wrong), (333, 0));
        assert!(milled.within(500) <= milled.within(990) && milled.within(1000) <= milled.span);
        let mut other = body.clone();
        other[100] ^= 1;
        let order = Order { body: &other, ..order };
        assert_eq!(
            run(&mut Kernel::new().expect("an epoll"), &order, &Interruption::default())
                .expect("the server answers")
                .wrong,
            333
        );
        stop.stop();
        thread.join().expect("the server does not panic");
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let latencies = (1..=200).map(Duration::from_micros).collect();
        let milled = Milled { latencies, ..Milled::default() };
        let micros = |per_mille| milled.within(per_mille).as_micros();
        assert_eq!((micros(500), micros(990), micros(999), micros(1000)), (100, 198, 200, 200));
        assert_eq!(Milled::default().within(500), Duration::ZERO);
    }
}
