//! Law 4 on toys, the part "moved midway": a path goes from one instance to another in the middle of a conversation, as
//! often as it likes, and no byte is lost or repeated. A record that does not fit its path is noticed, and one that is
//! nonsense is an error.

mod toys;

use std::sync::Arc;
use toys::end::{Door, End};
use toys::fault::Fault;
use toys::graph;
use toys::pair::{Badness, Pair};
use toys::talk::{Talker, judge, random_records};
use xylem_core::{Duration, EnableWish, Random, Record};
use xylem_graph::instance::Emigrant;
use xylem_protocols::vdrop::VdropConfig;

const PATIENCE: Duration = Duration::from_secs(600);
const ALL_DEADLINES: Duration = Duration::from_secs(300);

/// What goes wrong with a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slip {
    Nothing,
    /// What was still to be done is forgotten.
    ForgetsInbox,
    /// The path goes on from where it was at its first move.
    StaleRecord,
    /// A byte of the record is changed.
    SpoiltRecord,
}

/// A conversation during which the path of one host moves between two instances. `Ok(true)` if nobody reported an error.
fn conversation(seed: u64, slip: Slip) -> Result<(bool, u32), String> {
    let mut random = Random::seeded(seed);
    let badness = if slip == Slip::Nothing { Badness::of(&mut random, 2) } else { Badness::none() };
    let quiet = VdropConfig::default();
    let mover = (seed % 2) as usize;
    let numbers = [1, 2, 1 + mover as u32];
    let instances: Vec<_> =
        numbers.iter().map(|number| graph::records(*number, quiet, Fault::None, 400, random.next())).collect();
    let mut texts = || random_records(&mut random, 12, 6000);
    let (mine, yours) = (texts(), texts());
    let mut pair = Pair::new(instances, badness, random.child());
    let door = Arc::new(Door::default());
    let wish = EnableWish { participants: graph::stream_server(), wild: false, backlog: 8, shared: false };
    let listening = pair.hosts[1].instance.enable(graph::TOP, wish, door.clone()).expect("nobody listens yet");
    let end = Arc::new(End::default());
    let host = &mut pair.hosts[0];
    let opened = host.instance.open(&host.port, &mut host.shepherd, graph::TOP, graph::stream_to_server(), end.clone());
    let mut talkers = vec![Talker::new(0, opened.expect("the only stream opens"), end, mine, random.child())];
    let mut moves = 0;
    let mut first_record: Option<Record> = None;
    let mut refused = None;
    let mut chance = random.child();
    pair.run(PATIENCE, |pair, stalled| {
        if let Some((path, _, end)) = door.next() {
            talkers.push(Talker::new(1, path, end, yours.clone(), random.child()));
        }
        for talker in &mut talkers {
            talker.step(pair, stalled);
        }
        if let Some(talker) = talkers.get_mut(mover)
            && moves < 6
            && !talker.gone
            && chance.below(8) == 0
        {
            let (from, to) = (talker.host, if talker.host == 2 { mover } else { 2 });
            // More than there is room for: it waits with the path, and has to come along.
            talker.push_regardless(pair);
            if let Some(mut emigrant) = pair.hosts[from].instance.emigrate(talker.path) {
                moves += 1;
                pair.redirect(from, to);
                match slip {
                    Slip::Nothing => {}
                    Slip::ForgetsInbox => emigrant.inbox.clear(),
                    Slip::StaleRecord => {
                        emigrant.record = first_record.get_or_insert_with(|| emigrant.record.clone()).clone();
                    }
                    Slip::SpoiltRecord => emigrant.record = spoilt(&emigrant.record, &mut chance),
                }
                if let Err(error) = arrive(pair, talker, to, emigrant) {
                    refused = Some(error);
                    return true;
                }
            }
        }
        talkers.iter().all(|talker| talker.gone) && !talkers.is_empty()
    });
    pair.hosts[1].instance.disable(listening.id);
    if let Some(error) = refused {
        return Err(error);
    }
    let clean = match &talkers[..] {
        [one, other] => judge(one, other)?,
        _ => talkers[0].error.is_none() && !talkers[0].gone,
    };
    drop(talkers);
    pair.settle(ALL_DEADLINES);
    for (index, host) in pair.hosts.iter().enumerate() {
        if host.leftovers() != (0, 0, (0, 0)) {
            return Err(format!("host {index} still has (paths, deadlines, buffers) {:?}", host.leftovers()));
        }
    }
    Ok((clean, moves))
}

fn arrive(pair: &mut Pair, talker: &mut Talker, to: usize, emigrant: Emigrant) -> Result<(), String> {
    let host = &mut pair.hosts[to];
    let anchor = talker.end.clone();
    let moved = host.instance.immigrate(&host.port, &mut host.shepherd, graph::TOP, emigrant, anchor);
    (talker.host, talker.path) = (to, moved.map_err(|error| error.to_string())?);
    Ok(())
}

fn spoilt(record: &Record, random: &mut Random) -> Record {
    let mut bytes = record.as_bytes().to_vec();
    let at = random.below(bytes.len().max(1) as u64) as usize;
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 + random.below(255) as u8;
    }
    if random.below(4) == 0 {
        bytes.truncate(at);
    }
    Record::from_bytes(bytes)
}

#[test]
fn a_stream_that_moves_midway_loses_and_repeats_nothing() {
    let (mut clean, mut moved) = (0, 0);
    for seed in 0..500 {
        let (without_error, moves) =
            conversation(seed, Slip::Nothing).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        clean += u32::from(without_error);
        moved += moves;
    }
    assert!(clean >= 490, "only {clean} of 500 went without an error: the links are not that bad");
    assert!(moved >= 500, "only {moved} moves in 500 conversations");
}

#[test]
fn a_move_that_forgets_something_is_noticed() {
    for slip in [Slip::ForgetsInbox, Slip::StaleRecord] {
        let noticed = (0..60).filter(|&seed| {
            // Who goes on from where it was may also trip an assertion.
            let run = std::panic::AssertUnwindSafe(|| conversation(seed, slip));
            !matches!(std::panic::catch_unwind(run), Ok(Ok((true, _))))
        });
        let noticed = noticed.count();
        assert!(noticed >= 5, "{slip:?} was noticed for only {noticed} seeds of 60");
    }
    assert!(
        (0..60).all(|seed| matches!(conversation(seed, Slip::Nothing), Ok((true, _)))),
        "honest moves were accused"
    );
}

/// What comes of a spoilt record is an error, a stream that fails or even one that does not (the byte did not matter),
/// but never a panic on the side that reads it.
#[test]
fn a_spoilt_record_is_never_a_panic() {
    let refused = (0..300).filter(|&seed| conversation(seed, Slip::SpoiltRecord).is_err()).count();
    assert!(refused >= 20, "only {refused} of 300 spoilt records were noticed");
}
