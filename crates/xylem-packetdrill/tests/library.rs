//! The library under a program that is careless or worse: null pointers, wrong lengths and descriptors, packets of rubbish,
//! runs that have ended. A call fails with its errno; nothing crashes and nothing hangs.

mod player;

use player::driver::{Driver, hex, is_unable};

#[test]
fn what_is_wrong_is_told_by_errno() {
    if is_unable("what_is_wrong_is_told_by_errno") {
        return;
    }
    let mut driver = Driver::new("v4", None);
    assert_eq!(driver.result("socket 2 1 0"), Ok(3));
    let huge = i64::MAX;
    for (words, errno) in [
        ("bind 3 null 16".to_owned(), libc::EFAULT),
        ("bind 3 null 0".to_owned(), libc::EINVAL),
        ("bind 3 x:0200 5000".to_owned(), libc::EINVAL),
        ("connect 3 null 16".to_owned(), libc::EFAULT),
        ("read 3 null 10".to_owned(), libc::EFAULT),
        (format!("read 3 null {}", -1i64), libc::EINVAL),
        (format!("write 3 null {huge}"), libc::EFAULT),
        ("readv 3 null 2".to_owned(), libc::EFAULT),
        ("readv 3 null -1".to_owned(), libc::EINVAL),
        ("writev 3 null 1025".to_owned(), libc::EINVAL),
        ("recvfrom 3 null 0 0 null null".to_owned(), libc::ENOTCONN),
        ("sendto 3 z:5 5 0 x:02 1".to_owned(), libc::EPIPE),
        ("getsockopt 3 1 4 null l:4".to_owned(), libc::EFAULT),
        ("getsockopt 3 1 4 o:4 null".to_owned(), libc::EFAULT),
        (format!("getsockopt 3 1 4 o:4 l:{}", u32::MAX), libc::EINVAL),
        ("setsockopt 3 1 2 null 4".to_owned(), libc::EFAULT),
        ("setsockopt 3 1 2 x:01000000 -4".to_owned(), libc::EINVAL),
        ("poll null 3 0".to_owned(), libc::EFAULT),
        ("poll null 99999 0".to_owned(), libc::EINVAL),
        ("epoll_wait 3 null 1 0".to_owned(), libc::EFAULT),
        ("pipe null".to_owned(), libc::EFAULT),
        ("ioctl 3 21537 null".to_owned(), libc::EFAULT),
        ("ioctl 3 21531 null".to_owned(), libc::EFAULT),
        ("netdev_send null 40".to_owned(), libc::EFAULT),
        ("netdev_send null 0".to_owned(), libc::EINVAL),
        ("netdev_send z:10 70000".to_owned(), libc::EMSGSIZE),
        ("netdev_receive null null null".to_owned(), libc::EFAULT),
    ] {
        assert_eq!(driver.result(&words), Err(errno), "{words}");
    }
    assert_eq!(driver.result("gettimeofday null"), Ok(0));
    assert_eq!(driver.result("fcntl 3 3"), Ok(i64::from(libc::O_RDWR)), "without its variable argument");
    assert_eq!(driver.result("fcntl 3 4 2048"), Ok(0), "and with it");
    assert_eq!(driver.result("fcntl 3 3"), Ok(i64::from(libc::O_RDWR | libc::O_NONBLOCK)));
}

#[test]
fn a_run_that_has_ended_is_no_run() {
    if is_unable("a_run_that_has_ended_is_no_run") {
        return;
    }
    let mut driver = Driver::new("null", None);
    assert_eq!(driver.result("socket 2 1 0"), Ok(3));
    assert_eq!(driver.result(&format!("bind 3 x:02001f90{} 16", "00".repeat(12))), Ok(0));
    assert_eq!(driver.result("listen 3 1"), Ok(0));
    // A call that waits when the run ends comes back.
    assert_eq!(driver.block("accept 3 null null"), "blocked");
    assert_eq!(driver.say("free"), "freed");
    assert_eq!((driver.join().result, driver.result("socket 2 1 0")), (-1, Err(libc::EINVAL)));
    assert_eq!(driver.say("free"), "freed");
}

#[test]
fn what_the_stack_is_not_ready_for_is_refused_in_a_sentence() {
    if is_unable("what_the_stack_is_not_ready_for_is_refused_in_a_sentence") {
        return;
    }
    for (flags, errno) in [("v6", libc::EAFNOSUPPORT), ("mtu=9", libc::EINVAL), ("what", libc::EINVAL)] {
        assert_eq!(Driver::new(flags, None).result("socket 2 1 0"), Err(errno), "{flags}");
    }
    assert_eq!(Driver::new("addr=10.1.2.3,prefix=31,mtu=576", None).result("socket 10 1 0"), Ok(3));
}

/// Time passes only when the script lets it, and by a microsecond when it looks.
#[test]
fn the_clock_is_the_scripts() {
    if is_unable("the_clock_is_the_scripts") {
        return;
    }
    let mut driver = Driver::new("v4", None);
    let began = driver.now();
    assert_eq!(driver.now() - began, 1);
    assert_eq!(driver.until(began + 3_600_000_000) - began, 3_600_000_001);
    assert!(driver.receive().is_none());
    assert_eq!(driver.now() - began, 3_600_050_002, "an idle look for a packet takes fifty milliseconds");
    // A wait of the thread that moves the clock lets time pass by itself.
    assert_eq!(driver.result("socket 2 1 0"), Ok(3));
    let entry = hex(&[&3i32.to_ne_bytes()[..], &[1, 0, 0, 0]].concat());
    let before = driver.now();
    assert_eq!(driver.result(&format!("bind 3 x:02001f90{} 16", "00".repeat(12))), Ok(0));
    assert_eq!(driver.result("listen 3 1"), Ok(0));
    assert_eq!(driver.result(&format!("poll p:{entry} 1 250")), Ok(0));
    let passed = driver.now() - before;
    assert!((250_000..250_100).contains(&passed), "{passed}");
}

/// Rubbish, seeded: whole packets, and beginnings of right ones.
#[test]
fn packets_of_rubbish_do_no_harm() {
    if is_unable("packets_of_rubbish_do_no_harm") {
        return;
    }
    let mut driver = Driver::new("v4", None);
    assert_eq!(driver.result("socket 2 1 0"), Ok(3));
    assert_eq!(driver.result(&format!("bind 3 x:02001f90{} 16", "00".repeat(12))), Ok(0));
    assert_eq!(driver.result("listen 3 1"), Ok(0));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..2_000 {
        let length = 1 + (next() % 120) as usize;
        let mut packet: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        if round % 2 == 0 && length >= 20 {
            // The front of an IPv4 packet for us, of TCP.
            packet[0] = 0x45;
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            packet[9] = 6;
            packet[16..20].copy_from_slice(&[192, 168, 0, 1]);
        }
        assert_eq!(driver.send(&packet), 0);
    }
    assert_eq!(driver.result("socket 2 1 0"), Ok(4), "it still works");
    assert_eq!(driver.say("free"), "freed");
}

/// The places of TCP_INFO are those of the C library's struct.
#[test]
fn the_layout_of_tcp_info_is_the_c_compilers() {
    if is_unable("the_layout_of_tcp_info_is_the_c_compilers") {
        return;
    }
    assert_eq!(Driver::new("v4", None).say("info"), "16 24 68 76 80 100");
}
