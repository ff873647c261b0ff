//! The outbox: where a session puts what it does to the world. Effects are data in bounded lanes; the linker empties
//! them when the verb has returned. It also carries what a session may know of the world: the time, the path's own
//! random stream, the pool, and the room below.

use crate::control::{Control, NetworkErrorKind, Undeliverable};
use crate::drop::DropReason;
use crate::message::Message;
use crate::participants::Participants;
use crate::pool::Pool;
use crate::random::Random;
use crate::time::Instant;
use crate::view::View;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// A message sent without a path by a protocol itself: a reset, an echo reply, an unreachable, an ARP reply, a forwarded
/// packet. The linker opens a transient chain from that protocol's lower down.
#[derive(Debug)]
pub struct Reply {
    /// Which lower of the protocol.
    pub lower: usize,
    /// From whom to whom.
    pub participants: Participants,
    /// What.
    pub message: Message,
}

/// See the module's text.
#[derive(Debug)]
pub struct Outbox {
    /// The time of this step; it does not pass within a verb.
    pub now: Instant,
    /// The path's (or the protocol's) own random stream.
    pub random: Random,
    pool: Pool,
    room: usize,
    pushed_by_verb: usize,
    raised_by_verb: usize,
    told_by_verb: usize,
    advised_by_verb: usize,
    credit: usize,
    levels: Levels,
    /// How often something was put into it: a verb that left nothing has not moved it.
    effects: u32,
    down: Vec<Option<Message>>,
    up: Vec<Option<Message>>,
    told: SmallVec<[Option<Control>; 4]>,
    advice: SmallVec<[Option<Control>; 4]>,
    replies: VecDeque<Reply>,
    dropped: SmallVec<[&'static DropReason; 4]>,
    linger: Option<SmallVec<[u8; 64]>>,
}

/// Level bits: they coalesce and cannot overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// There is room again after a refusal.
    pub writable: bool,
    /// The session is finished; its path may go.
    pub finished: bool,
}

/// A position in the lanes: what a verb left is what lies behind the mark taken before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    down: usize,
    up: usize,
    told: usize,
    advice: usize,
}

impl Outbox {
    /// The most messages one verb may send, and the most it may raise. A 64 KB datagram makes 120 fragments at an MTU of
    /// 576 bytes.
    pub const LIMIT: usize = 128;
    /// The most controls one verb may send in either direction.
    pub const CONTROL_LIMIT: usize = 16;

    /// An outbox at time `now`, drawing randomness from `random` and buffers from `pool`.
    pub fn new(now: Instant, random: Random, pool: Pool) -> Outbox {
        Outbox {
            now,
            random,
            pool,
            room: usize::MAX,
            pushed_by_verb: 0,
            raised_by_verb: 0,
            told_by_verb: 0,
            advised_by_verb: 0,
            credit: 0,
            levels: Levels::default(),
            effects: 0,
            down: Vec::new(),
            up: Vec::new(),
            told: SmallVec::new(),
            advice: SmallVec::new(),
            replies: VecDeque::new(),
            dropped: SmallVec::new(),
            linger: None,
        }
    }

    /// A new message with headroom, or `None` if the pool is empty (drop with a reason, or try later).
    pub fn message(&self) -> Option<Message> {
        Message::new(&self.pool)
    }

    /// The pool of the instance.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// How many more messages this verb may send. One that has more to send says so by a deadline of `now`.
    pub fn room(&self) -> usize {
        Outbox::LIMIT - self.pushed_by_verb
    }

    /// How many bytes the session below takes before it would refuse, what this verb has sent already taken off.
    pub fn room_bytes(&self) -> usize {
        self.room
    }

    /// How many more messages this verb may raise.
    pub fn room_above(&self) -> usize {
        Outbox::LIMIT - self.raised_by_verb
    }

    /// Sends a message downward.
    ///
    /// # Panics
    /// If the verb has no [`room`](Outbox::room) left: a session that does not look at its room is wrong.
    pub fn push(&mut self, message: Message) {
        assert!(self.pushed_by_verb < Outbox::LIMIT, "one verb sent more than {} messages", Outbox::LIMIT);
        self.pushed_by_verb += 1;
        self.effects = self.effects.wrapping_add(1);
        self.occupy(message.len());
        self.down.push(Some(message));
    }

    /// Raises a message upward: for what was kept and is now due, or was unpacked.
    ///
    /// # Panics
    /// As [`push`](Outbox::push).
    pub fn raise(&mut self, message: Message) {
        assert!(self.raised_by_verb < Outbox::LIMIT, "one verb raised more than {} messages", Outbox::LIMIT);
        self.raised_by_verb += 1;
        self.effects = self.effects.wrapping_add(1);
        self.up.push(Some(message));
    }

    /// Tells those above.
    pub fn tell(&mut self, control: Control) {
        assert!(
            self.told_by_verb < Outbox::CONTROL_LIMIT,
            "one verb told more than {} controls",
            Outbox::CONTROL_LIMIT
        );
        self.told_by_verb += 1;
        self.effects = self.effects.wrapping_add(1);
        self.told.push(Some(control));
    }

    /// Tells, or asks, those below.
    pub fn advise(&mut self, control: Control) {
        assert!(
            self.advised_by_verb < Outbox::CONTROL_LIMIT,
            "one verb advised more than {} controls",
            Outbox::CONTROL_LIMIT
        );
        self.advised_by_verb += 1;
        self.effects = self.effects.wrapping_add(1);
        self.advice.push(Some(control));
    }

    /// Sends a message without a path, through the chain below the protocol's (first) lower.
    pub fn reply(&mut self, participants: Participants, message: Message) {
        self.reply_by(0, participants, message);
    }

    /// Reports that the message in view cannot be delivered, for its sender to be told.
    pub fn undeliverable(&mut self, kind: NetworkErrorKind, view: &mut View<'_>) {
        let length = view.message.len().saturating_sub(view.network_at).min(Undeliverable::QUOTE_MAX);
        if let Some(front) = view.message.front(view.network_at + length) {
            let quote = front[view.network_at..].to_vec();
            let broadcast = view.message.attributes.broadcast;
            self.advise(Control::Undeliverable(kind, Box::new(Undeliverable { quote, broadcast })));
        }
    }

    /// Sends a message without a path, through the chain below lower number `lower`.
    pub fn reply_by(&mut self, lower: usize, participants: Participants, message: Message) {
        assert!(self.replies.len() < Outbox::LIMIT, "one verb replied more than {} times", Outbox::LIMIT);
        self.replies.push_back(Reply { lower, participants, message });
    }

    /// Returns credit to the session below for `bytes` it popped or raised to this one.
    pub fn credit(&mut self, bytes: usize) {
        self.credit += bytes;
        self.effects = self.effects.wrapping_add(1);
    }

    /// Counts a drop of something kept earlier (a verdict counts the message at hand).
    pub fn dropped(&mut self, reason: &'static DropReason) {
        self.dropped.push(reason);
    }

    /// There is room again for whoever was refused.
    pub fn writable(&mut self) {
        self.levels.writable = true;
        self.effects = self.effects.wrapping_add(1);
    }

    /// The session is finished: its path goes when all of its sessions are content.
    pub fn finish(&mut self) {
        self.levels.finished = true;
        self.effects = self.effects.wrapping_add(1);
    }

    /// Leaves at most 64 bytes with the session's protocol when the path goes (TIME-WAIT).
    pub fn linger(&mut self, entry: &[u8]) {
        assert!(entry.len() <= 64, "a lingering entry of {} bytes; the limit is 64", entry.len());
        self.linger = Some(SmallVec::from_slice(entry));
    }
}

/// The linker's side: emptying the lanes.
impl Outbox {
    /// All messages sent downward so far, in order.
    pub fn drain_down(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.pushed_by_verb = 0;
        self.down.drain(..).flatten()
    }

    /// All messages raised so far, in order.
    pub fn drain_up(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.raised_by_verb = 0;
        self.up.drain(..).flatten()
    }

    /// All controls told upward so far, in order.
    pub fn drain_told(&mut self) -> impl Iterator<Item = Control> + '_ {
        self.told_by_verb = 0;
        self.told.drain(..).flatten()
    }

    /// All controls told downward so far, in order.
    pub fn drain_advice(&mut self) -> impl Iterator<Item = Control> + '_ {
        self.advised_by_verb = 0;
        self.advice.drain(..).flatten()
    }

    /// Whether anything was dropped inside the stack.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Whether anything was sent downward.
    pub fn has_sent(&self) -> bool {
        !self.down.is_empty()
    }

    /// Whether anything was raised or told upward.
    pub fn has_raised(&self) -> bool {
        !self.up.is_empty() || !self.told.is_empty()
    }

    /// Whether anything was told downward.
    pub fn has_advice(&self) -> bool {
        !self.advice.is_empty()
    }

    /// The next reply, in order.
    pub fn next_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// All replies so far, in order.
    pub fn drain_replies(&mut self) -> impl Iterator<Item = Reply> + '_ {
        self.replies.drain(..)
    }

    /// All drops inside the stack so far.
    pub fn drain_dropped(&mut self) -> impl Iterator<Item = &'static DropReason> + '_ {
        self.dropped.drain(..)
    }

    /// The level bits, cleared.
    pub fn take_levels(&mut self) -> Levels {
        std::mem::take(&mut self.levels)
    }

    /// The credit that reached the bottom, cleared.
    pub fn take_credit(&mut self) -> usize {
        std::mem::take(&mut self.credit)
    }

    /// What shall linger, cleared.
    pub fn take_linger(&mut self) -> Option<SmallVec<[u8; 64]>> {
        self.linger.take()
    }

    /// Whether no verb has touched it since it was emptied: cheaper than, and at most as often true as,
    /// [`is_empty`](Outbox::is_empty).
    pub fn is_untouched(&self) -> bool {
        self.down.is_empty()
            && self.up.is_empty()
            && self.told.is_empty()
            && self.advice.is_empty()
            && self.replies.is_empty()
            && self.dropped.is_empty()
    }

    /// Whether nothing at all is left in it.
    pub fn is_empty(&self) -> bool {
        self.down.iter().all(Option::is_none)
            && self.up.iter().all(Option::is_none)
            && self.told.iter().all(Option::is_none)
            && self.advice.iter().all(Option::is_none)
            && self.replies.is_empty()
            && self.dropped.is_empty()
            && self.credit == 0
    }

    /// How often something was put into it, in any lane: equal readings before and after a verb say that it left nothing.
    #[inline]
    pub(crate) fn effects(&self) -> u32 {
        self.effects
    }

    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { down: self.down.len(), up: self.up.len(), told: self.told.len(), advice: self.advice.len() }
    }

    pub(crate) fn set_levels(&mut self, levels: Levels) {
        self.levels = levels;
    }

    pub(crate) fn restore_credit(&mut self, credit: usize) {
        self.credit = credit;
    }

    /// A verb begins, over `room` bytes below.
    #[inline]
    pub fn begin(&mut self, room: usize) {
        self.pushed_by_verb = 0;
        self.raised_by_verb = 0;
        self.told_by_verb = 0;
        self.advised_by_verb = 0;
        self.room = room;
    }

    pub(crate) fn down_since(&self, mark: Mark) -> Range<usize> {
        mark.down..self.down.len()
    }

    pub(crate) fn up_since(&self, mark: Mark) -> Range<usize> {
        mark.up..self.up.len()
    }

    pub(crate) fn told_since(&self, mark: Mark) -> Range<usize> {
        mark.told..self.told.len()
    }

    pub(crate) fn advice_since(&self, mark: Mark) -> Range<usize> {
        mark.advice..self.advice.len()
    }

    pub(crate) fn take_down(&mut self, slot: usize) -> Option<Message> {
        self.down[slot].take()
    }

    pub(crate) fn take_up(&mut self, slot: usize) -> Option<Message> {
        self.up[slot].take()
    }

    pub(crate) fn take_told(&mut self, slot: usize) -> Option<Control> {
        self.told[slot].take()
    }

    pub(crate) fn take_advice(&mut self, slot: usize) -> Option<Control> {
        self.advice[slot].take()
    }

    /// Keeps the place of a message that is on its way through the session below: what that session sends on the way
    /// comes behind it.
    pub(crate) fn reserve_down(&mut self) -> usize {
        self.down.push(None);
        self.down.len() - 1
    }

    pub(crate) fn fill_down(&mut self, slot: usize, message: Message) {
        self.effects = self.effects.wrapping_add(1);
        self.occupy(message.len());
        self.down[slot] = Some(message);
    }

    /// Takes what is sent off the room below, if that has a limit.
    fn occupy(&mut self, bytes: usize) {
        if self.room != usize::MAX {
            self.room = self.room.saturating_sub(bytes);
        }
    }

    pub(crate) fn reserve_up(&mut self) -> usize {
        self.up.push(None);
        self.up.len() - 1
    }

    pub(crate) fn fill_up(&mut self, slot: usize, message: Message) {
        self.effects = self.effects.wrapping_add(1);
        self.up[slot] = Some(message);
    }

    /// Hands on a control that the session at hand did not handle.
    pub(crate) fn pass_told(&mut self, control: Control) {
        self.effects = self.effects.wrapping_add(1);
        self.told.push(Some(control));
    }

    pub(crate) fn pass_advice(&mut self, control: Control) {
        self.effects = self.effects.wrapping_add(1);
        self.advice.push(Some(control));
    }

    /// Renames the ends of what one branch of a fork sent: `first` is its first leaf, `index` its own number.
    pub(crate) fn rename_since(&mut self, mark: Mark, first: u8, index: u8, owed: &mut usize) {
        for message in self.down[mark.down..].iter_mut().flatten() {
            message.attributes.branch += first;
        }
        for message in self.up[mark.up..].iter_mut().flatten() {
            message.attributes.branch = index;
            *owed += message.len();
        }
    }

    pub(crate) fn drain_up_since(&mut self, mark: Mark) -> impl Iterator<Item = Message> + '_ {
        self.up.drain(mark.up..).flatten()
    }
}
