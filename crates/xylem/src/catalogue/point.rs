//! The link without a header in the catalogue.

use super::options::optional;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, OptionKind, Provides, Role, Slot, Space, Uppers};
use xylem_protocols::point::{PointConfig, PointProtocol};
use xylem_wire::Ipv4Header;

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "point",
    summary: "packets between two hosts, without a link header",
    role: Role::Carrier,
    over: &[Slot::one("device", &[Kind::DEVICE])],
    provides: Provides::Kinds { kinds: &[Kind::LINK], uppers: Uppers::Numbered(Space::ETHERTYPE) },
    options: &[optional(
        "mtu",
        OptionKind::Size { min: Ipv4Header::MTU_MIN as u64, max: 65_535 },
        "largest packet in bytes; otherwise what the device carries",
    )],
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let config = PointConfig { mtu: making.settings.size("mtu").map(|bytes| bytes as usize) };
    Ok(Some(Arc::new(PointProtocol::new(config))))
}
