//! Ports for those who do not ask for one: any of the dynamic ones, the first choice at random (RFC 6056, section 3.3.1).

use xylem_wire::Port;

/// How many ports there are for those who do not ask for one.
pub(super) const DYNAMIC_PORTS: u32 = u16::MAX as u32 - Port::DYNAMIC_FIRST.0 as u32 + 1;

/// All of them, beginning with number `first`: a random first choice, then one after the other (RFC 6056, section 3.3.1).
pub(super) fn dynamic_ports(first: u32) -> impl Iterator<Item = Port> {
    (0..DYNAMIC_PORTS).map(move |step| Port(Port::DYNAMIC_FIRST.0 + ((first + step) % DYNAMIC_PORTS) as u16))
}
