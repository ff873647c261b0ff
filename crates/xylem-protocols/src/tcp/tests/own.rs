//! What an application says about its own connection: probes, tries, the size of segments, the cork.

use super::script::{Script, segment};
use xylem_core::{Duration, Event, Record, Setting};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_connections_own_probes_are_its_own() {
    let mut script = Script::open(Script::config());
    script.set(Setting::KeepAlive(Some(10 * SECOND)));
    script.set(Setting::KeepAliveInterval(3 * SECOND));
    script.set(Setting::KeepAliveProbes(2));
    script.wait(10 * SECOND);
    script.expect(&[". 0+0 ack 1"]);
    script.wait(3 * SECOND);
    script.expect(&[". 0+0 ack 1"]);
    let now = script.now;
    assert_eq!(script.host.status(now, 0).keep_alive_probes, 2);
    script.wait(3 * SECOND);
    script.expect(&["R. 1+0 ack 1"]);
    assert_eq!(script.events(), [Event::Opened, Event::TimedOut]);
}

#[test]
fn a_syn_is_tried_as_often_as_was_said() {
    let mut script = Script::syn_sent(Script::config());
    script.set(Setting::OpenTries(2));
    script.wait(6 * SECOND);
    script.expect(&["S 0+0", "S 0+0"]);
    script.wait(SECOND);
    script.expect(&[]);
    assert_eq!(script.events(), [Event::InTrouble, Event::TimedOut], "1, 2 and 4 seconds, and no third one");
}

#[test]
fn segments_are_no_larger_than_was_said() {
    let mut script = Script::open(Script::config());
    script.set(Setting::SegmentSize(600));
    script.push(1500);
    let sent = script.expect(&[". 1+600 ack 1", ". 601+600 ack 1"]);
    assert_eq!(sent[1].data.len(), 600);
    script.inject(segment(".", 1, 1201));
    script.expect(&["P. 1201+300 ack 1"]);
    let now = script.now;
    assert_eq!(script.host.status(now, 0).segment_size, 600);
}

#[test]
fn what_is_corked_waits_for_a_segment_a_fin_or_the_timer() {
    let mut script = Script::open(Script::config());
    script.set(Setting::Cork(true));
    script.push(400);
    script.expect(&[]);
    script.push(700);
    script.expect(&[". 1+1000 ack 1"]);
    script.set(Setting::Cork(false));
    script.expect(&["P. 1001+100 ack 1"]);
    script.inject(segment(".", 1, 1101));
    script.set(Setting::Cork(true));
    script.push(10);
    script.wait_ms(100);
    script.expect(&[]);
    script.wait(2 * SECOND);
    let sent = script.raw_sent();
    assert_eq!(sent.first().map(|sent| sent.text.as_str()), Some("P. 1101+10 ack 1"), "not for ever");
    script.inject(segment(".", 1, 1111));
    script.push(20);
    script.close();
    script.expect(&["FP. 1111+20 ack 1"]);
}

/// What was said goes along when the connection moves, or comes to rest.
#[test]
fn what_was_said_moves_along() {
    let mut script = Script::open(Script::config());
    script.set(Setting::KeepAliveInterval(3 * SECOND));
    script.set(Setting::SegmentSize(700));
    let record = script.host.connections[0].path.take().expect("it is open").export();
    let mut record = Record::from_bytes(record.as_bytes().to_vec());
    let index = script.host.import(script.now, 40_000, 80, &mut record).expect("a record of ours");
    let status = script.host.status(script.now, index);
    assert_eq!(status.segment_size, 700);
}
