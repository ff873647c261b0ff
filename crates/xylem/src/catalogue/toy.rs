//! The toy protocols in the catalogue: a network of numbered hosts, and what stands on it.

use super::options::required;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, Number, Numbered, On, OptionKind, Provides, Role, Slot, Space, Uppers};
use xylem_protocols::toy::HostNumber;
use xylem_protocols::toy::call::CallProtocol;
use xylem_protocols::toy::fragment::FragmentProtocol;
use xylem_protocols::toy::network::NetworkProtocol;
use xylem_protocols::toy::record::RecordProtocol;
use xylem_protocols::toy::stream::StreamProtocol;

pub(super) const NETWORK: Entry = Entry { description: NETWORK_DESCRIPTION, make: network };
pub(super) const FRAGMENT: Entry = Entry { description: FRAGMENT_DESCRIPTION, make: fragment };
pub(super) const CALL: Entry = Entry { description: CALL_DESCRIPTION, make: call };
pub(super) const STREAM: Entry = Entry { description: STREAM_DESCRIPTION, make: stream };
pub(super) const RECORD: Entry = Entry { description: RECORD_DESCRIPTION, make: record };

/// Messages to numbered hosts.
pub(super) const HOSTS: Kind = Kind("numbered hosts");
/// The next number of the toy network's header.
const NEXT: Space = Space("toy network");
/// The upper number of the toy fragmenter's header.
const UPPER: Space = Space("toy fragment");

const fn numbered(space: Space, number: u32) -> Numbered {
    Numbered { on: On::Space(space), number: Number::Fixed(number) }
}

const NETWORK_DESCRIPTION: Description = Description {
    name: "network",
    summary: "toy: packets between numbered hosts on one link",
    role: Role::Carrier,
    over: &[Slot::one("device", &[Kind::DEVICE])],
    provides: Provides::Kinds { kinds: &[HOSTS], uppers: Uppers::Numbered(NEXT) },
    options: &[required("host", OptionKind::Integer { min: 0, max: u32::MAX as i64 }, "the number of this host")],
    cuttable: true,
    ..Description::PLAIN
};

fn network(making: &mut Making<'_>) -> Made {
    let host = making.settings.integer("host").ok_or("expected the number of this host, got none")?;
    Ok(Some(Arc::new(NetworkProtocol::new(HostNumber(host as u32)))))
}

const FRAGMENT_DESCRIPTION: Description = Description {
    name: "fragment",
    summary: "toy: messages larger than a packet, in pieces; a trunk",
    role: Role::Carrier,
    over: &[Slot::one("network", &[HOSTS])],
    provides: Provides::Kinds { kinds: &[HOSTS], uppers: Uppers::Numbered(UPPER) },
    numbers: &[numbered(NEXT, 17)],
    ..Description::PLAIN
};

fn fragment(making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(FragmentProtocol::new(&mut making.random))))
}

const CALL_DESCRIPTION: Description = Description {
    name: "call",
    summary: "toy: request and reply on numbered channels, at most once",
    role: Role::Endpoint,
    over: &[Slot::one("network", &[HOSTS])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
    numbers: &[numbered(NEXT, 18), numbered(UPPER, 5)],
    ..Description::PLAIN
};

fn call(making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(CallProtocol::new(&mut making.random))))
}

const STREAM_DESCRIPTION: Description = Description {
    name: "stream",
    summary: "toy: bytes, in order, both ways; window, retransmission, no congestion control",
    role: Role::Endpoint,
    over: &[Slot::one("network", &[HOSTS])],
    provides: Provides::Kinds { kinds: &[Kind::STREAM], uppers: Uppers::Many },
    numbers: &[numbered(NEXT, 6), numbered(UPPER, 6)],
    ..Description::PLAIN
};

fn stream(making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(StreamProtocol::new(&mut making.random))))
}

const RECORD_DESCRIPTION: Description = Description {
    name: "record",
    summary: "toy: messages of any length carried by a stream",
    role: Role::Endpoint,
    over: &[Slot::one("stream", &[Kind::STREAM])],
    provides: Provides::Kinds { kinds: &[Kind::MESSAGES], uppers: Uppers::One },
    ..Description::PLAIN
};

fn record(_making: &mut Making<'_>) -> Made {
    Ok(Some(Arc::new(RecordProtocol)))
}
