//! getsockopt and setsockopt, and what they change.

use super::host::*;
use xylem_posix::{Errno, INFO_BYTES};

#[test]
fn what_is_set_is_said() {
    let [table, _other] = &pair();
    let socket = stream(table);
    for (level, name, value) in [
        (libc::SOL_SOCKET, libc::SO_REUSEADDR, 1),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::SOL_SOCKET, libc::SO_PRIORITY, 4),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY, 1),
        (libc::IPPROTO_TCP, libc::TCP_CORK, 1),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG, 1000),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 11),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 12),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 13),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT, 3),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, 1500),
        (libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, 2),
        (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, 4096),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN, 5),
        (libc::IPPROTO_IP, libc::IP_TOS, 0x20),
        (libc::IPPROTO_IP, libc::IP_TTL, 9),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        (libc::IPPROTO_IP, libc::IP_RECVERR, 1),
    ] {
        assert_ne!(option(table, socket, level, name), Ok(value), "{level} {name}");
        assert_eq!(set(table, socket, level, name, value), Ok(()), "{level} {name}");
        assert_eq!(option(table, socket, level, name), Ok(value), "{level} {name}");
    }
    set(table, socket, libc::SOL_SOCKET, libc::SO_RCVBUF, 5000).expect("a size");
    assert_eq!(option(table, socket, libc::SOL_SOCKET, libc::SO_RCVBUF), Ok(10_000), "Linux says twice of it");
    set(table, socket, libc::IPPROTO_IP, libc::IP_TOS, 0x23).expect("marks are not for applications");
    assert_eq!(option(table, socket, libc::IPPROTO_IP, libc::IP_TOS), Ok(0x20));
    assert_eq!(option(table, socket, libc::SOL_SOCKET, libc::SO_TYPE), Ok(libc::SOCK_STREAM));
    assert_eq!(option(table, socket, libc::SOL_SOCKET, libc::SO_ACCEPTCONN), Ok(0));
}

#[test]
fn what_cannot_be_is_not_set() {
    let [table, _other] = &pair();
    let socket = stream(table);
    for (level, name, value, errno) in [
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG, 87, libc::EINVAL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 0, libc::EINVAL),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, 32_768, libc::EINVAL),
        (libc::IPPROTO_TCP, libc::TCP_SYNCNT, 128, libc::EINVAL),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, -1, libc::EINVAL),
        (libc::IPPROTO_IP, libc::IP_TTL, 256, libc::EINVAL),
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, 6, libc::EINVAL),
        (libc::IPPROTO_TCP, 9999, 0, libc::ENOPROTOOPT),
        (libc::SOL_SOCKET, 9999, 0, libc::ENOPROTOOPT),
        (9999, 1, 0, libc::ENOPROTOOPT),
    ] {
        assert_eq!(set(table, socket, level, name, value), Err(Errno(errno)), "{level} {name} {value}");
    }
    assert_eq!(table.setsockopt(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &[1]), Err(Errno(libc::EINVAL)));
    assert_eq!(table.setsockopt(socket, libc::SOL_SOCKET, libc::SO_LINGER, &[1; 4]), Err(Errno(libc::EINVAL)));
}

#[test]
fn a_congestion_control_goes_by_its_name() {
    let hosts = pair();
    let [ours, _theirs] = connected(&hosts, 80);
    let [left, _right] = &hosts;
    let name = |table: &xylem_posix::Descriptors| {
        let mut value = [0; 16];
        let count = table.getsockopt(ours, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut value).expect("it has one");
        String::from_utf8_lossy(&value[..count]).trim_end_matches('\0').to_owned()
    };
    assert_eq!(name(left), "cubic");
    assert_eq!(left.setsockopt(ours, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"reno\0"), Ok(()));
    assert_eq!(name(left), "reno");
    let unknown = left.setsockopt(ours, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"vegas");
    assert_eq!((unknown, name(left)), (Err(Errno(libc::ENOENT)), "reno".to_owned()));
}

#[test]
fn a_connection_says_how_it_is_doing() {
    let hosts = pair();
    let [ours, theirs] = connected(&hosts, 80);
    let [left, right] = &hosts;
    let mut info = [0; INFO_BYTES];
    assert_eq!(left.getsockopt(ours, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info), Ok(INFO_BYTES));
    let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("four bytes"));
    // State, options, then the segment size and the congestion window.
    assert_eq!((info[0], info[5] & 7), (1, 7));
    assert!((500..1500).contains(&word(16)) && word(80) == 10, "{} {}", word(16), word(80));
    write(left, ours, b"x").expect("there is room");
    right.close(theirs).expect("it is open");
    assert_eq!(
        left.getsockopt(ours, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info[..104]),
        Ok(104),
        "as older ones ask"
    );
    let listens = listener(right, 81);
    assert_eq!(right.getsockopt(listens, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info[..1]), Ok(1));
    assert_eq!(info[0], 10);
}

#[test]
fn a_listeners_connections_inherit_what_was_set() {
    let [left, right] = &pair();
    let listens = stream(right);
    set(right, listens, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1).expect("it may");
    set(right, listens, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1).expect("it may");
    right.bind(listens, &v4("0.0.0.0", 80)).expect("the port is free");
    right.listen(listens, 1).expect("it is bound");
    unblock(right, listens);
    left.connect(stream(left), &v4(HOSTS[1], 80)).expect("it listens");
    poll(right, listens, libc::POLLIN);
    let (accepted, _) = right.accept(listens, 0).expect("one is in line");
    assert_eq!(option(right, accepted, libc::IPPROTO_TCP, libc::TCP_NODELAY), Ok(1));
    assert_eq!(option(right, accepted, libc::SOL_SOCKET, libc::SO_KEEPALIVE), Ok(1));
    assert_eq!(right.fcntl(accepted, libc::F_GETFL, 0), Ok(libc::O_RDWR), "but whether calls wait it does not");
}
