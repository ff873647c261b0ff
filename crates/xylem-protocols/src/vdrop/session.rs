//! The session that stands between: what it does to a message is decided when the message passes; what it holds back
//! waits, in order of release, for its time.

use super::{DROPPED, HELD, VdropConfig};
use xylem_core::{Instant, Message, Outbox, Session, Verdict};

/// The most messages held back in each direction.
pub const HELD_MAX: usize = 32;

const _: () = assert!(2 * HELD_MAX < Outbox::LIMIT, "all that is held back goes in one verb, with a copy of each");

/// See the module's text.
#[derive(Debug)]
pub(super) struct VdropSession {
    config: VdropConfig,
    up: Held,
    down: Held,
}

/// Messages held back, the first to go first.
#[derive(Debug, Default)]
struct Held(Vec<(Instant, Message)>);

impl Held {
    /// Holds a message until then.
    fn put(&mut self, until: Instant, message: Message) {
        let place = self.0.partition_point(|(other, _)| *other <= until);
        self.0.insert(place, (until, message));
    }

    fn is_full(&self) -> bool {
        self.0.len() >= HELD_MAX
    }

    fn due(&mut self, now: Instant) -> impl Iterator<Item = Message> + '_ {
        let count = self.0.partition_point(|(until, _)| *until <= now);
        self.0.drain(..count).map(|(_, message)| message)
    }

    fn all(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.0.drain(..).map(|(_, message)| message)
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.first().map(|(until, _)| *until)
    }
}

/// What happens to one message.
struct Fate {
    verdict: Verdict,
    copy: Option<Message>,
}

impl VdropSession {
    pub fn new(config: VdropConfig) -> VdropSession {
        VdropSession { config, up: Held::default(), down: Held::default() }
    }

    /// Decides over a message, and holds it back if that is its fate.
    fn judge(config: &VdropConfig, held: &mut Held, message: &mut Message, out: &mut Outbox) -> Fate {
        let no_copy = |verdict| Fate { verdict, copy: None };
        if out.random.chance_per_million(config.drop_per_million) {
            return no_copy(Verdict::Drop(&DROPPED));
        }
        if !message.is_empty() && out.random.chance_per_million(config.corrupt_per_million) {
            let at = out.random.below(message.len() as u64) as usize;
            let difference = 1 + out.random.below(255) as u8;
            spoil(message, at, difference);
        }
        if out.random.chance_per_million(config.reorder_per_million) && !held.is_full() {
            let delay = out.random.below(config.delay_max.as_nanos().max(1) as u64);
            let until = out.now + std::time::Duration::from_nanos(delay);
            held.put(until, std::mem::take(message));
            return no_copy(Verdict::Keep);
        }
        let copy = out.random.chance_per_million(config.duplicate_per_million).then(|| message.share());
        Fate { verdict: Verdict::Pass, copy }
    }
}

/// Changes one byte, in a copy: others may hold the same buffer.
fn spoil(message: &mut Message, at: usize, difference: u8) {
    let mut bytes = message.to_vec();
    bytes[at] ^= difference;
    let attributes = std::mem::take(&mut message.attributes);
    *message = Message::from_bytes(&bytes);
    message.attributes = attributes;
}

impl Session for VdropSession {
    fn pop(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        if !self.config.both_ways {
            return Verdict::Pass;
        }
        let fate = VdropSession::judge(&self.config, &mut self.up, message, out);
        if let Some(copy) = fate.copy {
            out.raise(copy);
        }
        fate.verdict
    }

    fn push(&mut self, message: &mut Message, out: &mut Outbox) -> Verdict {
        let fate = VdropSession::judge(&self.config, &mut self.down, message, out);
        if let Some(copy) = fate.copy {
            out.push(copy);
        }
        fate.verdict
    }

    fn deadline(&self) -> Option<Instant> {
        xylem_core::time::earlier(self.up.deadline(), self.down.deadline())
    }

    fn timeout(&mut self, out: &mut Outbox) {
        let now = out.now;
        self.up.due(now).for_each(|message| out.raise(message));
        self.down.due(now).for_each(|message| out.push(message));
    }

    /// What waits to go down goes; what waits to go up has nobody left to go to.
    fn close(&mut self, out: &mut Outbox) {
        self.up.all().for_each(|_| out.dropped(&HELD));
        self.down.all().for_each(|message| out.push(message));
        out.finish();
    }
}
