//! The session over the fork: it looks at a message's length and names the branch.

use super::TOO_LARGE;
use xylem_core::{Message, Outbox, Session, Verdict};

/// See the module's text.
#[derive(Debug)]
pub(super) struct VsizeSession {
    cutoff: usize,
    uppers: [u32; 2],
    length_max: usize,
}

impl VsizeSession {
    pub fn new(cutoff: usize, uppers: [u32; 2], length_max: usize) -> VsizeSession {
        VsizeSession { cutoff, uppers, length_max }
    }
}

impl Session for VsizeSession {
    fn pop(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        // Which way it came is nobody's business above.
        message.attributes.branch = 0;
        Verdict::Pass
    }

    fn push(&mut self, message: &mut Message, _out: &mut Outbox) -> Verdict {
        if message.len() > self.length_max {
            return Verdict::Drop(&TOO_LARGE);
        }
        let branch = u8::from(message.len() > self.cutoff);
        message.attributes.branch = branch;
        message.attributes.upper = self.uppers[usize::from(branch)];
        Verdict::Pass
    }
}
