use super::call::CallHeader;
use super::fragment::{FragmentHeader, INCOMPLETE, INCONSISTENT, PARTIAL_TIME, PARTIALS_MAX, PUSHED_OUT};
use super::network::NetworkHeader;
use super::reassembly::{Added, Reassembly};
use super::record::RecordHeader;
use super::stream::StreamHeader;
use super::*;
use xylem_core::{Duration, Instant, Random};

/// Law 5: what is built parses to the same value, and to the same bytes when it is built again.
fn parses_as_built<H: Header>(random: &mut Random) {
    let header = H::generate(&mut || random.next());
    let mut bytes = vec![0; header.header_length()];
    header.build(&mut bytes);
    assert_eq!(H::parse(&bytes).as_ref(), Ok(&header));
    for short in 0..H::LEN {
        assert!(H::parse(&bytes[..short]).is_err(), "{} parsed {short} bytes", H::NAME);
    }
}

#[test]
fn headers_parse_as_they_were_built() {
    let mut random = Random::seeded(5);
    for _ in 0..500 {
        parses_as_built::<NetworkHeader>(&mut random);
        parses_as_built::<FragmentHeader>(&mut random);
        parses_as_built::<CallHeader>(&mut random);
        parses_as_built::<StreamHeader>(&mut random);
        parses_as_built::<RecordHeader>(&mut random);
    }
}

fn piece(message: u32, index: u8, count: u8) -> (FragmentHeader, Message) {
    let header = FragmentHeader { upper: 5, index, count, message, sum: 0 };
    (header, Message::from_bytes(&[message as u8, index]))
}

fn add(table: &mut Reassembly<()>, message: u32, index: u8, count: u8) -> Added {
    let (header, content) = piece(message, index, count);
    table.add((), &header, content, Instant::ZERO)
}

#[test]
fn pieces_make_a_message_in_any_order_with_any_repeated() {
    for seed in 0..200 {
        let mut random = Random::seeded(seed);
        let count = 1 + random.below(64) as u8;
        let mut table = Reassembly::default();
        let mut missing: Vec<u8> = (0..count).collect();
        loop {
            if random.below(4) == 0 && usize::from(count) > missing.len() && !missing.is_empty() {
                let had: Vec<u8> = (0..count).filter(|index| !missing.contains(index)).collect();
                let again = had[random.below(had.len() as u64) as usize];
                assert!(matches!(add(&mut table, 9, again, count), Added::Kept));
            }
            let next = missing.swap_remove(random.below(missing.len() as u64) as usize);
            match add(&mut table, 9, next, count) {
                Added::Kept => assert!(!missing.is_empty(), "seed {seed}: the last piece was kept"),
                Added::Whole(message) => {
                    assert!(missing.is_empty(), "seed {seed}: whole without {missing:?}");
                    let length = if count == 1 { 2 } else { 2 * usize::from(count) };
                    assert_eq!(message.len(), length);
                    assert!(message.to_vec().chunks(2).map(|piece| piece[1]).eq(0..count));
                    break;
                }
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert_eq!(table.deadline(), None);
    }
}

#[test]
fn impossible_pieces_are_refused_and_what_waits_is_bounded_and_given_up_in_time() {
    let mut table = Reassembly::default();
    for (index, count) in [(0, 0), (2, 2), (0, 65), (255, 255)] {
        assert!(matches!(add(&mut table, 1, index, count), Added::Refused(reason) if reason == &INCONSISTENT));
    }
    assert!(matches!(add(&mut table, 1, 0, 3), Added::Kept));
    assert!(matches!(add(&mut table, 1, 1, 4), Added::Refused(reason) if reason == &INCONSISTENT));
    for message in 2..=PARTIALS_MAX as u32 {
        assert!(matches!(add(&mut table, message, 0, 2), Added::Kept));
    }
    assert!(matches!(add(&mut table, 100, 0, 2), Added::KeptInPlaceOfAnother(reason) if reason == &PUSHED_OUT));
    assert_eq!(table.deadline(), Some(Instant::ZERO + PARTIAL_TIME));
    let early = Instant::ZERO + (PARTIAL_TIME - Duration::from_nanos(1));
    assert_eq!(table.expire(early).count(), 0);
    let given_up: Vec<_> = table.expire(Instant::ZERO + PARTIAL_TIME).collect();
    assert_eq!(given_up, [&INCOMPLETE; PARTIALS_MAX]);
    assert_eq!(table.deadline(), None);
}
