//! The static side of VSIZE: it opens both lowers for every conversation.

use super::session::VsizeSession;
use xylem_core::{Demux, EnableError, Enabling, Facts, OpenError, Opening, Outbox, Protocol, View};

/// How a VSIZE is set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VsizeConfig {
    /// The largest message, in bytes, for the first lower; `None` takes what that one carries undivided.
    pub cutoff: Option<usize>,
    /// The number by which this protocol knows the one above it.
    pub upper: u32,
}

/// See the module's text.
#[derive(Debug)]
pub struct VsizeProtocol {
    config: VsizeConfig,
}

impl VsizeProtocol {
    /// A VSIZE with this configuration.
    pub fn new(config: VsizeConfig) -> VsizeProtocol {
        VsizeProtocol { config }
    }
}

impl Protocol for VsizeProtocol {
    /// Takes no part of the participants: both lowers are opened with all of them.
    fn open(&self, opening: &mut Opening<'_>) -> Result<Facts, OpenError> {
        let small = opening.branch(0)?;
        let large = opening.branch(1)?;
        let cutoff = self.config.cutoff.unwrap_or(small.mtu).min(small.mtu);
        let headroom = small.headroom.max(large.headroom);
        let uppers = [small.number, large.number];
        opening.stand(VsizeSession::new(cutoff, uppers, large.mtu));
        Ok(Facts { headroom, ..large })
    }

    /// Both lowers are enabled.
    fn open_enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        enabling.below(0)?;
        enabling.below(1)
    }

    fn demux(&self, _view: &mut View<'_>, _out: &mut Outbox) -> Demux {
        Demux::Up(self.config.upper)
    }
}
