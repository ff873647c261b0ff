//! Waiting: blocked calls, poll and epoll.

use super::host::*;
use std::thread;
use xylem_posix::{EpollEvent, Errno, PollEntry};

const LEVEL: u32 = libc::EPOLLIN as u32;
const EDGE: u32 = (libc::EPOLLIN | libc::EPOLLET) as u32;
const ONCE: u32 = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;

#[test]
fn a_call_waits_until_another_thread_brings_what_it_wants() {
    let [left, right] = &pair();
    let listens = listener(right, 80);
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (accepted, _) = right.accept(listens, 0).expect("somebody connects");
            let heard = read(right, accepted, 10);
            write(right, accepted, b"answer").expect("there is room");
            heard
        });
        let ours = stream(left);
        left.connect(ours, &v4(HOSTS[1], 80)).expect("it listens");
        write(left, ours, b"question").expect("there is room");
        assert_eq!(read(left, ours, 10), Ok(b"answer".to_vec()));
        assert_eq!(server.join().expect("it does not panic"), Ok(b"question".to_vec()));
    });
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let hosts = pair();
    let [ours, _theirs] = connected(&hosts, 80);
    let [left, _right] = &hosts;
    let timeout = [0i64.to_ne_bytes(), 20_000i64.to_ne_bytes()].concat();
    left.setsockopt(ours, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout).expect("a time");
    assert_eq!(read(left, ours, 1), Err(Errno(libc::EAGAIN)));
    let mut entries = [PollEntry { descriptor: ours, events: libc::POLLIN, found: 9 }];
    assert_eq!((left.poll(&mut entries, 10), entries[0].found), (Ok(0), 0));
    let epoll = left.epoll_create(1).expect("a descriptor");
    assert_eq!(left.epoll_wait(epoll, 1, 10), Ok(vec![]));
}

#[test]
fn what_is_ready_is_found() {
    let hosts = pair();
    let [left, right] = &hosts;
    let fresh = stream(left);
    let found = |table: &xylem_posix::Descriptors, descriptor: i32| {
        let mut entries = [PollEntry { descriptor, events: !0, found: 0 }];
        table.poll(&mut entries, 0).expect("it can be asked");
        entries[0].found & !(libc::POLLRDNORM | libc::POLLWRNORM)
    };
    assert_eq!(found(left, fresh), libc::POLLOUT | libc::POLLHUP);
    let [ours, theirs] = connected(&hosts, 80);
    assert_eq!(found(left, ours), libc::POLLOUT);
    write(right, theirs, b"x").expect("there is room");
    poll(left, ours, libc::POLLIN);
    assert_eq!(found(left, ours), libc::POLLIN | libc::POLLOUT);
    right.shutdown(theirs, libc::SHUT_WR).expect("it is open");
    poll(left, ours, libc::POLLRDHUP);
    assert_eq!(found(left, ours), libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP);
    left.shutdown(ours, libc::SHUT_WR).expect("it is open");
    assert_eq!(found(left, ours) & libc::POLLHUP, libc::POLLHUP);
}

#[test]
fn sets_tell_by_level_by_edge_and_once() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let sets = [LEVEL, EDGE, ONCE].map(|events| {
        let set = left.epoll_create(1).expect("a descriptor");
        let event = EpollEvent { events, data: u64::from(events) };
        left.epoll_control(set, libc::EPOLL_CTL_ADD, ours, Some(event)).expect("it is new");
        set
    });
    let told = |set: i32| left.epoll_wait(set, 8, 0).expect("a set").len();
    assert_eq!(sets.map(told), [0, 0, 0]);
    write(right, theirs, b"one").expect("there is room");
    for (set, events) in sets.iter().zip([LEVEL, EDGE, ONCE]) {
        let found = left.epoll_wait(*set, 8, 20_000).expect("a set");
        assert_eq!(found, [EpollEvent { events: libc::EPOLLIN as u32, data: u64::from(events) }]);
    }
    assert_eq!(sets.map(told), [1, 0, 0], "only the level is told again");
    write(right, theirs, b"two").expect("there is room");
    assert_eq!(left.epoll_wait(sets[1], 8, 20_000).map(|found| found.len()), Ok(1), "another edge");
    assert_eq!(told(sets[2]), 0, "once is once");
    let again = EpollEvent { events: ONCE, data: 5 };
    left.epoll_control(sets[2], libc::EPOLL_CTL_MOD, ours, Some(again)).expect("it is watched");
    assert_eq!(told(sets[2]), 1, "until it is asked for again");
    assert_eq!(poll(left, sets[0], libc::POLLIN), libc::POLLIN, "a set may be polled itself");
    let rest = read(left, ours, 99).expect("it was sent");
    assert!(rest == b"onetwo" || rest == b"one");
    left.epoll_control(sets[0], libc::EPOLL_CTL_DEL, ours, None).expect("it is watched");
    assert_eq!(told(sets[0]), 0);
}

#[test]
fn a_waiting_thread_is_let_go_when_the_stack_stops() {
    let [left, right] = &pair();
    let listens = listener(right, 80);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| right.accept(listens, 0).map(|_| ()));
        let mut entries = [PollEntry { descriptor: listens, events: libc::POLLIN, found: 0 }];
        assert_eq!(right.poll(&mut entries, 20), Ok(0));
        right.stack().stop();
        assert_eq!(waiting.join().expect("it does not panic"), Err(Errno(libc::ENOTCONN)));
    });
    left.stack().stop();
}
