//! VDROP in the catalogue.

use super::options::{milliseconds, number, truth};
use super::toy;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, Provides, Role, Slot};
use xylem_protocols::vdrop::{VdropConfig, VdropProtocol};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

/// A probability in parts per million.
const PARTS: (i64, i64) = (0, 1_000_000);

const DESCRIPTION: Description = Description {
    name: "vdrop",
    summary: "drops, repeats, holds back and spoils messages on purpose; adds no header",
    role: Role::Virtual,
    over: &[Slot::one("lower", &[Kind::LINK, Kind::NETWORK, Kind::MESSAGES, toy::HOSTS])],
    provides: Provides::AsBelow,
    options: &[
        number("drop_per_million", PARTS, 0, "messages dropped, in a million"),
        number("duplicate_per_million", PARTS, 0, "messages that come twice, in a million"),
        number("reorder_per_million", PARTS, 0, "messages held back, in a million"),
        number("corrupt_per_million", PARTS, 0, "messages of which a byte is changed, in a million"),
        milliseconds("delay_max", (0, 60_000), 10, "the longest a message is held back"),
        truth("both_ways", true, "whether what arrives suffers too, or only what is sent"),
    ],
    cuttable: true,
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let settings = making.settings;
    let parts = |option: &str| settings.integer(option).unwrap_or(0) as u32;
    let config = VdropConfig {
        drop_per_million: parts("drop_per_million"),
        duplicate_per_million: parts("duplicate_per_million"),
        reorder_per_million: parts("reorder_per_million"),
        corrupt_per_million: parts("corrupt_per_million"),
        delay_max: settings.duration("delay_max").unwrap_or_default(),
        both_ways: settings.bool("both_ways").unwrap_or(true),
        upper: super::only_upper(making)?,
    };
    Ok(Some(Arc::new(VdropProtocol::new(config))))
}
