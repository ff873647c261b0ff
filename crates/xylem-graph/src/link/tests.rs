//! The link model's promises, over seeds: the same seed does the same, no frame appears or vanishes uncounted, rates
//! are kept, order is kept unless reordering was asked for. Frames carry their number after the link header, so that a
//! test sees which one arrived.

use super::*;

/// What arrived, each frame with the time of its arrival.
type Arrivals = Vec<(Instant, Vec<u8>)>;

fn link(text: &str, seed: u64) -> Link<Vec<u8>> {
    let model: LinkModel = text.parse().expect("the test's own model");
    let random = model.random(seed);
    Link::new(model, random).expect("parsing has checked the model")
}

/// A frame of `bytes`, numbered after its link header.
fn frame(number: u32, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0u8; bytes];
    frame[LINK_HEADER_BYTES..LINK_HEADER_BYTES + 4].copy_from_slice(&number.to_be_bytes());
    frame
}

fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes(frame[LINK_HEADER_BYTES..LINK_HEADER_BYTES + 4].try_into().expect("four bytes"))
}

fn numbers(arrivals: &Arrivals) -> Vec<u32> {
    arrivals.iter().map(|(_, frame)| number(frame)).collect()
}

fn micros(count: u64) -> Instant {
    Instant::ZERO + Duration::from_micros(count)
}

fn drain(link: &mut Link<Vec<u8>>) -> Arrivals {
    let mut arrivals = Vec::new();
    while let Some(due) = link.next() {
        arrivals.push((due, link.receive(due).expect("a frame was due")));
    }
    arrivals
}

fn assert_conserved(link: &Link<Vec<u8>>) {
    let counters = link.counters();
    assert_eq!(
        counters.sent + counters.duplicated,
        counters.delivered + counters.dropped() + link.in_flight() as u64,
        "{counters:?}"
    );
}

/// Sends `count` frames of 100 bytes, one every `gap` microseconds, and receives what is due between them.
fn run(link: &mut Link<Vec<u8>>, count: u32, gap: u64) -> Arrivals {
    let mut arrivals = Vec::new();
    for index in 0..count {
        let now = micros(u64::from(index) * gap);
        while let Some(frame) = link.receive(now) {
            arrivals.push((now, frame));
        }
        link.send(now, frame(index, 100));
    }
    arrivals.extend(drain(link));
    arrivals
}

#[test]
fn a_perfect_link_delivers_at_once_and_unchanged() {
    let mut link = link("perfect", 1);
    assert_eq!(link.send(micros(5), frame(7, 100)), Fate::Queued);
    assert_eq!(link.next(), Some(micros(5)));
    assert_eq!(link.receive(Instant::from_nanos(4999)), None);
    assert_eq!(link.receive(micros(5)), Some(frame(7, 100)));
    assert_eq!(link.next(), None);
    assert_conserved(&link);
}

#[test]
fn the_same_seed_does_the_same_and_another_does_not() {
    const TEXT: &str = "loss=5% duplicate=5% reorder=5% corrupt=5% delay=3ms jitter=1ms rate=10Mb/s queue=20";
    for seed in 0..50 {
        let once = run(&mut link(TEXT, seed), 500, 90);
        assert_eq!(once, run(&mut link(TEXT, seed), 500, 90), "seed {seed}");
        assert_ne!(once, run(&mut link(TEXT, seed + 1000), 500, 90), "seed {seed}");
    }
    let (mut named, mut other) = (link("loss=5% seed=3", 1), link("loss=5% seed=3", 2));
    assert_eq!(run(&mut named, 500, 90), run(&mut other, 500, 90), "the model's own seed wins");
}

#[test]
fn frames_are_conserved_whatever_the_link_does() {
    let mut choices = Random::seeded(5);
    for seed in 0..200 {
        let text = format!(
            "loss={0}% duplicate={1}% reorder={1}% corrupt={0}% delay={2}us jitter={0}ms rate={3}kb/s queue={4}",
            choices.below(30),
            choices.below(30),
            choices.below(5000),
            100 + choices.below(100_000),
            1 + choices.below(50)
        );
        let mut link = link(&text, seed);
        let mut now = Instant::ZERO;
        for index in 0..300 {
            now = now + Duration::from_micros(choices.below(400));
            match choices.below(40) {
                0 => link.set_down(!link.is_down()),
                1..15 => {
                    link.receive(now);
                }
                _ => {
                    let bytes = 18 + choices.below(1600) as usize;
                    let full = link.departures.iter().filter(|&&departure| departure > now).count()
                        >= link.model().queue_frames_max;
                    let fate = link.send(now, frame(index, bytes));
                    let too_big = bytes > 1514;
                    if !link.is_down() {
                        assert_eq!(fate == Fate::Dropped(LinkDrop::TooBig), too_big, "`{text}`, seed {seed}");
                        assert_eq!(fate == Fate::Dropped(LinkDrop::QueueFull), full && !too_big, "`{text}`");
                    } else {
                        assert_eq!(fate, Fate::Dropped(LinkDrop::Down));
                    }
                }
            }
            assert_conserved(&link);
        }
        drain(&mut link);
        assert_eq!((link.in_flight(), link.in_flight_bytes), (0, 0));
        assert_conserved(&link);
    }
}

#[test]
fn rates_are_kept_within_one_percent() {
    for (rate, bytes) in [("9600b/s", 64), ("1Mb/s", 1514), ("100Mb/s", 60), ("10Gb/s", 64), ("333Gb/s", 60)] {
        let mut link = link(&format!("rate={rate} queue=60000"), 1);
        let bits = link.model().rate_bits_per_second.expect("the text names a rate");
        for index in 0..50_000 {
            assert_eq!(link.send(Instant::ZERO, frame(index, bytes)), Fate::Queued);
        }
        let last = drain(&mut link).last().expect("nothing is dropped").0;
        let ideal = u128::from(bytes as u64) * 8 * 50_000 * 1_000_000_000 / u128::from(bits);
        let measured = u128::from(last.as_nanos());
        assert!(measured.abs_diff(ideal) * 100 < ideal, "{rate}: {measured} ns instead of {ideal} ns");
    }
}

#[test]
fn a_full_queue_drops_its_tail_and_empties_at_the_rate() {
    // 1000 bits take a millisecond.
    let mut link = link("rate=1Mb/s queue=3", 1);
    let fates: Vec<Fate> = (0..5).map(|index| link.send(Instant::ZERO, frame(index, 125))).collect();
    let full = Fate::Dropped(LinkDrop::QueueFull);
    assert_eq!(fates, [Fate::Queued, Fate::Queued, Fate::Queued, full, full]);
    assert_eq!(link.send(micros(999), frame(5, 125)), full);
    assert_eq!(link.send(micros(1000), frame(6, 125)), Fate::Queued, "one frame has left the queue");
    let arrivals = drain(&mut link);
    assert_eq!(numbers(&arrivals), [0, 1, 2, 6]);
    assert_eq!(arrivals[3].0, micros(4000));
    assert_eq!(link.counters().queue_full, 3);
}

#[test]
fn frames_longer_than_the_mtu_are_dropped_and_no_others() {
    let mut link = link("mtu=576", 1);
    assert_eq!(link.send(Instant::ZERO, frame(0, 576 + 14)), Fate::Queued);
    assert_eq!(link.send(Instant::ZERO, frame(1, 576 + 15)), Fate::Dropped(LinkDrop::TooBig));
    assert_eq!(link.counters().too_big, 1);
}

#[test]
fn order_is_kept_without_reordering_even_with_jitter() {
    for seed in 0..100 {
        let mut link = link("delay=2ms jitter=5ms loss=1% duplicate=2% corrupt=0% rate=50Mb/s", seed);
        let arrivals = run(&mut link, 500, 50);
        let order = numbers(&arrivals);
        assert!(order.is_sorted(), "seed {seed}: {order:?}");
        assert!(arrivals.iter().all(|(due, frame)| *due >= micros(u64::from(number(frame)) * 50 + 2000)));
    }
}

#[test]
fn a_reordered_frame_is_overtaken_by_a_few_and_not_lost() {
    for text in ["rate=10Mb/s reorder=2% delay=20ms", "reorder=2% delay=20ms", "reorder=2%"] {
        // Full-size frames, sent back to back where there is a rate, else a hundredth of a millisecond apart.
        let mut link = link(text, 9);
        let gap = if text.contains("rate") { 1_211 } else { 1000 };
        for index in 0..4000u32 {
            link.send(micros(u64::from(index) * gap), frame(index, 1514));
        }
        let order = numbers(&drain(&mut link));
        assert_eq!(order.len(), 4000, "{text}");
        let overtaken_by: Vec<usize> = (0..order.len())
            .map(|place| order[..place].iter().filter(|&&earlier| earlier > order[place]).count())
            .collect();
        let worst = overtaken_by.iter().max().copied().unwrap_or(0);
        let reordered = link.counters().reordered;
        assert!((40..160).contains(&reordered), "{text}: 2 % of 4000 came out as {reordered}");
        if text.contains("delay") {
            let late = overtaken_by.iter().filter(|&&count| count > 0).count() as u64;
            assert!(late > reordered * 8 / 10, "{text}: {late} of {reordered} were overtaken");
            assert!(worst <= 8, "{text}: one frame was overtaken by {worst}");
        } else {
            assert_eq!(worst, 0, "held for microseconds, nothing overtakes a millisecond later");
        }
    }
}

#[test]
fn corruption_flips_one_bit_after_the_link_header() {
    let mut link = link("corrupt=100%", 3);
    let mut touched = std::collections::BTreeSet::new();
    for _ in 0..5000 {
        link.send(Instant::ZERO, vec![0; 60]);
        let received = link.receive(Instant::ZERO).expect("nothing is lost");
        assert_eq!(received.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        touched.insert(received.iter().position(|&byte| byte != 0).expect("one bit is set"));
    }
    assert_eq!(touched, (14..60).collect(), "every byte after the header is hit, none before");
    link.send(Instant::ZERO, vec![0; 14]);
    assert_eq!(link.receive(Instant::ZERO), Some(vec![0; 14]), "there is nothing to corrupt in a bare header");
    assert_eq!(link.counters().corrupted, 5000);
}

#[test]
fn a_copy_follows_its_frame_uncorrupted() {
    let mut link = link("duplicate=100% corrupt=100% delay=1ms", 3);
    link.send(Instant::ZERO, frame(1, 60));
    let arrivals = drain(&mut link);
    assert_eq!(arrivals.len(), 2);
    assert_ne!(arrivals[0].1, frame(1, 60));
    assert_eq!(arrivals[1], (micros(1000), frame(1, 60)));
    assert_conserved(&link);
}

#[test]
fn one_probability_does_not_shift_the_others_decisions() {
    let fates = |text: &str| {
        let mut link = link(text, 77);
        let lost: Vec<bool> =
            (0..3000).map(|index| link.send(Instant::ZERO, frame(index, 100)) != Fate::Queued).collect();
        (lost, drain(&mut link))
    };
    let (lost, plain) = fates("loss=10%");
    let (lost_too, _) = fates("loss=10% duplicate=50% reorder=50% corrupt=50% jitter=5ms delay=1ms");
    assert_eq!(lost, lost_too);
    let (lost_more, _) = fates("loss=20%");
    assert!(lost.iter().zip(&lost_more).all(|(few, many)| !few || *many), "more loss loses the same frames and others");
    let (_, corrupted) = fates("corrupt=10%");
    let (_, corrupted_and_lost) = fates("corrupt=10% loss=10%");
    // Whether frame n is corrupted does not depend on what is lost before it.
    let survivors: Vec<_> =
        corrupted.iter().zip(&lost).filter(|(_, lost)| !**lost).map(|((_, frame), _)| frame.clone()).collect();
    assert_eq!(survivors, corrupted_and_lost.into_iter().map(|(_, frame)| frame).collect::<Vec<_>>());
    assert!(plain.iter().any(|(_, frame)| !survivors.contains(frame)), "something was corrupted at all");
}

#[test]
fn probabilities_are_about_right() {
    let mut link = link("loss=1% duplicate=2% reorder=3% corrupt=4%", 1);
    for index in 0..100_000 {
        link.send(micros(u64::from(index)), frame(index, 100));
        while link.receive(micros(u64::from(index))).is_some() {}
    }
    let counters = link.counters();
    for (name, count, percent) in [
        ("loss", counters.lost, 1),
        ("duplicate", counters.duplicated, 2),
        ("reorder", counters.reordered, 3),
        ("corrupt", counters.corrupted, 4),
    ] {
        assert!(count.abs_diff(percent * 1000) < 200, "{name}: {percent} % of 100 000 came out as {count}");
    }
}

#[test]
fn a_pulled_cable_drops_what_is_on_it() {
    let mut link = link("delay=10ms", 1);
    link.send(Instant::ZERO, frame(0, 60));
    link.set_down(true);
    assert_eq!(link.next(), None);
    assert_eq!(link.send(micros(1), frame(1, 60)), Fate::Dropped(LinkDrop::Down));
    link.set_down(false);
    assert_eq!(link.send(micros(2), frame(2, 60)), Fate::Queued);
    assert_eq!(numbers(&drain(&mut link)), [2]);
    assert_eq!(link.counters().down, 2);
    assert_conserved(&link);
}

#[test]
fn a_link_holds_only_so_many_frames_and_bytes() {
    // One frame without a copy first, so that the last pair does not fit: its frame is taken, its copy is not made.
    let mut small = link("delay=3600s", 1);
    small.send(Instant::ZERO, frame(0, 20));
    small.change("delay=3600s duplicate=100%".parse().expect("the test's own model")).expect("within limits");
    for index in 1..IN_FLIGHT_FRAMES_MAX as u32 {
        small.send(Instant::ZERO, frame(index, 20));
    }
    assert_eq!(small.in_flight(), IN_FLIGHT_FRAMES_MAX);
    assert_eq!(small.counters().duplicated, IN_FLIGHT_FRAMES_MAX as u64 / 2 - 1);
    assert_eq!(small.counters().in_flight_full, IN_FLIGHT_FRAMES_MAX as u64 / 2 - 1);
    assert_conserved(&small);

    /// A frame that is large without taking memory.
    struct Giant;
    impl Frame for Giant {
        fn len(&self) -> usize {
            MTU_MAX + LINK_HEADER_BYTES
        }
        fn duplicate(&self) -> Giant {
            Giant
        }
        fn flip_bit(&mut self, _: usize) {}
    }
    let model: LinkModel = "delay=3600s mtu=65535".parse().expect("the test's own model");
    let mut large = Link::new(model, Random::seeded(1)).expect("the model is checked");
    let fates = (0..5000).filter(|_| large.send(Instant::ZERO, Giant) == Fate::Queued).count();
    assert_eq!(fates, IN_FLIGHT_BYTES_MAX / Giant.len());
}

#[test]
fn a_changed_model_holds_for_the_next_frames_and_keeps_the_order() {
    let mut link = link("delay=10ms rate=1Mb/s", 1);
    link.send(Instant::ZERO, frame(0, 125));
    let quick = LinkModel { delay: Duration::from_millis(1), ..link.model().clone() };
    link.change(quick).expect("a model within limits");
    link.send(Instant::ZERO, frame(1, 125));
    assert_eq!(numbers(&drain(&mut link)), [0, 1]);
    let wrong = LinkModel { mtu: 1, ..LinkModel::default() };
    assert!(link.change(wrong).is_err());
    assert_eq!(link.model().mtu, 1500, "the old model stays");
}

#[test]
fn the_two_directions_of_a_wire_have_streams_of_their_own() {
    const TEXT: &str = "loss=30% duplicate=20%";
    let model: LinkModel = TEXT.parse().expect("the test's own model");
    let mut wire = Link::<Vec<u8>>::both_ways([&model, &model], 7).expect("within its limits");
    let arrivals = wire.each_mut().map(|link| run(link, 200, 1));
    assert_ne!(numbers(&arrivals[0]), numbers(&arrivals[1]), "both directions lose the same frames");
    // As every wire was made before there was one way to make them: children of one stream, in order.
    let mut random = model.random(7);
    for arrivals in arrivals {
        let mut link = Link::new(model.clone(), random.child()).expect("within its limits");
        assert_eq!(run(&mut link, 200, 1), arrivals);
    }
    let seeded: LinkModel = format!("{TEXT} seed=7").parse().expect("the test's own model");
    let mut other = Link::<Vec<u8>>::both_ways([&model, &seeded], 9).expect("within its limits");
    let mut same = Link::<Vec<u8>>::both_ways([&seeded, &seeded], 1).expect("within its limits");
    assert_eq!(run(&mut other[1], 200, 1), run(&mut same[1], 200, 1), "a model's own seed wins");
}
