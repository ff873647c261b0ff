//! What the calls do: conversations over streams and datagrams, ends and resets, pipes.

use super::host::*;
use std::io::{IoSlice, IoSliceMut};
use std::thread;
use xylem_posix::Errno;

#[test]
fn a_conversation_from_connect_to_the_end() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    assert_eq!((ours, theirs), (0, 1), "the lowest numbers that were free");
    assert_eq!(write(left, ours, b"hello, world"), Ok(12));
    assert_eq!(receive(right, theirs, 5, libc::MSG_PEEK).map(|it| it.0), Ok(b"hello".to_vec()));
    let (mut a, mut b) = ([0; 5], [0; 20]);
    assert_eq!(right.read(theirs, &mut [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b)]), Ok(12));
    assert_eq!((&a, &b[..7]), (b"hello", &b", world"[..]));
    assert_eq!(right.write(theirs, &[IoSlice::new(b"and "), IoSlice::new(b"back")]), Ok(8));
    let all = receive(left, ours, 8, libc::MSG_WAITALL).map(|it| it.0);
    assert_eq!(all, Ok(b"and back".to_vec()));
    assert_eq!(left.peer_name(ours).map(|it| it.as_bytes().to_vec()), Ok(v4(HOSTS[1], 80)));
    assert_eq!(right.local_name(theirs).map(|it| it.as_bytes().to_vec()), Ok(v4(HOSTS[1], 80)));
    // One direction ends, and then the other.
    assert_eq!(left.shutdown(ours, libc::SHUT_WR), Ok(()));
    assert_eq!(write(left, ours, b"more"), Err(Errno(libc::EPIPE)));
    assert_eq!(read(right, theirs, 9), Ok(vec![]));
    assert_eq!(write(right, theirs, b"last"), Ok(4));
    assert_eq!(right.close(theirs), Ok(()));
    assert_eq!(read(left, ours, 9), Ok(b"last".to_vec()));
    assert_eq!(read(left, ours, 9), Ok(vec![]));
    assert_eq!(left.close(ours), Ok(()));
    assert_eq!(read(left, ours, 9), Err(Errno(libc::EBADF)));
    assert!(left.is_empty() && right.is_empty());
}

#[test]
fn a_write_of_a_megabyte_waits_for_its_reader() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let sent: Vec<u8> = (0..1u32 << 20).map(|place| ((place * 7) >> 3) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(write(left, ours, &sent), Ok(sent.len()), "a call that may wait takes all");
            left.close(ours).expect("it is open");
        });
        let mut got = Vec::new();
        loop {
            match read(right, theirs, 50_000) {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => got.extend(bytes),
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
    });
    unblock(right, theirs);
}

#[test]
fn what_may_not_wait_takes_what_there_is_room_for() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    unblock(left, ours);
    let mut total = 0;
    let block = vec![1; 100_000];
    loop {
        match write(left, ours, &block) {
            Ok(count) => total += count,
            Err(error) => break assert_eq!(error, Errno(libc::EAGAIN)),
        }
    }
    assert!(total > block.len(), "{total}");
    poll(right, theirs, libc::POLLIN);
    assert_eq!(receive(right, theirs, 1, libc::MSG_DONTWAIT).map(|it| it.0.len()), Ok(1));
    assert_eq!(receive(left, ours, 1, 0).map(|it| it.0), Err(Errno(libc::EAGAIN)));
}

#[test]
fn a_peer_that_lingers_for_nothing_resets() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let linger = [1i32.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    assert_eq!(right.setsockopt(theirs, libc::SOL_SOCKET, libc::SO_LINGER, &linger), Ok(()));
    assert_eq!(right.close(theirs), Ok(()));
    assert_eq!(read(left, ours, 1), Err(Errno(libc::ECONNRESET)));
    assert_eq!(read(left, ours, 1), Ok(vec![]), "told once");
    assert_eq!(write(left, ours, b"x"), Err(Errno(libc::EPIPE)));
}

#[test]
fn closing_may_wait_until_all_has_arrived() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let linger = [1i32.to_ne_bytes(), 20i32.to_ne_bytes()].concat();
    assert_eq!(left.setsockopt(ours, libc::SOL_SOCKET, libc::SO_LINGER, &linger), Ok(()));
    assert_eq!(write(left, ours, &[7; 30_000]), Ok(30_000));
    assert_eq!(left.close(ours), Ok(()));
    // What arrived is there already, to the end: closing has waited for its acknowledgment.
    assert_eq!(right.ioctl(theirs, libc::FIONREAD, 0), Ok(Some(30_000)));
}

#[test]
fn a_connection_that_nobody_takes_is_refused() {
    let [left, _right] = &pair();
    let ours = stream(left);
    assert_eq!(left.connect(ours, &v4(HOSTS[1], 9)), Err(Errno(libc::ECONNREFUSED)));
    // It may try again.
    unblock(left, ours);
    match left.connect(ours, &v4(HOSTS[1], 9)) {
        Err(Errno(libc::EINPROGRESS)) => {}
        // The other thread was so fast that the call could tell; a packet script shows the usual way.
        answer => return assert_eq!(answer, Err(Errno(libc::ECONNREFUSED))),
    }
    let found = poll(left, ours, libc::POLLOUT);
    assert_eq!(found & (libc::POLLOUT | libc::POLLERR), libc::POLLOUT | libc::POLLERR);
    let error = option(left, ours, libc::SOL_SOCKET, libc::SO_ERROR);
    assert_eq!(error, Ok(libc::ECONNREFUSED));
    assert_eq!(option(left, ours, libc::SOL_SOCKET, libc::SO_ERROR), Ok(0), "told once");
}

#[test]
fn datagrams_keep_their_borders_and_their_senders() {
    let [left, right] = &pair();
    let (ours, theirs) = (datagrams(left), datagrams(right));
    right.bind(theirs, &v4("0.0.0.0", 53)).expect("the port is free");
    let to = v4(HOSTS[1], 53);
    assert_eq!(left.send(ours, &[IoSlice::new(b"one"), IoSlice::new(b"two")], 0, Some(&to)), Ok(6));
    assert_eq!(left.send(ours, &[IoSlice::new(b"three")], 0, Some(&to)), Ok(5));
    let (bytes, received) = receive(right, theirs, 4, 0).expect("it was sent");
    assert_eq!((&bytes[..], received.count, received.is_cut), (&b"onet"[..], 4, true));
    let from = received.from.expect("it has a sender");
    assert_eq!(from.ip().to_string(), HOSTS[0]);
    poll(right, theirs, libc::POLLIN);
    assert_eq!(right.ioctl(theirs, libc::FIONREAD, 0), Ok(Some(5)));
    let (_, received) = receive(right, theirs, 2, libc::MSG_TRUNC | libc::MSG_PEEK).expect("it was sent");
    assert_eq!(received.count, 5, "as long as it is");
    assert_eq!(receive(right, theirs, 9, 0).map(|it| it.0), Ok(b"three".to_vec()));
    assert_eq!(send(left, ours, b"whom?", 0), Err(Errno(libc::EDESTADDRREQ)));
    left.connect(ours, &to).expect("an address");
    assert_eq!(send(left, ours, &vec![0; 65_508], 0), Err(Errno(libc::EMSGSIZE)));
    assert_eq!(send(left, ours, b"you", 0), Ok(3));
    assert_eq!(receive(right, theirs, 9, 0).map(|it| it.0), Ok(b"you".to_vec()));
}

#[test]
fn a_socket_of_the_other_family_sees_mapped_addresses() {
    let [left, right] = &pair();
    let six = |table: &xylem_posix::Descriptors| table.socket(libc::AF_INET6, libc::SOCK_STREAM, libc::IPPROTO_TCP);
    let listens = six(right).expect("a descriptor");
    right.bind(listens, &name("0.0.0.0", 80, libc::AF_INET6)).expect("any address is ours");
    right.listen(listens, 0).expect("it is bound");
    let ours = six(left).expect("a descriptor");
    left.connect(ours, &name(HOSTS[1], 80, libc::AF_INET6)).expect("it listens");
    let (_, peer) = right.accept(listens, 0).expect("one is in line");
    let expected = name(HOSTS[0], 0, libc::AF_INET6);
    assert_eq!((&peer.as_bytes()[8..24], peer.as_bytes().len()), (&expected[8..24], 28));
}

#[test]
fn bytes_go_through_a_pipe_from_one_connection_to_another() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let [reader, writer] = right.pipe(0).expect("two descriptors");
    write(left, ours, b"through the pipe").expect("there is room");
    assert_eq!(right.splice(theirs, writer, 100, 0), Ok(16));
    assert_eq!(right.ioctl(reader, libc::FIONREAD, 0), Ok(Some(16)));
    assert_eq!(right.splice(reader, theirs, 100, 0), Ok(16));
    assert_eq!(read(left, ours, 100), Ok(b"through the pipe".to_vec()));
    assert_eq!(right.splice(theirs, theirs, 1, 0), Err(Errno(libc::EINVAL)));
    assert_eq!(right.splice(reader, theirs, 9, libc::SPLICE_F_NONBLOCK), Err(Errno(libc::EAGAIN)));
    right.close(writer).expect("it is open");
    assert_eq!(right.splice(reader, theirs, 9, 0), Ok(0), "the writer has gone");
    assert_eq!(read(right, reader, 9), Ok(vec![]));
}

#[test]
fn a_file_goes_with_its_last_number() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let second = left.fcntl(ours, libc::F_DUPFD, 100).expect("a descriptor is free");
    assert_eq!((second, left.close(ours)), (100, Ok(())));
    assert_eq!(write(left, second, b"still"), Ok(5));
    assert_eq!(read(right, theirs, 9), Ok(b"still".to_vec()));
    assert_eq!(left.close(second), Ok(()));
    assert_eq!(read(right, theirs, 9), Ok(vec![]));
}
