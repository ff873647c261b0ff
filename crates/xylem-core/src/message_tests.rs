use super::*;
use crate::random::Random;
use proptest::prelude::*;
use xylem_wire::UdpHeader;

/// A message of `bytes` in pieces whose lengths `random` chooses, some shared with others.
fn in_pieces(bytes: &[u8], random: &mut Random) -> Message {
    let first = random.below(bytes.len() as u64 + 1) as usize;
    let mut message = Message::from_bytes(&bytes[..first]);
    let mut at = first;
    while at < bytes.len() {
        let count = 1 + random.below((bytes.len() - at) as u64) as usize;
        let mut piece = Message::from_bytes(&bytes[at..at + count]);
        if random.chance_per_million(500_000) {
            let _other_holder = piece.share();
        }
        message.append(piece);
        at += count;
    }
    message
}

proptest! {
    /// Every operation means to a message in pieces what it means to a plain vector.
    #[test]
    fn a_message_is_its_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300), seed: u64, steps in 1..12usize) {
        let mut random = Random::seeded(seed);
        let mut message = in_pieces(&bytes, &mut random);
        let mut model = bytes;
        for _ in 0..steps {
            let at = random.below(model.len() as u64 + 1) as usize;
            match random.below(7) {
                0 => { message.trim_front(at); model.drain(..at); }
                1 => { message.truncate(at); model.truncate(at); }
                2 => {
                    let rest = message.split_off(at);
                    prop_assert_eq!(rest.to_vec(), model.split_off(at));
                    message.append(rest);
                    model = message.to_vec();
                }
                3 => {
                    let other = message.share();
                    prop_assert_eq!(other.to_vec(), model.clone());
                }
                4 => {
                    let header: Vec<u8> = (0..random.below(40)).map(|_| random.next() as u8).collect();
                    message.prepend(header.len()).copy_from_slice(&header);
                    model.splice(..0, header);
                }
                5 => { prop_assert_eq!(message.front(at), Some(&model[..at])); }
                _ => {
                    let sum = message.sum(at);
                    prop_assert_eq!(sum.checksum(), Sum::of(&model[at..]).checksum());
                }
            }
            prop_assert_eq!(message.to_vec(), model.clone());
            prop_assert_eq!(message.len(), model.len());
        }
        prop_assert_eq!(message.front(model.len() + 1), None);
    }
}

#[test]
fn headers_are_pushed_and_popped_across_pieces() {
    let header = UdpHeader { source: Port(1), destination: Port(2), length: 8 + 5, checksum: 0 };
    let mut message = Message::from_bytes(b"hello");
    message.push_header(&header);
    let bytes = message.to_vec();
    let mut scattered = Message::default();
    for byte in bytes {
        scattered.append(Message::from_bytes(&[byte]));
    }
    assert_eq!(scattered.pop_header::<UdpHeader>(), Ok(header));
    assert_eq!(scattered.to_vec(), b"hello");
    assert!(scattered.pop_header::<UdpHeader>().is_err());
}

/// A header whose variable part begins in another piece than its fixed part is read all the same.
#[test]
fn a_header_with_options_is_read_across_pieces() {
    use xylem_wire::Ipv4Header;
    let mut random = Random::seeded(5);
    let mut header = Ipv4Header::generate(&mut || random.next());
    header.header_words = Ipv4Header::WORDS + 3;
    let mut bytes = vec![0; header.header_length()];
    header.build(&mut bytes[..Ipv4Header::LEN]);
    for cut in 0..bytes.len() {
        let mut message = Message::from_bytes(&bytes[..cut]);
        message.append(Message::from_bytes(&bytes[cut..]));
        assert_eq!(
            crate::View::new(&mut message, crate::Instant::ZERO).header::<Ipv4Header>(),
            Ok(header),
            "cut at {cut}"
        );
        let mut message = Message::from_bytes(&bytes[..cut]);
        message.append(Message::from_bytes(&bytes[cut..]));
        assert_eq!(message.pop_header::<Ipv4Header>(), Ok(header), "cut at {cut}");
        assert!(message.is_empty());
    }
}

#[test]
fn a_partial_checksum_is_completed_over_shared_slices() {
    let mut message = Message::from_bytes(&[]);
    message.append(Message::from_bytes(b"abc"));
    message.append(Message::from_bytes(b"defg"));
    message.push_header(&UdpHeader { source: Port(1), destination: Port(2), length: 15, checksum: 0 });
    let expected = Sum::of(&message.to_vec()).checksum();
    message.attributes.checksum = Checksum::Partial { start: 0, field: 6 };
    message.complete_checksum();
    assert_eq!(message.header::<UdpHeader>().map(|header| header.checksum), Ok(expected));
    assert_eq!(Sum::of(&message.to_vec()).checksum(), 0, "a right checksum sums to zero");
}

#[test]
fn small_writes_fill_one_buffer_until_it_is_shared() {
    let mut slice = Slice::new(Buffer::unpooled(10).share(), 0, 0);
    assert_eq!(slice.extend(b"abcd"), 4);
    let other = slice.clone();
    assert_eq!(slice.extend(b"ef"), 0, "somebody else reads this buffer");
    drop(other);
    assert_eq!(slice.extend(b"efghijkl"), 6);
    assert_eq!(slice.bytes(), b"abcdefghij");
}

use xylem_wire::Port;
