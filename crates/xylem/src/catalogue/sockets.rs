//! The sockets in the catalogue: the application's side, so there is no protocol to make.

use xylem_graph::build::Entry;
use xylem_graph::file::{Description, Kind, Role, Slot};

pub(super) const ENTRY: Entry = Entry { description: DESCRIPTION, make: |_| Ok(None) };

const DESCRIPTION: Description = Description {
    name: "sockets",
    summary: "the application's side: streams and datagrams as calls",
    role: Role::Anchor,
    over: &[
        Slot::at_most_one("stream protocol", &[Kind::STREAM]),
        Slot::at_most_one("message protocol", &[Kind::MESSAGES]),
    ],
    ..Description::PLAIN
};
