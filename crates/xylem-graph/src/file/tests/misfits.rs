//! Graphs that cannot be built: what is said about each misfit, and where, to the letter.

use super::{descriptions, says};
use crate::file::*;

#[test]
fn empty() {
    says(
        r##""##,
        &[
            r##"1:1: the graph has no nodes; expected at least one protocol over a device; mend: write `link0 = ethernet over auto`"##,
        ],
    );
}

#[test]
fn unknown_protocol() {
    says(
        r##"link0 = ethrenet over auto
x = quic over link0
"##,
        &[
            r##"1:9: protocol `ethrenet` is unknown; expected `arp`, `ethernet`, `fragmenter`, `icmp`, `ipv4`, `loopback`, `request-reply`, `sockets`, `tcp`, `toy`, `udp`, `vdrop` or `vsize`; mend: write `ethernet`"##,
            r##"2:5: protocol `quic` is unknown; expected `arp`, `ethernet`, `fragmenter`, `icmp`, `ipv4`, `loopback`, `request-reply`, `sockets`, `tcp`, `toy`, `udp`, `vdrop` or `vsize`; mend: write one of these, or register the protocol with the program"##,
        ],
    );
}

#[test]
fn unknown_lower() {
    says(
        r##"link0 = ethernet over auto
arp over lnk0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
udp over ipv4
icmp over ip
tcp over nothing-like-it
"##,
        &[
            r##"2:10: no node is named `lnk0`; expected a device, `link0`, `ip`, `udp`, `icmp` or `tcp`; mend: write `link0`"##,
            r##"4:10: no node is named `ipv4`; expected a device, `link0`, `arp`, `ip`, `icmp` or `tcp`; mend: write `ip`"##,
            r##"6:10: no node is named `nothing-like-it`; expected a device, `link0`, `arp`, `ip`, `udp` or `icmp`; mend: add a line for `nothing-like-it`"##,
        ],
    );
}

#[test]
fn device_misspelt() {
    says(
        r##"link0 = ethernet over atuo
toy over link0
"##,
        &[r##"1:23: no node is named `atuo`; expected a device or `toy`; mend: write `auto`"##],
    );
}

#[test]
fn circles() {
    says(
        r##"link0 = ethernet over auto
a = vdrop over b { one_in = 2 }
b = vdrop over a { one_in = 2 }
c = vdrop over c { one_in = 2 }
toy over link0
"##,
        &[
            r##"3:16: a circle: a over b over a; expected lowers that lead down to a device; mend: let `b` stand over something else"##,
            r##"4:16: a circle: c over c; expected lowers that lead down to a device; mend: let `c` stand over something else"##,
        ],
    );
}

#[test]
fn names_twice() {
    says(
        r##"link0 = ethernet over auto
link0 = ethernet over tap
toy over link0
"##,
        &[
            r##"2:1: `link0` is already the name of the node in line 1; expected a name of its own for each node; mend: write another name before the protocol, as in `link0-2 = ethernet`"##,
        ],
    );
}

#[test]
fn lower_twice() {
    says(
        r##"link0 = ethernet over auto
arp over link0
ip = ipv4 over link0, arp, arp { address = "10.0.0.2/24" }
"##,
        &[r##"3:28: `ip` stands over `arp` twice; expected each lower node once; mend: remove one of them"##],
    );
}

#[test]
fn wrong_kinds() {
    says(
        r##"link0 = ethernet over auto
arp over link0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
tcp over arp
udp over auto
icmp over ip
t = toy over icmp
e = loopback over tap
u = toy over e
"##,
        &[
            r##"4:10: `tcp` cannot stand over `arp`, which is of kind resolver; expected a lower of kind network; mend: put it over `ip`"##,
            r##"5:10: `udp` cannot stand over `auto`, which is of kind device; expected a lower of kind network; mend: put it over `ip`"##,
            r##"7:14: `t` (toy) cannot stand over `icmp`, which offers nothing upward; expected a lower of kind link or network; mend: put it over `link0`, `ip` or `e`"##,
            r##"8:19: `e` (loopback) cannot stand over `tap`, which is of kind device; expected no lowers; mend: remove `over` and what follows"##,
        ],
    );
}

#[test]
fn too_few_and_too_many() {
    says(
        r##"link0 = ethernet over auto
link1 = ethernet over auto, tap
arp over link0, link1
ip = ipv4 { address = "10.0.0.2/24" }
ip2 = ipv4 over arp { address = "10.0.0.2/24" }
icmp
sock = sockets over u1, u2
u1 = udp over ip
u2 = udp over ip2
v = vsize over ip { limit = 5B }
t = toy over v
"##,
        &[
            r##"2:29: `tap` is one device too many below `link1` (ethernet); expected exactly one device; mend: remove `tap`, or put another ethernet over it"##,
            r##"3:17: `link1` is one link too many below `arp`; expected exactly one link; mend: remove `link1`, or put another arp over it"##,
            r##"4:1: nothing stands below `ip` (ipv4); expected 1 to 16 links; mend: put it over `link0` or `link1`"##,
            r##"5:1: `ip2` (ipv4) stands over no link; expected 1 to 16 links; mend: put it over `link0` or `link1`"##,
            r##"6:1: nothing stands below `icmp`; expected exactly one network protocol; mend: put it over `ip`, `ip2` or `v`"##,
            r##"7:25: `u2` is one message protocol too many below `sock` (sockets); expected at most one message protocol; mend: remove `u2`, or put another sockets over it"##,
            r##"10:1: `v` (vsize) stands over only one lower; expected exactly 2 lowers; mend: put it over `ip2`, `u1` or `u2`"##,
        ],
    );
}

#[test]
fn nothing_at_the_bottom() {
    says(
        r##"tcp
sock = sockets over tcp
"##,
        &[
            r##"1:1: nothing stands below `tcp`; expected exactly one network protocol; mend: add a node of kind network, and put it over that"##,
        ],
    );
}

#[test]
fn nothing_at_the_top() {
    says(
        r##"link0 = ethernet over auto
arp over link0
lossy = vdrop over link0 { one_in = 2 }
"##,
        &[
            r##"2:1: nothing stands over `arp`, which only carries for others; expected a node above it; mend: name `arp` among the lowers of another node, or remove it"##,
            r##"3:1: nothing stands over `lossy` (vdrop), which only carries for others; expected a node above it; mend: name `lossy` among the lowers of another node, or remove it"##,
        ],
    );
}

#[test]
fn numbers_clash() {
    says(
        r##"link0 = ethernet over auto
arp over link0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
t1 = tcp over ip
t2 = tcp over ip
a = toy over ip
b = toy over ip
c = toy over ip { number = 255 }
r = request-reply over ip
"##,
        &[
            r##"5:15: `t1` and `t2` both claim ip protocol 6 of `ip` (ipv4); expected a number of its own for each upper; mend: put `t2` over another node, or remove it"##,
            r##"7:14: `a` and `b` both claim ip protocol 253 of `ip` (ipv4); expected a number of its own for each upper; mend: give `b` another `number`"##,
            r##"9:24: `a` and `r` both claim ip protocol 253 of `ip` (ipv4); expected a number of its own for each upper; mend: put `r` over another node, or remove it"##,
        ],
    );
}

#[test]
fn numbers_clash_through_virtual_protocols() {
    says(
        r##"link0 = ethernet over auto
arp over link0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
lossy = vdrop over ip { one_in = 2 }
udp over lossy
u2 = udp over ip
"##,
        &[
            r##"6:15: `udp` and `u2` both claim ip protocol 17 of `ip` (ipv4); expected a number of its own for each upper; mend: put `u2` over another node, or remove it"##,
        ],
    );
}

#[test]
fn one_upper_at_most() {
    says(
        r##"link0 = ethernet over auto
toy over link0
a = request-reply over toy
b = request-reply over toy
"##,
        &[
            r##"4:24: `a` and `b` both stand over `toy`, which cannot tell uppers apart; expected one node above it; mend: give `b` a toy of its own"##,
        ],
    );
}

#[test]
fn number_unknown() {
    says(
        r##"link0 = ethernet over auto
arp over link0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
f = fragmenter over ip
udp over f
"##,
        &[
            r##"5:10: `udp` has no fragmenter type by which `f` (fragmenter) could name it; expected a protocol with a number on fragmenter; mend: put it over another protocol, or describe the number in udp"##,
        ],
    );
}

#[test]
fn options() {
    says(
        r##"link0 = ethernet over auto { mtuu = 1500, color = red, mtu = 70000, mtu = 20B }
arp over link0 { entry_lifetime = 60, retries = "3" }
ip = ipv4 over link0, arp { address = "10.0.0.2", gateway = "10.0.0", ttl = 0, forwarding = yes, routes = "10.0.0.0/8" }
tcp over ip { congestion = cubik, msl = "31m", delayed_ack = 2s, receive_buffer = 1KiB }
l2 = ethernet over auto { address = "02:00:00:00:00" }
ip2 = ipv4 over l2
lossy = vdrop over ip
t = toy over lossy
u = icmp over ip2 { x = 1 }
"##,
        &[
            r##"1:30: ethernet has no option `mtuu`; expected `interface`, `address` or `mtu`; mend: write `mtu`"##,
            r##"1:43: ethernet has no option `color`; expected `interface`, `address` or `mtu`; mend: remove it"##,
            r##"1:62: `mtu` is out of range with 70000; expected a size from 68B to 65535B; mend: write a value within the range"##,
            r##"1:69: `link0` (ethernet) has the option `mtu` twice; expected each option once; mend: remove one of them"##,
            r##"1:75: `mtu` is out of range with 20B; expected a size from 68B to 65535B; mend: write a value within the range"##,
            r##"2:35: `entry_lifetime` cannot be 60; expected a duration from 1s to 86400s; mend: add the unit, such as 60ms or 60s"##,
            r##"2:49: `retries` cannot be "3"; expected a whole number from 1 to 100; mend: remove the quotes"##,
            r##"3:39: `address` cannot be "10.0.0.2"; expected a list with commas, each item an address with its prefix length such as "10.0.0.2/24"; mend: add the prefix length, such as /24"##,
            r##"3:61: `gateway` cannot be "10.0.0"; expected an address such as "10.0.0.1"; mend: write such a value"##,
            r##"3:77: `ttl` is out of range with 0; expected a whole number from 1 to 255; mend: write a value within the range"##,
            r##"3:93: `forwarding` cannot be "yes"; expected true or false; mend: write one of these, without quotes"##,
            r##"3:107: `routes` cannot be "10.0.0.0/8"; expected a list with commas, each item a route such as "10.1.0.0/16 via 10.0.0.9"; mend: write such a value"##,
            r##"4:28: `congestion` cannot be "cubik"; expected `reno` or `cubic`; mend: write `cubic`"##,
            r##"4:41: `msl` cannot be "31m"; expected a duration from 1ms to 120s; mend: write such a value"##,
            r##"4:62: `delayed_ack` is out of range with 2s; expected a duration from 0s to 500ms; mend: write a value within the range"##,
            r##"4:83: `receive_buffer` is out of range with 1KiB; expected a size from 4KiB to 1GiB; mend: write a value within the range"##,
            r##"5:37: `address` cannot be "02:00:00:00:00"; expected a hardware address such as "02:00:00:00:00:01"; mend: write such a value"##,
            r##"6:1: `ip2` (ipv4) lacks the option `address`: an address for each link, in their order; expected a list with commas, each item an address with its prefix length such as "10.0.0.2/24"; mend: add `{ address = … }`"##,
            r##"7:1: `lossy` (vdrop) lacks the option `one_in`: of so many messages one is lost; expected a whole number from 1 to 1000000; mend: add `{ one_in = … }`"##,
            r##"9:21: icmp has no option `x`; expected `echo`; mend: remove it"##,
        ],
    );
}

#[test]
fn own_rule() {
    says(
        r##"l0 = ethernet over auto
l1 = ethernet over auto
a1 = arp over l1
t = toy over l1
ip = ipv4 over l0, a1 { address = "10.0.0.1/24, 10.0.1.1/24" }
"##,
        &[
            r##"5:20: `a1` resolves on a link that is not below `ip`; expected a resolver over one of its own links; mend: put `ip` over that link too, or leave the resolver out"##,
            r##"5:35: `ip` has 2 address(es) for 1 link(s); expected an address for each link, in their order; mend: separate the addresses by commas"##,
        ],
    );
}

#[test]
fn places() {
    says(
        r##"link0 = ethernet over auto
toy over link0
place app : toy tooy
place app : toy nobody
"##,
        &[
            r##"3:17: no node is named `tooy`, so it cannot be placed; expected `link0` or `toy`; mend: write `toy`"##,
            r##"4:13: `toy` is already placed in `app`; expected one place for each node; mend: remove one of them"##,
            r##"4:17: no node is named `nobody`, so it cannot be placed; expected `link0` or `toy`; mend: remove it"##,
        ],
    );
}

#[test]
fn cuts() {
    says(
        r##"link0 = ethernet over tap
arp over link0
ip = ipv4 over link0, arp { address = "10.0.0.2/24" }
icmp over ip
place app : ip icmp
place server : arp link0
"##,
        &[
            r##"3:23: `ip` in `app` and `arp` in `server` cut an edge that cannot be cut; expected both in one place: arp cannot be used from another; mend: write `ip` and `arp` in one `place` line"##,
            r##"6:16: placement server, demux layered, data layered and device tap: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `place app : …`"##,
        ],
    );
}

#[test]
fn combinations_not_yet() {
    says(
        r##"link0 = ethernet over auto
toy over link0
demux = direct
data = integrated
"##,
        &[
            r##"3:9: placement app, demux direct, data integrated and any device: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `demux = layered` and `data = layered`"##,
        ],
    );
}

#[test]
fn combination_illegal() {
    says(
        r##"link0 = ethernet over wire
toy over link0
demux = kernel
"##,
        &[
            r##"3:9: placement app, demux kernel, data layered and device wire: illegal: a wire's frames stay in the process, where no kernel program sees them; expected a combination that works (`xylem graph combinations` lists all); mend: write `demux = layered`"##,
        ],
    );
}

#[test]
fn device_not_yet() {
    says(
        r##"link0 = ethernet over xdp
link1 = ethernet over auto
t1 = toy over link0
t2 = toy over link1
device = pcap
"##,
        &[
            r##"1:23: placement app, demux layered, data layered and device xdp: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `over tap`"##,
            r##"5:10: placement app, demux layered, data layered and device pcap: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `device = tap`"##,
        ],
    );
}

#[test]
fn placement_not_yet() {
    says(
        r##"link0 = ethernet over auto
toy over link0
place processor : toy link0
"##,
        &[
            r##"3:19: placement processor, demux layered, data layered and any device: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `place app : …`"##,
        ],
    );
}

#[test]
fn kernel_in_a_server() {
    says(
        r##"link0 = ethernet over tap
toy over link0
place server : toy link0
demux = kernel
"##,
        &[
            r##"4:9: placement server, demux kernel, data layered and device tap: illegal: every frame crosses the server, which demultiplexes itself; expected a combination that works (`xylem graph combinations` lists all); mend: write `demux = layered` and `place app : …`"##,
        ],
    );
}

#[test]
fn several_at_once() {
    says(
        r##"link0 = ethernet over auto { mtu = 9 }
arp over lnk0
ip = ipv6 over link0, arp
tcp over ip { congestoin = "cubic" }
place server : tpc
data = integrated
"##,
        &[
            r##"1:36: `mtu` is out of range with 9; expected a size from 68B to 65535B; mend: write a value within the range"##,
            r##"2:10: no node is named `lnk0`; expected a device, `link0`, `ip` or `tcp`; mend: write `link0`"##,
            r##"3:6: protocol `ipv6` is unknown; expected `arp`, `ethernet`, `fragmenter`, `icmp`, `ipv4`, `loopback`, `request-reply`, `sockets`, `tcp`, `toy`, `udp`, `vdrop` or `vsize`; mend: write `ipv4`"##,
            r##"4:15: tcp has no option `congestoin`; expected `congestion`, `msl`, `rto_min`, `delayed_ack`, `receive_buffer`, `send_buffer`, `backlog` or `keep_alive`; mend: write `congestion`"##,
            r##"5:16: no node is named `tpc`, so it cannot be placed; expected `link0`, `arp`, `ip` or `tcp`; mend: write `tcp`"##,
            r##"6:8: placement app, demux layered, data integrated and any device: not yet; expected a combination that works (`xylem graph combinations` lists all); mend: write `data = layered`"##,
        ],
    );
}

fn named(text: &str) -> Name {
    Name::new(text).expect("the tests use good names")
}

/// A graph built in code meets the same limits as a parsed one, and its problems are nowhere.
#[test]
fn graphs_built_in_code_are_measured_first() {
    let nodes = (0..NODES_MAX + 1).map(|at| Node::new(named(&format!("n{at}")), named("toy"))).collect();
    let mut graph = Graph { nodes, ..Graph::default() };
    graph.nodes[0].lowers = vec![Located::nowhere(Lower::Device(DeviceName::Auto)); LOWERS_MAX + 1];
    let said: Vec<String> = check(&graph, &descriptions::catalogue()).iter().map(Problem::to_string).collect();
    assert_eq!(
        said,
        [
            "0:0: 257 nodes; expected at most 256; mend: split the graph",
            "0:0: 65 lowers of `n0`; expected at most 64; mend: split the graph",
        ]
    );
}

#[test]
fn a_reserved_name_from_code_is_refused_too() {
    let mut graph = parse("link0 = ethernet over auto\ntoy over link0").expect("the text is a graph");
    graph.nodes[1].name = Located::nowhere(named("demux"));
    let said: Vec<String> = check(&graph, &descriptions::catalogue()).iter().map(Problem::to_string).collect();
    assert_eq!(
        said,
        [
            "0:0: a node cannot be named `demux`, a word of the graph language; expected any other name; mend: name it `demux0`"
        ]
    );
}

/// Many ways lead down through virtual protocols; following each of them would take 2^100 steps.
#[test]
fn towers_of_virtual_protocols_end_in_time() {
    let mut text = String::from("l = ethernet over auto\na0 = toy over l\nb0 = toy over l\n");
    for floor in 1..=100 {
        let below = floor - 1;
        text.push_str(&format!("a{floor} = vsize over a{below}, b{below} {{ limit = 9B }}\n"));
        text.push_str(&format!("b{floor} = vsize over a{below}, b{below} {{ limit = 9B }}\n"));
    }
    text.push_str("top = request-reply over a100\n");
    says(
        &text,
        &[
            "3:15: `a0` and `b0` both claim ethertype 34997 of `l` (ethernet); expected a number of its own for each upper; \
             mend: put `b0` over another node, or remove it",
            "203:1: nothing stands over `b100` (vsize), which only carries for others; expected a node above it; \
             mend: name `b100` among the lowers of another node, or remove it",
        ],
    );
}
