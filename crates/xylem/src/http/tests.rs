//! The server from a client's view: over the kernel's sockets, byte by byte where that matters.

use super::Http;
use super::site::Directory;
use crate::net::kernel::Kernel;
use crate::services::{Limits, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Serves a directory with a few files, and runs `client` against it.
fn with_site(port: u16, uploads: bool, client: impl FnOnce(SocketAddr, &Path)) {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::write(root.path().join("small.txt"), "twelve bytes").expect("the disk has room");
    let large: Vec<u8> = (0..5_000_000u32).flat_map(|number| number.to_le_bytes()[..1].to_vec()).collect();
    std::fs::write(root.path().join("large.bin"), &large).expect("the disk has room");
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let mut server = Server::new(Kernel::new().expect("an epoll"), Limits::default());
    let site = Directory::open(root.path(), uploads).expect("it is there");
    server.offer(at, Arc::new(Http::new(Arc::new(site)))).expect("the port is free");
    let stop = server.stop().expect("a waker");
    let thread = thread::spawn(move || server.run().expect("the network stays"));
    client(at, root.path());
    stop.stop();
    thread.join().expect("the server does not panic");
}

/// Sends `request` in one piece, closes, and returns everything that comes back.
fn exchange(at: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).expect("the server listens");
    stream.write_all(request).expect("it reads");
    stream.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server closes in order");
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads one answer off a connection that is kept: its first line and its body.
fn one_answer(reader: &mut BufReader<TcpStream>, with_body: bool) -> (String, Vec<u8>) {
    let (mut status, mut length) = (String::new(), 0);
    reader.read_line(&mut status).expect("an answer");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a field");
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; if with_body { length } else { 0 }];
    reader.read_exact(&mut body).expect("the body");
    (status.trim_end().into(), body)
}

#[test]
fn a_kept_connection_answers_several_requests_in_order_even_when_they_come_at_once_or_byte_by_byte() {
    with_site(41_301, false, |at, _| {
        let mut writer = TcpStream::connect(at).expect("the server listens");
        let mut reader = BufReader::new(writer.try_clone().expect("a descriptor"));
        let get = |name: &str| format!("GET /{name} HTTP/1.1\r\nHost: x\r\n\r\n");
        let pipeline =
            get("small.txt") + &get("none") + "HEAD /large.bin HTTP/1.1\r\nHost: x\r\n\r\n" + &get("large.bin");
        writer.write_all(pipeline.as_bytes()).expect("it reads");
        assert_eq!(one_answer(&mut reader, true), ("HTTP/1.1 200 OK".into(), b"twelve bytes".into()));
        assert_eq!(one_answer(&mut reader, true).0, "HTTP/1.1 404 Not Found");
        assert_eq!(one_answer(&mut reader, false).0, "HTTP/1.1 200 OK");
        let (status, body) = one_answer(&mut reader, true);
        assert_eq!((status.as_str(), body.len()), ("HTTP/1.1 200 OK", 5_000_000));
        assert!(body.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        for byte in get("small.txt").bytes() {
            writer.write_all(&[byte]).expect("it reads");
        }
        assert_eq!(one_answer(&mut reader, true).1, b"twelve bytes");
    });
}

#[test]
fn an_upload_arrives_whole_and_a_broken_one_leaves_nothing() {
    with_site(41_302, true, |at, root| {
        let body: Vec<u8> = (0..3_000_000u32).map(|number| (number / 7) as u8).collect();
        let mut request =
            format!("PUT /new.bin HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        request.extend_from_slice(&body);
        request.extend_from_slice(b"GET /small.txt HTTP/1.1\r\nHost: x\r\n\r\n");
        let answer = exchange(at, &request);
        assert!(answer.starts_with("HTTP/1.1 201 Created\r\n") && answer.ends_with("\r\n\r\ntwelve bytes"), "{answer}");
        assert!(std::fs::read(root.join("new.bin")).expect("it arrived") == body);

        let broken = exchange(at, b"PUT /half HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf");
        assert_eq!(broken, "");
        assert_eq!(std::fs::read_dir(root).expect("it is there").count(), 3);

        // A client that waits to be told is told, once.
        let mut writer = TcpStream::connect(at).expect("the server listens");
        let mut reader = BufReader::new(writer.try_clone().expect("a descriptor"));
        let head = b"POST /told HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
        writer.write_all(head).expect("it reads");
        assert_eq!(one_answer(&mut reader, true).0, "HTTP/1.1 100 Continue");
        writer.write_all(b"told").expect("it reads");
        assert_eq!(one_answer(&mut reader, true).0, "HTTP/1.1 201 Created");
        assert_eq!(std::fs::read(root.join("told")).expect("it arrived"), b"told");
    });
}

#[test]
fn what_is_refused_is_said_and_the_peer_can_read_it() {
    with_site(41_303, false, |at, _| {
        let long = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(20_000));
        // The unwanted body is longer than the socket buffers: without the lingering close the answer would be lost.
        let mut upload = b"PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n".to_vec();
        upload.resize(upload.len() + 900_000, b'x');
        for (request, expected) in [
            (b"GET /../x HTTP/1.1\r\nHost: x\r\n\r\n".as_slice(), "403 Forbidden"),
            (b"nonsense\r\n\r\n", "400 Bad Request"),
            (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", "505 HTTP Version Not Supported"),
            (long.as_bytes(), "431 Request Header Fields Too Large"),
            (&upload, "405 Method Not Allowed"),
        ] {
            let answer = exchange(at, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{expected}: {answer}");
        }
        let refused = exchange(at, b"DELETE /small.txt HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(refused.contains("Allow: GET, HEAD\r\n") && refused.contains("Connection: close\r\n"), "{refused}");
    });
}
