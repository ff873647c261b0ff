//! VSIZE in the catalogue.

use super::options::optional;
use super::toy;
use std::sync::Arc;
use xylem_graph::build::{Entry, Made, Making};
use xylem_graph::file::{Description, Kind, OptionKind, Provides, Role, Slot};
use xylem_protocols::vsize::{VsizeConfig, VsizeProtocol};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make };

const DESCRIPTION: Description = Description {
    name: "vsize",
    summary: "small messages to the first lower, large ones to the second; adds no header",
    role: Role::Virtual,
    over: &[Slot::several("lower", &[Kind::NETWORK, Kind::MESSAGES, toy::HOSTS], 2, 2)],
    provides: Provides::AsBelow,
    options: &[optional(
        "limit",
        OptionKind::Size { min: 1, max: 65_535 },
        "largest message that goes the first way; otherwise what that one carries undivided",
    )],
    ..Description::PLAIN
};

fn make(making: &mut Making<'_>) -> Made {
    let cutoff = making.settings.size("limit").map(|bytes| bytes as usize);
    let config = VsizeConfig { cutoff, upper: super::only_upper(making)? };
    Ok(Some(Arc::new(VsizeProtocol::new(config))))
}
