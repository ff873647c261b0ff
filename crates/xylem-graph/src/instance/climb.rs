//! The demux phase: a frame climbs from its device through the protocols, each reading its own header, until one of
//! them knows its path. Nothing of the path changes before that (Jain, Hutchinson and Peterson 1995, section 3.2).

use super::serve::Ticket;
use super::{Below, Instance, Shepherd, World};
use arrayvec::ArrayVec;
use xylem_core::drop::linker;
use xylem_core::opening::NO_EMBRYO;
use xylem_core::{
    Control, Demux, EnableId, HEIGHT_MAX, Message, NetworkError, NetworkErrorKind, Participants, PathId, View,
};

/// The nodes a message has climbed, lowest first.
type Way = ArrayVec<u8, HEIGHT_MAX>;

impl Instance {
    /// Finds the path of a frame that came from a device. `None`: it has been dealt with otherwise.
    pub(super) fn climb_from_device<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        device: u16,
        frame: &mut Message,
    ) -> Option<Ticket> {
        let Some(node) = self.over.device(device) else {
            self.dropped(&linker::NO_UPPER);
            return None;
        };
        let view = View::new(frame, shepherd.node_out.now);
        self.climb(world, shepherd, node, Way::new(), view)
    }

    /// Finds the path of a message that a trunk has handed up: it continues at the node above the trunk's.
    pub(super) fn climb_from_trunk<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        trunk: u8,
        participants: Participants,
        message: &mut Message,
    ) -> Option<Ticket> {
        let Some(node) = self.over.node(trunk, message.attributes.upper) else {
            self.dropped(&linker::NO_UPPER);
            return None;
        };
        let mut view = View::new(message, shepherd.node_out.now);
        view.participants = participants;
        self.climb(world, shepherd, node, Way::from_iter([trunk]), view)
    }

    fn climb<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        mut node: u8,
        mut way: Way,
        mut view: View<'_>,
    ) -> Option<Ticket> {
        let mut has_failed = false;
        loop {
            if way.try_push(node).is_err() {
                self.dropped(&linker::TOO_DEEP);
                return None;
            }
            let Some(protocol) = &self.nodes[usize::from(node)].protocol else {
                self.dropped(&linker::NO_UPPER);
                return None;
            };
            match self.node_verb(world, shepherd, node, |out| protocol.demux(&mut view, out)) {
                Demux::Up(number) => match self.over.node(node, number) {
                    Some(above) => node = above,
                    None => {
                        self.nobody_above(world, shepherd, node, &mut view);
                        return None;
                    }
                },
                Demux::Path(id) => return self.ticket(id, &way),
                Demux::Open(enable) => {
                    let participants = view.participants.clone();
                    if let Some(id) = self.open_for_enable(world, shepherd, node, enable, participants) {
                        return self.ticket(id, &way);
                    }
                    if has_failed {
                        self.dropped(&NO_EMBRYO);
                        return None;
                    }
                    // What it was to open for has gone since it was found. The protocol looks once more, and answers as
                    // where nobody listens: a peer that hears nothing would wait for ever.
                    has_failed = true;
                    way.pop();
                }
                Demux::Enable(enable) => {
                    let message = view.take();
                    self.deliver_wild(enable, message);
                    return None;
                }
                Demux::Each(enables) => {
                    let mut message = view.take();
                    for enable in enables {
                        self.deliver_wild(enable, message.share());
                    }
                    return None;
                }
                Demux::Quoted(kind) => {
                    self.quoted(world, shepherd, node, kind, &mut view);
                    return None;
                }
                Demux::Keep => {
                    self.arm_node(world, node);
                    return None;
                }
                Demux::Drop(reason) => {
                    self.dropped(reason);
                    self.arm_node(world, node);
                    return None;
                }
            }
        }
    }

    /// No upper protocol has this number: the sender is told where a protocol does such things.
    fn nobody_above<W: World + ?Sized>(&self, world: &W, shepherd: &mut Shepherd, node: u8, view: &mut View<'_>) {
        self.dropped(&linker::NO_UPPER);
        if view.network_at > 0 && view.at() > view.network_at {
            self.node_verb(world, shepherd, node, |out| {
                out.undeliverable(NetworkErrorKind::ProtocolUnreachable, view);
            });
        }
    }

    fn ticket(&self, id: PathId, way: &Way) -> Option<Ticket> {
        let cell = self.paths.find(id.index, id.generation);
        if cell.is_none() {
            self.dropped(&linker::NO_PATH);
        }
        cell.map(|cell| Ticket { id, leaf: cell.leaf_of(way), cell })
    }

    fn deliver_wild(&self, enable: EnableId, message: Message) {
        match self.enables.find(enable.index, enable.generation) {
            Some(enable) => enable.acceptor.deliver(message),
            None => self.dropped(&linker::NO_PATH),
        }
    }

    /// Brings an error message to the path that it quotes: the quotation climbs from the network protocol, which is the
    /// lower of the protocol that received the error.
    fn quoted<W: World + ?Sized>(
        &self,
        world: &W,
        shepherd: &mut Shepherd,
        node: u8,
        kind: NetworkErrorKind,
        view: &mut View<'_>,
    ) {
        let Some(Below::Node(mut node)) = self.nodes[usize::from(node)].lowers.first().map(|lower| lower.below) else {
            return self.dropped(&linker::NOT_QUOTED);
        };
        view.participants = Default::default();
        let mut sequence = None;
        for _ in 0..HEIGHT_MAX {
            let Some(protocol) = &self.nodes[usize::from(node)].protocol else { break };
            match protocol.quoted(view, &mut sequence) {
                Demux::Up(number) => match self.over.node(node, number) {
                    Some(above) => node = above,
                    None => break,
                },
                Demux::Path(id) => {
                    let error = Control::NetworkError(NetworkError { kind, sequence });
                    return self.serve(world, shepherd, id, &mut super::Work::Control(error));
                }
                Demux::Enable(enable) => {
                    if let Some(enable) = self.enables.find(enable.index, enable.generation) {
                        enable.acceptor.told(Control::NetworkError(NetworkError { kind, sequence }));
                    }
                    return;
                }
                _ => break,
            }
        }
        self.dropped(&linker::NOT_QUOTED);
    }
}
