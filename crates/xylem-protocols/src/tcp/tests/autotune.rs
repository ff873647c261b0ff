//! Buffers that grow: with what an application reads, with what may be in flight, and no further than they may.

use super::link::Net;
use super::script::{Script, segment};
use super::streams::bytes;
use crate::tcp::TcpConfig;
use xylem_core::{Duration, Setting};

/// Sends `count` bytes over a link of 25 ms each way, the receiver reading at once; what the two buffers became, and how
/// long it took.
fn transfer(config: TcpConfig, count: usize, reads: bool) -> (usize, usize, Duration) {
    let mut net = Net::with(7, config.clone(), config);
    net.delay = Duration::from_millis(25);
    let (a, b) = net.connect();
    net.hosts[1].connections[b].reads = reads;
    let stream = bytes(7, count);
    let (began, mut sent) = (net.now, 0);
    while net.hosts[1].connections[b].received.len() < count {
        while sent < count {
            let now = net.now;
            let taken = net.hosts[0].push(now, a, &stream[sent..]);
            sent += taken;
            if taken == 0 {
                break;
            }
        }
        if !net.step(began + Duration::from_secs(30)) {
            break;
        }
    }
    let now = net.now;
    let send = net.hosts[0].status(now, a).send_buffer;
    (net.hosts[1].status(now, b).receive_buffer, send, now.since(began))
}

fn config() -> TcpConfig {
    TcpConfig { receive_buffer: 64 << 10, send_buffer: 64 << 10, ..TcpConfig::default() }
}

#[test]
fn a_reader_that_keeps_up_gets_a_larger_buffer_and_so_does_its_writer() {
    let fixed = TcpConfig { receive_buffer_max: 0, send_buffer_max: 0, ..config() };
    let (receive, send, slow) = transfer(fixed, 4_000_000, true);
    assert_eq!((receive, send), (64 << 10, 64 << 10));
    let (receive, send, fast) = transfer(config(), 4_000_000, true);
    assert!(receive > 512 << 10 && receive <= 4 << 20, "{receive}");
    assert!(send > 512 << 10 && send <= 4 << 20, "{send}");
    assert!(fast * 3 < slow, "{fast:?} against {slow:?}: 64 KB in 50 ms were the limit");
    let most = TcpConfig { receive_buffer_max: 200_000, send_buffer_max: 150_000, ..config() };
    let (receive, send, _) = transfer(most, 4_000_000, true);
    assert_eq!((receive, send), (200_000, 150_000), "as far as it may");
}

#[test]
fn a_reader_that_does_not_read_gets_no_more() {
    let (receive, _, _) = transfer(config(), 1_000_000, false);
    assert_eq!(receive, 64 << 10);
}

#[test]
fn whoever_says_a_size_gets_that_size() {
    let mut script = Script::open(TcpConfig { timestamps: false, window_scaling: false, ..TcpConfig::default() });
    script.set(Setting::ReceiveBuffer(20_000));
    script.set(Setting::SendBuffer(30_000));
    for place in 0..500 {
        script.inject(segment(".", 1 + place * 1000, 1).data(&[1; 1000]));
        script.wait_ms(1);
    }
    script.raw_sent();
    let status = script.host.status(script.now, 0);
    assert_eq!((status.receive_buffer, status.send_buffer), (20_000, 30_000));
}

/// The scale is chosen for what the buffer may become, for a SYN says it once.
#[test]
fn the_scale_allows_for_growth() {
    let config = TcpConfig { receive_buffer: 20_000, receive_buffer_max: 1 << 20, ..TcpConfig::default() };
    assert_eq!(config.window_scale(), 5);
}
