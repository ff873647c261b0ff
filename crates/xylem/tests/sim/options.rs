//! A graph's option does what it says: each is set in a scenario, and the frames or the outcome show it.

use crate::{run, two_hosts};
use std::sync::{Arc, Mutex};
use xylem::catalogue;
use xylem::commands::sim::plan;
use xylem_sim::HostId;
use xylem_wire::{
    ArpHeader, EtherType, EthernetAddress, EthernetHeader, Header, IpProtocol, Ipv4Header, TcpFlags, TcpHeader,
    TcpOptions,
};

const CABLE: &str = "cable = link client -- server { delay = 1ms }\n";

/// Every frame that the client has sent in a run, in order.
fn sent(client: &str, rest: &str) -> Vec<Vec<u8>> {
    let catalogue = catalogue::builtin();
    let text = two_hosts(client, "", &format!("{CABLE}{rest}\ncheck delivered"));
    let plan = plan("test.sim", &text, &catalogue).unwrap_or_else(|problems| panic!("{problems}"));
    let frames = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&frames);
    let report = plan.run_watched(
        1,
        Some(Box::new(move |sight| {
            if sight.host == HostId(0) && !sight.arrives {
                kept.lock().expect("nobody panics with it").push(sight.frame.to_vec());
            }
        })),
    );
    assert!(report.is_right(), "{report}");
    let frames = frames.lock().expect("nobody panics with it");
    frames.clone()
}

fn link(frame: &[u8]) -> EthernetHeader {
    EthernetHeader::parse(frame).expect("a whole frame")
}

/// The IPv4 packets among frames: header and payload.
fn packets(frames: &[Vec<u8>]) -> Vec<(Ipv4Header, &[u8])> {
    let packets =
        frames.iter().filter(|frame| link(frame).kind == EtherType::IPV4).map(|frame| &frame[EthernetHeader::LEN..]);
    packets
        .map(|packet| {
            let header = Ipv4Header::parse(packet).expect("a whole header");
            (header, &packet[header.header_length()..usize::from(header.total_length)])
        })
        .collect()
}

/// The TCP segments among frames: header, options, payload bytes.
fn segments(frames: &[Vec<u8>]) -> Vec<(TcpHeader, TcpOptions, usize)> {
    let packets = packets(frames).into_iter().filter(|(header, _)| header.protocol == IpProtocol::TCP);
    packets
        .map(|(_, bytes)| {
            let header = TcpHeader::parse(bytes).expect("a whole header");
            let options = TcpOptions::parse(header.options(bytes)).expect("our own options are right");
            (header, options, bytes.len() - header.header_length())
        })
        .collect()
}

const PING: &str = "echo = ping client -> server";
/// The neighbours know each other before anything else happens.
const WARM: &str = "warm = ping client -> server { count = 1 }\n";
const TRANSFER: &str = "bulk = transfer client -> server { there = 100KiB, back = 10KiB }";

#[test]
fn ethernet() {
    let frames = sent(", link0.address = \"02:00:00:00:00:07\"", PING);
    let ours = EthernetAddress([2, 0, 0, 0, 0, 7]);
    assert!(frames.iter().all(|frame| link(frame).source == ours));
    let arp: Vec<_> =
        frames.iter().filter_map(|frame| ArpHeader::parse(frame.get(EthernetHeader::LEN..)?).ok()).collect();
    assert!(!arp.is_empty() && arp.iter().all(|packet| packet.sender_hardware == ours), "ARP says the same address");
    let longest = |client| sent(client, TRANSFER).iter().map(Vec::len).max();
    assert_eq!((longest(""), longest(", link0.mtu = 600")), (Some(1514), Some(614)));
}

#[test]
fn arp() {
    let requests = |client| {
        let frames = sent(client, PING);
        frames.iter().filter(|frame| link(frame).kind == EtherType::ARP).count()
    };
    // Two announcements and one question; then the question alone.
    assert_eq!((requests(""), requests(", arp.announcements = 0")), (3, 1));
    let asked = |client: &str| {
        let rest = format!(
            "{CABLE}lost = datagrams client -> server {{ count = 1, address = 10.0.0.9, returned = 0 }}\ncheck delivered"
        );
        run(&two_hosts(client, "", &rest)).links[0].sent
    };
    assert_eq!((asked(""), asked(", arp.retries = 1, arp.announcements = 0")), (2 + 3, 1));
}

#[test]
fn ipv4() {
    let hops = |client| packets(&sent(client, PING))[0].0.time_to_live;
    assert_eq!((hops(""), hops(", ip.ttl = 9")), (64, 9));
    let routed = |forwarding: &str| {
        run(&format!(
            "client = host {{ ip.address = \"10.0.1.2/24\", ip.gateway = \"10.0.1.1\" }}\n\
             router = host {{ graph = router, ip.address = \"10.0.1.1/24, 10.0.2.1/24\", ip.routes = \"10.9.0.0/16 via 10.0.2.2\", \
                              ip.forwarding = {forwarding} }}\n\
             server = host {{ ip.address = \"10.0.2.2/24\", ip.gateway = \"10.0.2.1\" }}\n\
             near = link client -- router:left\nfar = link router:right -- server\n{PING}\ncheck delivered"
        ))
    };
    let (on, off) = (routed("true"), routed("false"));
    assert!(on.is_right(), "{on}");
    assert!(!off.is_right() && off.links[2].delivered == off.links[2].sent, "{off}");
}

#[test]
fn icmp() {
    let silent = |server: &str| run(&two_hosts("", server, &format!("{CABLE}{PING}\ncheck delivered")));
    assert!(silent("").is_right());
    let off = silent(", icmp.echo = false");
    assert_eq!(off.traffic[0].how, "0 came back; at least 3 had to");
    assert!(off.hosts[1].drops.iter().any(|dropped| dropped.protocol == "icmp" && dropped.count == 3), "{off}");
}

#[test]
fn udp() {
    let each = |port: u16| format!("to{port} = datagrams client -> server {{ port = {port}, count = 1 }}\n");
    let many: String = (1..=64).map(each).collect();
    let report = |server: &str| run(&two_hosts("", server, &format!("{CABLE}{many}check delivered")));
    assert!(report("").is_right());
    let few = report(", udp.enables = 16");
    let right = few.traffic.iter().filter(|drove| drove.right).count();
    assert!((1..=16).contains(&right), "{few}");
    assert!(few.traffic.iter().all(|drove| drove.right || drove.how.contains("the limit is reached")), "{few}");
}

#[test]
fn tcp_on_the_wire() {
    let syn = |client| segments(&sent(client, TRANSFER))[0];
    let usual = syn("").1;
    assert!(usual.timestamps.is_some() && usual.window_scale.is_some(), "{usual:?}");
    assert!(syn(", tcp.timestamps = false").1.timestamps.is_none());
    assert!(syn(", tcp.window_scaling = false").1.window_scale.is_none());
    assert_eq!(syn(", tcp.receive_buffer = 8KiB, tcp.window_scaling = false").0.window, 8192);
    // The first flight: all data sent before the first acknowledgment of data can have come, a round trip after the first.
    let flight = |client| {
        let all = segments(&sent(client, "bulk = transfer client -> server { there = 100KiB, start = 1s }"));
        let first = all.iter().position(|(_, _, length)| *length > 0).expect("data was sent");
        let acknowledged = all[first].0.acknowledgment;
        all[first..].iter().take_while(|(header, ..)| header.acknowledgment == acknowledged).count()
    };
    assert!(flight(", tcp.initial_window = 2") < flight(""), "a smaller window at the start");
}

#[test]
fn tcp_in_time() {
    let rest =
        |options: &str| format!("{CABLE}bulk = transfer client -> server {{ there = 1KiB{options} }}\ncheck delivered");
    let impatient = run(&two_hosts(
        ", tcp.open_give_up_after = 2s, arp.retries = 100",
        "",
        &rest(", address = 10.0.0.9, outcome = fails"),
    ));
    assert!(impatient.is_right(), "{impatient}");
    let when = |report: &xylem_sim::scenario::Report| report.traffic[0].done_at_ns.expect("it is done");
    assert!((2_000_000_000..3_000_000_000).contains(&when(&impatient)), "{impatient}");
    // The SYN is lost with the cable pulled; the first timeout decides when the next one goes.
    let pulled = |client: &str| {
        let report = run(&two_hosts(
            client,
            "",
            &format!("{WARM}{}\npull cable {{ at = 1s, back = 1050ms }}", rest(", start = 1010ms")),
        ));
        assert!(report.is_right(), "{report}");
        report.traffic[1].done_at_ns.expect("it is done")
    };
    let (usual, quick) = (pulled(""), pulled(", tcp.rto_initial = 100ms"));
    assert!(usual > 2_000_000_000 && quick < 1_500_000_000, "{usual} {quick}");
}

#[test]
fn tcps_limits() {
    let many = format!("{CABLE}many = transfer client -> server {{ count = 64, there = 1KiB }}\ncheck delivered");
    for (client, server) in [("", ", tcp.enables = 16"), (", tcp.connections = 16", "")] {
        let few = run(&two_hosts(client, server, &many));
        let right = few.traffic.iter().filter(|drove| drove.right).count();
        assert!((1..=16).contains(&right), "{few}");
        assert!(few.traffic.iter().all(|drove| drove.right || drove.how.contains("the limit is reached")), "{few}");
    }
}

#[test]
fn a_reset_is_no_part_of_a_good_transfer() {
    let flags = segments(&sent("", TRANSFER)).iter().fold(TcpFlags::NONE, |all, (header, ..)| all | header.flags);
    assert!(flags.contains(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::ACK) && !flags.contains(TcpFlags::RST));
}
