//! All packets being put together, within limits: at each limit the oldest go. Whatever a fragment does, it harms only
//! its own packet and, at a limit, the oldest ones of its own source first.

use super::config::ReassemblyLimits;
use super::datagram::{Datagram, Front, Place};
use super::drops;
use super::header::{FIXED, PACKET_MAX};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use xylem_core::{Control, DropReason, Instant, Message, NetworkErrorKind, Outbox, Undeliverable, View, pool::SMALL};
use xylem_wire::{FragmentOffset, Header, IpProtocol, Ipv4Header, TcpHeader};

/// What fragments of one packet have in common (RFC 791, section 3.2). The source comes first: packets of one source
/// stand side by side.
type Key = (Ipv4Addr, Ipv4Addr, u8, u16);

/// The most packets given up by one timeout; the rest follow at once in the next.
const EXPIRE_MAX: usize = Outbox::CONTROL_LIMIT;

/// Bytes that the first fragment of any packet carries at least: what the header above needs to be looked at.
const FIRST_MIN: usize = 8;

/// A packet put together, and where its network header begins.
pub(super) type Whole = (Message, usize);

/// See the module's text.
#[derive(Debug)]
pub(super) struct Reassembly {
    limits: ReassemblyLimits,
    datagrams: BTreeMap<Key, Datagram>,
    held: usize,
}

impl Reassembly {
    pub fn new(limits: ReassemblyLimits) -> Reassembly {
        Reassembly { limits, datagrams: BTreeMap::new(), held: 0 }
    }

    /// Takes the fragment that the view stands at, whose header is sound and whose message ends where it says. Yields
    /// the whole packet if this was the last one missing.
    pub fn add(
        &mut self,
        header: &Ipv4Header,
        view: &mut View<'_>,
        out: &mut Outbox,
    ) -> Result<Option<Whole>, &'static DropReason> {
        let place = place(header)?;
        let key = (header.source, header.destination, header.protocol.0, header.identification);
        self.make_room_for(&key, out);
        let since = view.now;
        let datagram = self.datagrams.entry(key).or_insert_with(|| Datagram::new(since));
        let payload_at = view.at() + header.header_length();
        let verdict = datagram.judge(place, |other| {
            let ours = view.message.slices().flatten().skip(payload_at);
            ours.eq(other.slices().flatten())
        });
        let many = || (datagram.count() >= self.limits.fragments).then_some(&drops::TOO_MANY_FRAGMENTS);
        if let Some(reason) = verdict.err().or_else(many) {
            if *reason != drops::DUPLICATE {
                self.refuse(&key, reason, out);
            }
            return Err(reason);
        }
        datagram.broadcast |= view.message.attributes.broadcast;
        let before = datagram.held;
        let (front, payload) = split(header, view, out);
        datagram.add(place, header, front, payload);
        self.held += datagram.held - before;
        if datagram.is_whole() {
            let datagram = self.remove(&key).expect("it was added to just now");
            return datagram.assemble().map(Some).ok_or(&drops::FRAGMENT_TOO_FAR);
        }
        while self.held > self.limits.bytes {
            self.evict(|_| true, out);
        }
        Ok(None)
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.datagrams.values().map(|datagram| datagram.since + self.limits.time).min()
    }

    /// Gives up what has waited too long. The sender is told if the first fragment came (RFC 792, page 6).
    pub fn timeout(&mut self, out: &mut Outbox) {
        let late = |datagram: &Datagram| datagram.since + self.limits.time <= out.now;
        let keys = self.datagrams.iter().filter(|(_, datagram)| late(datagram)).map(|(key, _)| *key);
        let keys: Vec<Key> = keys.take(EXPIRE_MAX).collect();
        for key in keys {
            let Some(datagram) = self.remove(&key) else { continue };
            if let Some(quote) = datagram.quote(Undeliverable::QUOTE_MAX) {
                let undeliverable = Undeliverable { quote, broadcast: datagram.broadcast };
                out.advise(Control::Undeliverable(NetworkErrorKind::TimeExceeded, Box::new(undeliverable)));
            }
            (0..datagram.count()).for_each(|_| out.dropped(&drops::FRAGMENTS_LATE));
        }
    }

    /// Makes room for one more packet, should `key` be a new one: among its own source's first.
    fn make_room_for(&mut self, key: &Key, out: &mut Outbox) {
        if self.datagrams.contains_key(key) {
            return;
        }
        let source = key.0;
        let (first, last) = ((source, Ipv4Addr::UNSPECIFIED, 0, 0), (source, Ipv4Addr::BROADCAST, u8::MAX, u16::MAX));
        if self.datagrams.range(first..=last).count() >= self.limits.datagrams_per_source {
            self.evict(|key| key.0 == source, out);
        }
        if self.datagrams.len() >= self.limits.datagrams {
            self.evict(|_| true, out);
        }
    }

    /// The oldest goes, among those that `among` admits.
    fn evict(&mut self, among: impl Fn(&Key) -> bool, out: &mut Outbox) {
        let candidates = self.datagrams.iter().filter(|(key, _)| among(key));
        let oldest = candidates.min_by_key(|(key, datagram)| (datagram.since, **key)).map(|(key, _)| *key);
        if let Some(datagram) = oldest.and_then(|key| self.remove(&key)) {
            (0..datagram.count()).for_each(|_| out.dropped(&drops::FRAGMENTS_FULL));
        }
    }

    fn refuse(&mut self, key: &Key, reason: &'static DropReason, out: &mut Outbox) {
        if let Some(datagram) = self.datagrams.get_mut(key) {
            self.held -= datagram.held;
            (0..datagram.refuse()).for_each(|_| out.dropped(reason));
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Datagram> {
        let datagram = self.datagrams.remove(key)?;
        self.held -= datagram.held;
        Some(datagram)
    }
}

/// Where a fragment stands, if it can stand there.
fn place(header: &Ipv4Header) -> Result<Place, &'static DropReason> {
    let length = usize::from(header.total_length) - header.header_length();
    let (from, more) = (header.fragment_offset.bytes(), header.more_fragments);
    if length == 0 || (more && !length.is_multiple_of(FragmentOffset::UNIT)) {
        return Err(&drops::FRAGMENT_LENGTH);
    }
    if FIXED + from + length > PACKET_MAX {
        return Err(&drops::FRAGMENT_TOO_FAR);
    }
    let first_min = if header.protocol == IpProtocol::TCP { TcpHeader::LEN } else { FIRST_MIN };
    if from == 0 && length < first_min {
        return Err(&drops::TINY_FRAGMENT);
    }
    Ok(Place { from, to: from + length, more })
}

/// Takes the fragment out of the view: the front of a first one, and its payload. While the pool is short of buffers the
/// payload is copied, so that slow fragments do not starve the device.
fn split(header: &Ipv4Header, view: &mut View<'_>, out: &Outbox) -> (Option<Front>, Message) {
    let network_at = view.at();
    let payload_at = network_at + header.header_length();
    let front = (header.fragment_offset == FragmentOffset::FIRST).then(|| {
        let bytes = view.message.front(payload_at).expect("the header was read from there").to_vec();
        Front { bytes, network_at, header: *header }
    });
    let mut message = view.take();
    message.trim_front(payload_at);
    if !out.pool().more_than_half_free(SMALL) {
        let attributes = message.attributes.clone();
        message = Message::from_bytes(&message.to_vec());
        message.attributes = attributes;
    }
    (front, message)
}
