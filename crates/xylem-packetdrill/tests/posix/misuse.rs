//! What a program may do wrong, and what it is told.

use super::host::*;
use std::io::{IoSlice, IoSliceMut};
use xylem_posix::{DESCRIPTORS_MAX, Descriptors, EpollEvent, Errno};

fn failed<T: std::fmt::Debug>(answer: Result<T, Errno>, errno: i32) {
    assert_eq!(answer.map(|_| ()), Err(Errno(errno)));
}

#[test]
fn a_number_that_stands_for_nothing_is_bad_everywhere() {
    let [table, _other] = &pair();
    for bad in [-1, 0, 7, i32::MAX, i32::MIN] {
        let (to, mut buffer) = (v4(HOSTS[1], 80), [0; 4]);
        failed(table.bind(bad, &to), libc::EBADF);
        failed(table.listen(bad, 1), libc::EBADF);
        failed(table.accept(bad, 0), libc::EBADF);
        failed(table.connect(bad, &to), libc::EBADF);
        failed(table.read(bad, &mut [IoSliceMut::new(&mut buffer)]), libc::EBADF);
        failed(table.receive(bad, &mut [], 0), libc::EBADF);
        failed(table.write(bad, &[IoSlice::new(b"x")]), libc::EBADF);
        failed(table.send(bad, &[], 0, None), libc::EBADF);
        failed(table.shutdown(bad, 0), libc::EBADF);
        failed(table.close(bad), libc::EBADF);
        failed(table.fcntl(bad, libc::F_GETFL, 0), libc::EBADF);
        failed(table.ioctl(bad, libc::FIONREAD, 0), libc::EBADF);
        failed(table.getsockopt(bad, libc::SOL_SOCKET, libc::SO_ERROR, &mut buffer), libc::EBADF);
        failed(table.setsockopt(bad, libc::SOL_SOCKET, libc::SO_REUSEADDR, &buffer), libc::EBADF);
        failed(table.local_name(bad), libc::EBADF);
        failed(table.peer_name(bad), libc::EBADF);
        failed(table.epoll_control(bad, libc::EPOLL_CTL_ADD, bad, None), libc::EBADF);
        failed(table.epoll_wait(bad, 1, 0), libc::EBADF);
        failed(table.splice(bad, bad, 1, 0), libc::EBADF);
        let mut entries = [xylem_posix::PollEntry { descriptor: bad, events: libc::POLLIN, found: 0 }];
        let found = if bad < 0 { (Ok(0), 0) } else { (Ok(1), libc::POLLNVAL) };
        assert_eq!((table.poll(&mut entries, 0), entries[0].found), found);
    }
}

#[test]
fn what_is_no_socket_is_told_so() {
    let [table, _other] = &pair();
    let [reader, writer] = table.pipe(libc::O_NONBLOCK).expect("two descriptors");
    let epoll = table.epoll_create(1).expect("a descriptor");
    for wrong in [reader, epoll] {
        failed(table.bind(wrong, &v4(HOSTS[0], 80)), libc::ENOTSOCK);
        failed(table.listen(wrong, 1), libc::ENOTSOCK);
        failed(table.receive(wrong, &mut [], 0), libc::ENOTSOCK);
        failed(table.send(wrong, &[], 0, None), libc::ENOTSOCK);
        failed(table.shutdown(wrong, libc::SHUT_RD), libc::ENOTSOCK);
        failed(option(table, wrong, libc::SOL_SOCKET, libc::SO_ERROR), libc::ENOTSOCK);
    }
    failed(write(table, reader, b"x"), libc::EBADF);
    failed(read(table, writer, 1), libc::EBADF);
    failed(read(table, reader, 1), libc::EAGAIN);
    failed(read(table, epoll, 1), libc::EINVAL);
    table.close(reader).expect("it is open");
    failed(write(table, writer, b"x"), libc::EPIPE);
    failed(table.pipe(1), libc::EINVAL);
}

#[test]
fn sockets_of_no_kind_are_not_made() {
    let [table, _other] = &pair();
    failed(table.socket(libc::AF_UNIX, libc::SOCK_STREAM, 0), libc::EAFNOSUPPORT);
    failed(table.socket(libc::AF_INET, libc::SOCK_RAW, 0), libc::EPROTONOSUPPORT);
    failed(table.socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_UDP), libc::EPROTONOSUPPORT);
    failed(table.socket(libc::AF_INET, libc::SOCK_STREAM | 1 << 20, 0), libc::EINVAL);
    let all: Vec<i32> = (0..DESCRIPTORS_MAX).map(|_| stream(table)).collect();
    assert_eq!(all, (0..DESCRIPTORS_MAX as i32).collect::<Vec<_>>());
    failed(table.socket(libc::AF_INET, libc::SOCK_STREAM, 0), libc::EMFILE);
    table.close(17).expect("it is open");
    assert_eq!(stream(table), 17);
}

#[test]
fn a_socket_does_what_it_is_for() {
    let [left, right] = &pair();
    let fresh = stream(left);
    failed(read(left, fresh, 1), libc::ENOTCONN);
    failed(write(left, fresh, b"x"), libc::EPIPE);
    failed(left.accept(fresh, 0), libc::EINVAL);
    failed(left.shutdown(fresh, libc::SHUT_WR), libc::ENOTCONN);
    failed(left.peer_name(fresh), libc::ENOTCONN);
    failed(left.shutdown(fresh, 9), libc::EINVAL);
    failed(left.bind(fresh, &v4("10.9.9.9", 80)), libc::EADDRNOTAVAIL);
    failed(left.bind(fresh, &v4(HOSTS[0], 80)[..9]), libc::EINVAL);
    failed(left.bind(fresh, &name(HOSTS[0], 80, libc::AF_INET6)), libc::EAFNOSUPPORT);
    failed(left.connect(fresh, &[]), libc::EINVAL);
    failed(left.ioctl(fresh, 1, 0), libc::ENOTTY);
    failed(left.fcntl(fresh, 9999, 0), libc::EINVAL);
    failed(left.fcntl(fresh, libc::F_DUPFD, -1), libc::EINVAL);
    failed(send(left, fresh, b"x", 1 << 30), libc::EOPNOTSUPP);
    left.bind(fresh, &v4(HOSTS[0], 80)).expect("the port is free");
    failed(left.bind(fresh, &v4(HOSTS[0], 81)), libc::EINVAL);
    failed(left.bind(stream(left), &v4("0.0.0.0", 80)), libc::EADDRINUSE);
    left.listen(fresh, 1).expect("it is bound");
    failed(left.connect(fresh, &v4(HOSTS[1], 80)), libc::EISCONN);
    failed(read(left, fresh, 1), libc::ENOTCONN);
    failed(left.ioctl(fresh, libc::FIONREAD, 0), libc::EINVAL);
    failed(left.accept(fresh, 1), libc::EINVAL);
    unblock(left, fresh);
    failed(left.accept(fresh, 0), libc::EAGAIN);
    let packets = datagrams(right);
    failed(right.listen(packets, 1), libc::EOPNOTSUPP);
    failed(right.accept(packets, 0), libc::EOPNOTSUPP);
    failed(right.shutdown(packets, libc::SHUT_RD), libc::ENOTCONN);
    failed(option(right, packets, libc::IPPROTO_TCP, libc::TCP_NODELAY), libc::ENOPROTOOPT);
}

#[test]
fn sets_of_descriptors_are_kept_in_order() {
    let [table, _other]: &[Descriptors; 2] = &pair();
    let (epoll, socket) = (table.epoll_create(1).expect("a descriptor"), stream(table));
    let event = Some(EpollEvent { events: libc::EPOLLIN as u32, data: 1 });
    failed(table.epoll_create(0), libc::EINVAL);
    failed(table.epoll_control(epoll, libc::EPOLL_CTL_ADD, epoll, event), libc::EINVAL);
    failed(table.epoll_control(socket, libc::EPOLL_CTL_ADD, epoll, event), libc::EINVAL);
    failed(table.epoll_control(epoll, libc::EPOLL_CTL_MOD, socket, event), libc::ENOENT);
    failed(table.epoll_control(epoll, libc::EPOLL_CTL_DEL, socket, event), libc::ENOENT);
    failed(table.epoll_control(epoll, libc::EPOLL_CTL_ADD, socket, None), libc::EFAULT);
    failed(table.epoll_control(epoll, 77, socket, event), libc::EINVAL);
    table.epoll_control(epoll, libc::EPOLL_CTL_ADD, socket, event).expect("it is new");
    failed(table.epoll_control(epoll, libc::EPOLL_CTL_ADD, socket, event), libc::EEXIST);
    failed(table.epoll_wait(epoll, 0, 0), libc::EINVAL);
    failed(table.epoll_wait(socket, 1, 0), libc::EINVAL);
    table.close(socket).expect("it is open");
    assert_eq!(table.epoll_wait(epoll, 4, 0), Ok(vec![]), "what is closed is watched no more");
}
