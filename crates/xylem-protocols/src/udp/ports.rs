//! Choosing a free port: anywhere in the range for short-lived ends, so that who would forge an answer has to guess
//! (RFC 6056, section 3.3.1), then the next free one from there.

use xylem_core::Random;
use xylem_wire::Port;

/// How many ports there are to choose from.
const CHOICE: u16 = u16::MAX - Port::DYNAMIC_FIRST.0 + 1;

/// All ports of the range, each once, from a random one on.
pub(super) fn from_anywhere(random: &mut Random) -> impl Iterator<Item = Port> + use<> {
    let first = random.below(u64::from(CHOICE)) as u16;
    (0..CHOICE).map(move |step| Port(Port::DYNAMIC_FIRST.0 + (first + step) % CHOICE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_port_of_the_range_comes_once_from_a_place_that_cannot_be_foreseen() {
        let ports: Vec<Port> = from_anywhere(&mut Random::seeded(1)).collect();
        let all: BTreeSet<Port> = ports.iter().copied().collect();
        assert_eq!((ports.len(), all.len()), (usize::from(CHOICE), usize::from(CHOICE)));
        assert_eq!(all.first(), Some(&Port::DYNAMIC_FIRST));
        assert_ne!(from_anywhere(&mut Random::seeded(2)).next(), Some(ports[0]));
    }
}
