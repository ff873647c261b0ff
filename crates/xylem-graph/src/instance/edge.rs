//! The device's edge: the last thing that happens to a frame before its device. Messages that stand for several segments
//! are cut here, as late as possible, unless the device cuts by itself; likewise checksums are completed here.

use super::{Instance, World};
use std::sync::atomic::Ordering;
use xylem_core::drop::linker;
use xylem_core::{Checksum, HEADROOM, Message, Path, Piece};

impl Instance {
    /// Sends a frame of `path` by `device`.
    pub(super) fn emit<W: World + ?Sized>(&self, world: &W, device: u16, frame: &mut Message, path: &Path) {
        let facts = &self.devices[usize::from(device)];
        frame.attributes.branch = 0;
        let stands_for_several = frame.attributes.segment_size > 0;
        if stands_for_several && !facts.segment_offload {
            return self.cut(world, device, frame, path);
        }
        if !stands_for_several && frame.len() > facts.frame_max {
            return self.dropped(&linker::TOO_LARGE);
        }
        if !facts.checksum_offload {
            frame.complete_checksum();
        }
        self.transmit(world, device, frame);
    }

    /// Cuts a frame into its segments. What precedes the payload is where the partial checksum's header ends; each layer
    /// corrects its own copy.
    fn cut<W: World + ?Sized>(&self, world: &W, device: u16, frame: &mut Message, path: &Path) {
        let mut template = [0; HEADROOM];
        let size = usize::from(frame.attributes.segment_size);
        let length = frame.copy_to(&mut template);
        // The layers say how long their headers are when they cut; the first piece is cut to learn it.
        let probe = Piece { index: 0, offset: 0, length: 0, last: true };
        let headers = path.cut(&mut template[..length], &probe);
        if headers == 0 || headers > length {
            return self.dropped(&linker::TOO_LARGE);
        }
        frame.copy_to(&mut template[..headers]);
        let payload = frame.len() - headers;
        let Checksum::Partial { start, field } = frame.attributes.checksum else {
            return self.dropped(&linker::TOO_LARGE);
        };
        frame.trim_front(headers);
        let count = payload.div_ceil(size).max(1);
        for index in 0..count {
            let offset = index * size;
            let piece = Piece { index, offset, length: size.min(payload - offset), last: index + 1 == count };
            let Some(mut segment) = Message::new(&self.pool) else {
                return self.dropped(&linker::NO_BUFFER);
            };
            let rest = if piece.last { Message::default() } else { frame.split_off(piece.length) };
            let header = segment.prepend(headers);
            header.copy_from_slice(&template[..headers]);
            path.cut(header, &piece);
            segment.attributes = frame.attributes.clone();
            segment.attributes.segment_size = 0;
            segment.attributes.checksum = Checksum::Partial { start, field };
            segment.append(std::mem::replace(frame, rest));
            if !self.devices[usize::from(device)].checksum_offload {
                segment.complete_checksum();
            }
            self.transmit(world, device, &mut segment);
        }
    }

    fn transmit<W: World + ?Sized>(&self, world: &W, device: u16, frame: &mut Message) {
        self.counters.frames_out.fetch_add(1, Ordering::Relaxed);
        if !world.transmit(device, frame) {
            self.dropped(&linker::DEVICE_FULL);
        }
    }
}
