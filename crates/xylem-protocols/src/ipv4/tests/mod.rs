//! IPv4's rules, over the whole stack or at its own session.

mod arrival;
mod departure;
mod forwarding;
mod pieces;
mod rubbish;

use crate::testing::*;
use xylem_core::{Message, Participants};
use xylem_wire::{FragmentOffset, Header, IpProtocol, Ipv4Header};

/// A number for experiments: nobody above listens, so a conversation of this protocol is IPv4's session alone.
const EXPERIMENT: IpProtocol = IpProtocol::EXPERIMENT_1;

/// Hosts 1 and 2, who know each other.
fn two() -> (Host, Host) {
    let (mut one, mut two) = (Host::new(Setup::host(1)), Host::new(Setup { seed: 2, ..Setup::host(2) }));
    one.knows(2);
    two.knows(1);
    (one, two)
}

/// A conversation of IPv4 alone with host `number`.
fn converse(host: &mut Host, number: u8) -> usize {
    let participants = Participants::new([], [xylem_core::Part::Host(ip(number))]);
    host.open_numbered(host.ipv4, u32::from(EXPERIMENT.0), participants, None).expect("there is a route")
}

/// A packet with options, its checksum right.
fn packet_with(header: &Ipv4Header, options: &[u8], payload: &[u8]) -> Vec<u8> {
    assert!(options.len().is_multiple_of(4), "options are whole words");
    let length = Ipv4Header::LEN + options.len();
    let header =
        Ipv4Header { header_words: (length / 4) as u8, total_length: (length + payload.len()) as u16, ..*header };
    let checksum = header.checksum_to_send(options);
    with_header(&Ipv4Header { checksum, ..header }, &[options, payload].concat())
}

/// The part of a payload from byte `from` to byte `to`, as a fragment's frame.
fn piece(header: &Ipv4Header, payload: &[u8], from: usize, to: usize) -> Vec<u8> {
    let fragment = Ipv4Header {
        more_fragments: to < payload.len(),
        fragment_offset: FragmentOffset::of_bytes(from).expect("fragments begin at whole units"),
        total_length: (Ipv4Header::LEN + to - from) as u16,
        ..*header
    };
    ip_frame(&fragment, &payload[from..to])
}

/// A payload that is different everywhere.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut payload = vec![0; length];
    xylem_core::Random::seeded(seed).fill(&mut payload);
    payload
}

fn bytes(messages: &[Message]) -> Vec<Vec<u8>> {
    messages.iter().map(Message::to_vec).collect()
}
