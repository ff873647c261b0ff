//! The asynchronous face under tokio.

mod host;

use host::{pair, right, within};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use xylem_host::net::{TcpListener, TcpStream, UdpSocket};
use xylem_host::shell::Shell;

const LIMIT: Duration = Duration::from_secs(20);

fn run(work: impl Future<Output = ()> + Send + 'static) {
    within(LIMIT, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(work);
    });
}

#[test]
fn tasks_echo_on_one_thread() {
    for shell in [Shell::Thread, Shell::Spin] {
        run(async move {
            let (left, right_stack) = pair(shell);
            let listener = TcpListener::bind_on(&right_stack, right(7)).expect("free");
            let server = async {
                let mut tasks = Vec::new();
                for _ in 0..4 {
                    let (mut stream, _) = listener.accept_async().await;
                    tasks.push(tokio::spawn(async move {
                        let (mut reader, mut writer) = tokio::io::split(&mut stream);
                        tokio::io::copy(&mut reader, &mut writer).await.expect("an echo");
                        writer.shutdown().await.expect("open");
                    }));
                }
                for task in tasks {
                    task.await.expect("no panic");
                }
            };
            let clients = async {
                let mut tasks = Vec::new();
                for number in 0..4u8 {
                    let left = left.clone();
                    tasks.push(tokio::spawn(async move {
                        let stream = TcpStream::connect_async(&left, right(7)).await.expect("somebody listens");
                        let bytes = vec![number; 300_000];
                        let (mut reader, mut writer) = tokio::io::split(stream);
                        let sent = bytes.clone();
                        let send = tokio::spawn(async move {
                            writer.write_all(&sent).await.expect("open");
                            writer.shutdown().await.expect("open");
                        });
                        let mut back = Vec::new();
                        reader.read_to_end(&mut back).await.expect("an echo");
                        assert!(back == bytes, "{shell:?}, client {number}");
                        send.await.expect("no panic");
                    }));
                }
                for task in tasks {
                    task.await.expect("no panic");
                }
            };
            tokio::join!(server, clients);
        });
    }
}

#[test]
fn tasks_hear_of_datagrams_and_refusals() {
    run(async {
        let (left, right_stack) = pair(Shell::Thread);
        let server = UdpSocket::bind_on(&right_stack, right(7)).expect("free");
        let client = UdpSocket::bind_on(&left, "0.0.0.0:0").expect("free");
        let mut buffer = [0; 8];
        let early = tokio::time::timeout(Duration::from_millis(20), server.recv_from_async(&mut buffer)).await;
        early.expect_err("nothing was sent yet");
        client.send_to(b"datagram", right(7)).expect("a way");
        assert_eq!(server.recv_from_async(&mut buffer).await.expect("it comes").0, 8);
        let error = TcpStream::connect_async(&left, right(9)).await.expect_err("nobody listens");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
    });
}
