//! TCP Fast Open (RFC 7413): cookies asked for, granted and shown; data with the SYN, taken or refused; ways that swallow
//! it; and what a listener does not put up with.

use super::link::{Faults, Net};
use super::script::{Script, Sent, segment};
use super::streams::bytes;
use crate::tcp::{FastOpenUse, TcpConfig, drops};
use xylem_core::{Duration, Event, Random, Setting};
use xylem_wire::{FastOpenCookie, TcpFlags};

const COOKIE: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

/// A connection to the scripted server whose application has `data` before the SYN goes: what goes.
fn begin(script: &mut Script, port: u16, data: &[u8]) -> Sent {
    let index = script.host.open(script.now, Some(port), 80).unwrap();
    assert_eq!(script.host.push(script.now, index, data), data.len());
    script.host.expire(script.now);
    let syn = script.raw_sent().remove(0);
    script.ours = syn.header.sequence;
    script.our_port = port;
    syn
}

/// A client that has a cookie of the scripted server, from a connection before.
fn known(config: TcpConfig) -> Script {
    let mut script = Script::new(config);
    let syn = begin(&mut script, 40_000, b"first");
    assert_eq!((syn.options.fast_open, syn.data.len()), (Some(FastOpenCookie::REQUEST), 0), "section 4.1.1: asks");
    script.inject(segment("S.", 0, 1).mss(1000).cookie(&COOKIE));
    let sent = script.raw_sent();
    assert_eq!(sent.iter().map(|sent| sent.data.clone()).collect::<Vec<_>>().concat(), b"first");
    assert!(!script.host.status(script.now, 0).fast_open);
    script.inject(segment(".", 1, 6));
    script
}

/// Sections 4.1.1 and 4.1.3.
#[test]
fn a_client_asks_first_and_sends_data_the_next_time() {
    let mut script = known(Script::config());
    let data = bytes(1, 3000);
    let syn = begin(&mut script, 40_001, &data);
    assert_eq!(syn.options.fast_open, FastOpenCookie::new(&COOKIE));
    let room = 1000 - syn.options.length();
    assert_eq!(syn.data, &data[..room], "the server's segment size, options off (section 4.2.1)");
    script.inject(segment("S.", 0, 1 + room as u32).mss(1000));
    let sent: Vec<u8> = script.raw_sent().into_iter().flat_map(|sent| sent.data).collect();
    assert_eq!(sent, &data[room..room + sent.len()]);
    assert!(sent.len() >= 2000, "and the rest goes on");
    assert!(script.host.status(script.now, 1).fast_open);
    assert_eq!(script.host.connections[1].events, [Event::Opened]);
}

#[test]
fn without_data_or_leave_a_syn_is_as_it_was() {
    let mut script = known(Script::config());
    let syn = begin(&mut script, 40_001, b"");
    assert_eq!((syn.options.fast_open, syn.data.len()), (None, 0));
    for fast_open in [FastOpenUse::Off, FastOpenUse::Server] {
        let mut script = Script::new(TcpConfig { fast_open, ..Script::config() });
        assert_eq!(begin(&mut script, 40_000, b"abc").options.fast_open, None);
    }
}

/// The server takes the SYN but not its data: all of it goes again, as if it had not been sent.
#[test]
fn data_that_was_not_taken_goes_after_the_handshake() {
    for taken in [0u32, 100] {
        let mut script = known(Script::config());
        let data = bytes(2, 500);
        begin(&mut script, 40_001, &data);
        script.inject(segment("S.", 0, 1 + taken).mss(1000));
        let sent: Vec<u8> = script.raw_sent().into_iter().flat_map(|sent| sent.data).collect();
        assert_eq!(sent, &data[taken as usize..]);
        let status = script.host.status(script.now, 1);
        assert_eq!((status.fast_open, status.retransmitted), (taken > 0, 0));
        script.inject(segment(".", 1, 501));
        assert_eq!(script.host.status(script.now, 1).in_flight, 0);
    }
    // Beyond what was sent, or before the SYN, is still nobody's acknowledgment.
    let mut script = known(Script::config());
    begin(&mut script, 40_001, &bytes(2, 500));
    for wrong in [0, 502] {
        script.inject(segment("S.", 0, wrong).mss(1000));
        assert_eq!(script.host.state(script.now, 1), "SYN-SENT");
        assert_eq!(script.raw_sent()[0].header.flags, TcpFlags::RST);
    }
    script.inject(segment("R.", 0, 501));
    assert_eq!(script.host.connections[1].events, [Event::Refused], "a reset may acknowledge the data too");
}

/// Section 4.1.3.1: a way that swallows such SYNs is left alone for an hour.
#[test]
fn a_syn_that_is_sent_again_goes_alone_and_the_way_is_remembered() {
    let mut script = known(Script::config());
    begin(&mut script, 40_001, b"data");
    script.wait_ms(1500);
    let again = script.raw_sent().remove(0);
    assert_eq!((again.options.fast_open, again.data.len(), again.text.as_str()), (None, 0, "S 0+0"));
    script.inject(segment("S.", 0, 1).mss(1000));
    assert_eq!(script.raw_sent().iter().map(|sent| sent.data.clone()).collect::<Vec<_>>().concat(), b"data");
    let syn = begin(&mut script, 40_002, b"data");
    assert_eq!((syn.options.fast_open, syn.data.len()), (None, 0), "left alone");
    script.wait(Duration::from_secs(3601));
    script.raw_sent();
    assert_eq!(begin(&mut script, 40_003, b"data").options.fast_open, Some(FastOpenCookie::REQUEST), "tried anew");
}

#[test]
fn a_server_that_grants_nothing_is_not_asked_again_for_a_while() {
    let mut script = Script::new(Script::config());
    begin(&mut script, 40_000, b"x");
    script.inject(segment("S.", 0, 1).mss(1000));
    script.raw_sent();
    assert_eq!(begin(&mut script, 40_001, b"x").options.fast_open, None);
}

/// A server of ours that takes data of `pending` peers at once, and the cookie it grants the scripted peer.
fn server(pending: usize) -> (Script, Vec<u8>) {
    let mut script = Script::new(Script::config());
    script.host.listen_early(40_000, 64, pending).unwrap();
    script.inject(segment("S", 0, 0).mss(1000).cookie(&[]));
    let answer = script.raw_sent().remove(0);
    let cookie = answer.options.fast_open.map(|cookie| cookie.as_bytes().to_vec()).unwrap_or_default();
    script.peer_port += 1;
    (script, cookie)
}

/// Sections 4.1.2 and 4.2.2.
#[test]
fn a_right_cookie_lets_data_up_before_the_handshake_ends() {
    let (mut script, cookie) = server(4);
    assert_eq!(cookie.len(), 8);
    script.inject(segment("S", 0, 0).mss(1000).cookie(&cookie).data(b"request"));
    assert_eq!(script.host.connections[0].received, b"request");
    assert_eq!(script.events(), [Event::Opened]);
    let answer = script.raw_sent().remove(0);
    script.ours = answer.header.sequence;
    assert_eq!(answer.header.acknowledgment.since(script.theirs), 8, "SYN and data");
    assert_eq!(answer.options.fast_open, None, "the cookie is fresh enough");
    // The answer may go before the peer has proven anything (section 4.2.2), and counts as sent.
    script.push(1500);
    let sent = script.raw_sent();
    assert_eq!(sent[0].text, ". 1+1000 ack 8");
    // Our answer was lost: the SYN comes again, alone or not, and gets the same answer.
    script.inject(segment("S", 0, 0).mss(1000));
    let again = script.raw_sent().remove(0);
    assert_eq!((again.header.flags, again.text.as_str()), (answer.header.flags, "S. 0+0 ack 8"));
    assert_eq!(script.state(), "SYN-RECEIVED");
    script.inject(segment(".", 8, 1001));
    assert_eq!(script.state(), "ESTABLISHED");
    assert!(script.events().is_empty(), "told once");
    assert!(script.host.status(script.now, 0).fast_open);
    assert_eq!(script.host.connections[0].received, b"request", "once");
}

#[test]
fn a_wrong_cookie_or_none_costs_the_data_and_nothing_else() {
    for cookie in [Some([9u8; 8].as_slice()), Some(&[]), None] {
        let (mut script, _) = server(4);
        let syn = segment("S", 0, 0).mss(1000).data(b"request");
        script.inject(cookie.map_or(syn.clone(), |cookie| syn.cookie(cookie)));
        let answer = script.raw_sent().remove(0);
        assert_eq!(answer.header.acknowledgment.since(script.theirs), 1, "section 4.1.2: the SYN alone");
        assert_eq!(answer.options.fast_open.is_some(), cookie.is_some(), "and a right one for the next time");
        assert!(script.host.connections.is_empty());
        script.ours = answer.header.sequence;
        script.inject(segment(".", 1, 1).data(b"request"));
        assert_eq!(script.host.connections[0].received, b"request");
    }
    let (mut script, cookie) = server(0);
    assert!(cookie.is_empty(), "a listener that takes no data grants nothing");
    script.inject(segment("S", 0, 0).cookie(&COOKIE).data(b"request"));
    assert_eq!(script.raw_sent()[0].options.fast_open, None);
}

/// A cookie that will soon not count is renewed with the answer.
#[test]
fn an_old_cookie_counts_and_is_renewed() {
    let (mut script, cookie) = server(4);
    script.wait(Duration::from_secs(3600));
    script.raw_sent();
    script.inject(segment("S", 0, 0).cookie(&cookie).data(b"request"));
    let answer = script.raw_sent().remove(0);
    assert_eq!(script.host.connections[0].received, b"request");
    assert!(answer.options.fast_open.is_some_and(|renewed| renewed.as_bytes() != cookie));
}

/// Section 5.1: whoever sees a cookie can forge SYNs from its address. So many bring data, and no more; a reset, which is
/// as easily forged, frees nothing at once.
#[test]
fn peers_that_have_proven_nothing_are_bounded() {
    let (mut script, cookie) = server(4);
    let syn = |script: &mut Script, port: u16| {
        script.peer_port = port;
        script.inject(segment("S", 0, 0).cookie(&cookie).data(b"request"));
        let sent = script.raw_sent();
        assert_eq!(sent.len(), 1, "one answer each");
        assert!(sent[0].data.is_empty());
        sent[0].header.acknowledgment.since(script.theirs) == 8
    };
    let taken = (1000..1020).filter(|port| syn(&mut script, *port)).count();
    assert_eq!((taken, script.host.connections.len()), (4, 4));
    // Resets, right ones even.
    for port in 1000..1004 {
        script.peer_port = port;
        script.inject(segment("R", 8, 0));
    }
    assert_eq!(script.dropped(&drops::RESET), 4);
    assert!(!syn(&mut script, 2000), "they go on counting");
    script.wait(Duration::from_secs(61));
    script.raw_sent();
    assert!(syn(&mut script, 2001), "but not for ever");
    // One that completes its handshake frees its place at once.
    for port in 2002..2005 {
        assert!(syn(&mut script, port));
    }
    script.peer_port = 2004;
    assert!(!syn(&mut script, 2005));
    let index = script.host.connections.len() - 1;
    script.peer_port = 2004;
    script.inject(segment("S", 0, 0));
    script.ours = script.raw_sent()[0].header.sequence;
    script.inject(segment(".", 8, 1));
    assert_eq!(script.host.state(script.now, index), "ESTABLISHED");
    assert!(syn(&mut script, 2006));
}

/// Without the end of its handshake a connection ends by itself, and an application that has closed leaves nothing.
#[test]
fn a_peer_that_never_comes_back_is_given_up() {
    let (mut script, cookie) = server(1);
    script.inject(segment("S", 0, 0).cookie(&cookie).data(b"request"));
    script.push(5000);
    script.set(Setting::SendClosed);
    script.wait(Duration::from_secs(61));
    let sent = script.raw_sent();
    assert!(sent.iter().filter(|sent| sent.header.flags.contains(TcpFlags::SYN)).count() < 14, "ours and the embryo's");
    let amplified: usize = sent.iter().map(|sent| sent.data.len()).sum();
    assert!(amplified <= 14_600, "at most one initial window is sent to an address that may be forged");
    assert_eq!(script.host.connections[0].events, [Event::Opened, Event::InTrouble, Event::TimedOut]);
    script.close();
    assert!(script.host.connections[0].path.is_none());
}

/// Two of ours over a link that loses, doubles and delays: streams arrive whole, however the SYN's data fared.
#[test]
fn streams_with_early_data_arrive_whole_over_bad_links() {
    let mut taken = 0;
    for seed in 0..60 {
        let mut random = Random::seeded(seed);
        let mut net = Net::new(seed);
        net.hosts[1].listen_early(80, 8, 4).unwrap();
        net.faults = Faults {
            lost: random.below(200_000) as u32,
            doubled: random.below(100_000) as u32,
            late: random.below(300_000) as u32,
            corrupted: random.below(50_000) as u32,
        };
        for round in 0..4usize {
            let stream = bytes(seed + round as u64, 1 + random.below(5000) as usize);
            let index = net.hosts[0].open(net.now, None, 80).unwrap();
            let now = net.now;
            assert_eq!(net.hosts[0].push(now, index, &stream), stream.len());
            net.hosts[0].set(now, index, Setting::SendClosed);
            net.run_for(Duration::from_secs(500));
            let got = net.hosts[1].connections.iter().filter(|connection| connection.received == stream).count();
            assert_eq!(got, 1, "seed {seed}, round {round}: {:?}", net.report());
            let now = net.now;
            let server = net.hosts[1].connections.len() - 1;
            taken += usize::from(net.hosts[1].status(now, server).fast_open);
            net.hosts[1].close(now, server);
            net.run_for(Duration::from_secs(30));
            let now = net.now;
            net.hosts[0].close(now, index);
            net.run_for(Duration::from_secs(100));
        }
        net.run_for(Duration::from_secs(2000));
        for host in &net.hosts {
            assert_eq!(host.protocol.counts(), (0, 0, 0), "seed {seed}: something is left");
            assert_eq!(host.out.pool().held(), (0, 0));
        }
    }
    assert!(taken > 40, "{taken} of 240 brought data early");
}

/// RFC 7413, section 4.1.3: a way that takes the SYN with its data and nothing afterwards is left alone for a while.
#[test]
fn rfc_7413_4_1_3_a_way_that_swallows_what_follows_is_left_alone() {
    let mut script = known(Script::config());
    let data = bytes(1, 3000);
    let room = begin(&mut script, 40_001, &data).data.len() as u32;
    script.inject(segment("S.", 0, 1 + room).mss(1000));
    script.raw_sent();
    script.wait(Duration::from_secs(5));
    assert!(!script.raw_sent().is_empty(), "it goes on trying");
    let syn = begin(&mut script, 40_002, b"next time");
    assert_eq!((syn.options.fast_open, syn.data.len()), (None, 0));
    // One loss or two are none: what comes through afterwards says that the way is right.
    let mut script = known(Script::config());
    let room = begin(&mut script, 40_001, &data).data.len() as u32;
    script.inject(segment("S.", 0, 1 + room).mss(1000));
    script.wait_ms(700);
    script.inject(segment(".", 1, 1 + room + 2000));
    script.raw_sent();
    assert_eq!(script.host.push(script.now, 1, b"more"), 4);
    script.wait(Duration::from_secs(5));
    script.raw_sent();
    let syn = begin(&mut script, 40_002, b"next time");
    assert!(!syn.data.is_empty());
}
