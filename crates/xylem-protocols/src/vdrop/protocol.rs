//! The static side of VDROP: it passes opens and enables on, and puts its session between.

use super::session::VdropSession;
use xylem_core::{Demux, Duration, Facts, OpenError, Opening, Outbox, Protocol, View};

/// How bad the link shall be. Rates are so many messages in a million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VdropConfig {
    /// Messages dropped.
    pub drop_per_million: u32,
    /// Messages that come twice.
    pub duplicate_per_million: u32,
    /// Messages held back, for a random time below `delay_max`.
    pub reorder_per_million: u32,
    /// Messages of which a byte is changed.
    pub corrupt_per_million: u32,
    /// The longest a message is held back.
    pub delay_max: Duration,
    /// Whether what is popped suffers too, or only what is pushed.
    pub both_ways: bool,
    /// The number by which this protocol knows the one above it. A virtual protocol has one upper: no header says more.
    pub upper: u32,
}

/// See the module's text.
#[derive(Debug)]
pub struct VdropProtocol {
    config: VdropConfig,
}

impl VdropProtocol {
    /// A VDROP of this badness.
    pub fn new(config: VdropConfig) -> VdropProtocol {
        VdropProtocol { config }
    }
}

impl Protocol for VdropProtocol {
    /// Takes no part of the participants and changes no fact.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let facts = opening.below()?;
        opening.stand(VdropSession::new(self.config));
        Ok(facts)
    }

    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Up(self.config.upper)
    }
}
