//! One end of a transfer over the long link, a process of its own. The sender listens and sends what each connection asks
//! for; the receiver fetches small objects, some at a time, and then one stream for a fixed time, and counts what its
//! application reads. The loops are the same over both stacks. The command `xylem bench wan` starts it.

use super::super::end::READY;
use super::super::network::{Kernel, Network, Xylem, read_least, write_all};
use super::super::order::Waiting;
use super::super::stream::Content;
use super::order::{
    Answer, FETCHERS, OBJECT_BYTES, OBJECT_TIME_MAX, OBJECTS_EACH, Order, Request, Side, WRITE_BYTES, WRITE_WAIT,
};
use crate::cli::{Ending, complain, say};
use crate::{catalogue, place};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener as KernelListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use xylem_host::device::PacketDevice;
use xylem_host::namespace::Namespace;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::{kernel_tcp, pin};

/// How long an end stays after its answer, so that its peer is not disturbed; whoever started it ends it sooner.
const STAYS: Duration = Duration::from_secs(30);

/// The sockets of both contestants as these loops need them beyond what [`Network`] has.
trait Wan: Network<Listener: Send> + Send + Sync + 'static {
    /// Lets a write wait no longer than so, and a read no longer than that.
    fn wait_at_most(&self, stream: &Self::Stream, write: Option<Duration>, read: Option<Duration>) -> io::Result<()>;

    /// Segments that went again, and the payload bytes of a full one.
    fn status(&self, stream: &Self::Stream) -> io::Result<(u64, u64)>;

    /// Connections taken at `at`, with the congestion control of this run.
    fn listen_with(&self, at: SocketAddr, congestion: &str) -> io::Result<Self::Listener>;
}

impl Wan for Kernel {
    fn wait_at_most(&self, stream: &Self::Stream, write: Option<Duration>, read: Option<Duration>) -> io::Result<()> {
        stream.set_write_timeout(write)?;
        stream.set_read_timeout(read)
    }

    fn status(&self, stream: &Self::Stream) -> io::Result<(u64, u64)> {
        let status = kernel_tcp::status(stream)?;
        Ok((status.retransmitted, status.segment_size as u64))
    }

    fn listen_with(&self, at: SocketAddr, congestion: &str) -> io::Result<KernelListener> {
        let listener = self.listen(at)?;
        // The connections it takes inherit it (tcp(7), TCP_CONGESTION); what the namespace says may be refused.
        set_tcp_congestion(&listener, congestion).map_err(|error| {
            io::Error::other(format!("expected a kernel with the congestion control {congestion}, got: {error}"))
        })?;
        Ok(listener)
    }
}

impl Wan for Xylem {
    fn wait_at_most(&self, stream: &Self::Stream, write: Option<Duration>, read: Option<Duration>) -> io::Result<()> {
        stream.set_write_timeout(write)?;
        stream.set_read_timeout(read)
    }

    fn status(&self, stream: &Self::Stream) -> io::Result<(u64, u64)> {
        let status = stream.status()?;
        Ok((status.retransmitted, status.segment_size as u64))
    }

    fn listen_with(&self, at: SocketAddr, _congestion: &str) -> io::Result<Self::Listener> {
        // The graph has said the congestion control.
        self.listen(at)
    }
}

/// Does what the order says.
pub fn run(order: &str) -> Ending {
    let order: Order = match serde_json::from_str(order) {
        Ok(order) => order,
        Err(error) => {
            complain(format!("expected an order of `xylem bench wan`, which starts its ends by itself, got: {error}"));
            return Ending::Unasked;
        }
    };
    // As for the ends of the other measurements: a session of its own, so that the priority counts.
    let _ = rustix::process::setsid();
    let _ = pin::raise_priority();
    let answer = act(&order).unwrap_or_else(|error| Answer { error: Some(error.to_string()), ..Answer::default() });
    let ending = if answer.error.is_none() { Ending::Right } else { Ending::Unasked };
    // An answer is numbers and text, which JSON has.
    say(format!("{}\n", serde_json::to_string(&answer).expect("numbers and text")));
    thread::sleep(STAYS);
    ending
}

fn act(order: &Order) -> io::Result<Answer> {
    let Some(graph) = &order.graph else {
        return part(Kernel { waiting: Waiting::Block }, order);
    };
    let here = Namespace::current().map_err(io::Error::other)?;
    let socket = place::packet_in(&here)?;
    let notes = socket.notes().to_vec();
    let device = PacketDevice::new(socket).map_err(io::Error::other)?;
    let stack = Stack::builder().graph(graph.as_str()).catalogue(catalogue::builtin()).device(device);
    let stack = stack.shell(Shell::Thread).build().map_err(io::Error::other)?;
    let network = Xylem { stack, waiting: Waiting::Block };
    Ok(Answer { notes, ..part(network, order)? })
}

fn part<N: Wan>(network: N, order: &Order) -> io::Result<Answer>
where
    N::Stream: Send,
{
    match order.side {
        Side::Sender => send(&Arc::new(network), order),
        Side::Receiver => {
            let answer = receive(&network, order);
            // A stack that goes would end what its peer is still at.
            std::mem::forget(network);
            answer
        }
    }
}

/// The sender: a thread a connection, until the stream has been sent.
fn send<N: Wan>(network: &Arc<N>, order: &Order) -> io::Result<Answer>
where
    N::Stream: Send,
{
    let listener = network.listen_with(order.at, &order.congestion)?;
    say(format!("{READY}\n"));
    let content = Arc::new(Content::new(WRITE_BYTES.max(OBJECT_BYTES)));
    let (tell, told) = mpsc::channel();
    let accepting = Arc::clone(network);
    thread::spawn(move || {
        loop {
            let stream = match accepting.accept(&listener) {
                Ok(stream) => stream,
                // Nobody is served any more.
                Err(error) => return drop(tell.send(Err(error))),
            };
            let (network, content, tell) = (Arc::clone(&accepting), Arc::clone(&content), tell.clone());
            thread::spawn(move || {
                if let Some(answer) = answer_one(&*network, stream, &content).transpose() {
                    // The end is over already if nobody listens.
                    let _ = tell.send(answer);
                }
            });
        }
    });
    told.recv().map_err(|_| io::Error::other("expected a stream to be asked for, got none"))?
}

/// Sends what one connection asks for. What the stream's sender has to say is the end's answer.
fn answer_one<N: Wan>(network: &N, mut stream: N::Stream, content: &Content) -> io::Result<Option<Answer>> {
    let mut request = [0; Request::LEN];
    // A receiver that gave up counts that itself.
    let Ok(Request::LEN) = read_least(&mut stream, &mut request, Request::LEN) else { return Ok(None) };
    match Request::read(request) {
        Some(Request::Stream(ms)) => {
            send_stream(network, &mut stream, content, Duration::from_millis(ms.into())).map(|answer| {
                // The receiver may still be reading: the connection stays until this process goes.
                std::mem::forget(stream);
                Some(answer)
            })
        }
        Some(Request::Object(bytes)) => {
            let bytes = (bytes as usize).min(OBJECT_BYTES);
            if write_all(&mut stream, content.at(0, bytes)).is_ok() {
                let _ = network.finish(&stream);
            }
            Ok(None)
        }
        None => Err(io::Error::other(format!("expected a request, got {request:?}"))),
    }
}

fn send_stream<N: Wan>(network: &N, stream: &mut N::Stream, content: &Content, span: Duration) -> io::Result<Answer> {
    network.wait_at_most(stream, Some(WRITE_WAIT), None)?;
    let until = Instant::now() + span;
    let mut place = 0;
    while Instant::now() < until {
        match stream.write(content.at(place, WRITE_BYTES)) {
            Ok(count) => place += count as u64,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    let (retransmitted, segment_size) = network.status(stream)?;
    Ok(Answer { retransmitted, segment_size, ..Answer::default() })
}

/// The receiver: small objects, and then the stream.
fn receive<N: Wan>(network: &N, order: &Order) -> io::Result<Answer>
where
    N::Stream: Send,
{
    let mut answer = Answer::default();
    if order.objects {
        let (times, failed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..FETCHERS {
                scope.spawn(|| {
                    for _ in 0..OBJECTS_EACH {
                        let begun = Instant::now();
                        let fetched = fetch(network, order.at);
                        failed.fetch_add(u64::from(fetched.is_err()), Ordering::Relaxed);
                        let took = if fetched.is_ok() { begun.elapsed() } else { OBJECT_TIME_MAX };
                        // A thread that panicked ends the scope anyway.
                        let mut times = times.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        times.push(took.min(OBJECT_TIME_MAX).as_secs_f64() * 1000.0);
                    }
                });
            }
        });
        answer.objects_ms = times.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        answer.objects_failed = failed.into_inner();
    }
    let content = Content::new(WRITE_BYTES);
    let span = Duration::from_millis(order.stream_ms);
    let until = Instant::now() + span;
    let mut stream = network.connect(order.at)?;
    write_all(&mut stream, &Request::Stream(order.stream_ms as u32).bytes())?;
    network.wait_at_most(&stream, None, Some(WRITE_WAIT))?;
    let mut buffer = vec![0; WRITE_BYTES];
    while Instant::now() < until {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "expected a stream, got its end")),
            Ok(count) => {
                answer.strays += u64::from(!content.is_right(answer.bytes, &buffer[..count]));
                answer.bytes += count as u64;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
    }
    // The sender is still at work: the connection stays until this process goes.
    std::mem::forget(stream);
    Ok(answer)
}

/// Fetches one small object.
fn fetch<N: Wan>(network: &N, from: SocketAddr) -> io::Result<()> {
    let mut stream = network.connect(from)?;
    network.wait_at_most(&stream, Some(OBJECT_TIME_MAX), Some(OBJECT_TIME_MAX))?;
    write_all(&mut stream, &Request::Object(OBJECT_BYTES as u32).bytes())?;
    let mut bytes = vec![0; OBJECT_BYTES];
    let mut filled = 0;
    while filled < OBJECT_BYTES {
        // Not patiently: a read that waited its time has failed.
        match stream.read(&mut bytes[filled..])? {
            0 => {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    format!("expected an object, got {filled} bytes"),
                ));
            }
            count => filled += count,
        }
    }
    Ok(())
}
