//! Scripts are read and printed back, and what is wrong with one is said with its place and a mend.

use super::*;

/// One of everything that a script can say.
const EVERYTHING: &str = "\
why:   All of it.
rfc:   9293 MUST-1
rfc:   7323 2.2
with:  timestamps on, sack on, scaling on, fast_open on, ecn passive, cookies on, congestion cubic, receive_buffer 4096, mtu 600, isn 7, initial_window 3
xylem: skip because it is an example
linux: differs because it is another

listen
listen backlog 3
listen no more
10ms < S 0 win 1000 <mss 1460, sackok, nop, wscale 7, ts 5, end, raw fd04aabb, cookie>
+1ms..20ms > S. 0 ack 1 win 100..200 <mss *, ts * ecr 5, wscale *, cookie *, ...>
may > . 1 ack *
@xylem a: > FPU. 1..101 ack raw 9 urg 4 ce ttl 3 dscp 8 in any
@linux +1s < . -5..5 ack 1 ect0 bad_checksum reserved 15 header_words 4 from 10.0.0.1 to 10.0.0.2 other_content cut_to 7 in 2
< - raw 7 bytes 9
> R * <>
< . 1 ack 1 <sack 1001..2001 3001..4001, cookie 00112233>
< icmp unreachable 3 quotes 1
< icmp too_large 1000 quotes raw 5
< icmp time_exceeded quotes 1
< icmp parameter_problem quotes 1
< icmp source_quench quotes 1
opened by peer after 3ms win 5 <mss 100>
opened by us
accept
accept nothing
connect
write 1
write 1 urgent
write fails
read 1
read nothing
read end
close
shutdown read
shutdown write
abort
set no_delay on
set keep_alive 2min
set user_timeout 1500us
set receive_buffer 9
set hop_limit 1
set traffic_class 4
told timed_out
= TIME-WAIT cwnd 1..2
2s quiet
anew 5
";

#[test]
fn what_is_printed_reads_as_the_same_script() {
    let script = parse(EVERYTHING).unwrap_or_else(|problems| panic!("{problems:?}"));
    let printed = script.to_string();
    let again = parse(&printed).unwrap_or_else(|problems| panic!("{printed}\n{problems:?}"));
    assert_eq!(again, script, "{printed}");
    assert_eq!(again.to_string(), printed);
    assert_eq!(script.lines.len(), EVERYTHING.lines().count() - 7, "every line says something");
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_mend() {
    let said = |line: &str| {
        let text = format!("why: x\n\n{line}\n");
        let problems = parse(&text).expect_err(line);
        problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>().join("\n")
    };
    for (line, expected) in [
        ("jump", "3:1: `jump` is not understood; expected `<`"),
        ("< SX 0", "3:3: `SX` is not understood; expected flags"),
        ("> S", "3:4: the line ends here; expected a number"),
        ("> . 1", "3:6: it has the flag `.` and no `ack`; expected both or none; mend: add `ack NUMBER`"),
        ("> S 0 ack 1", "it has `ack` and no `.`"),
        ("< . 5..5 ack 1", "3:5: `5..5` is not understood; expected a first byte"),
        ("< . 1..11 ack 1 in 3", "10 bytes cannot be sent in 3 equal pieces"),
        ("< . 1 ack 1 win 1..2", "one window of 16 bits"),
        ("< S 0 <mss 70000>", "3:12: `70000` is not understood; expected 16 bits"),
        ("< S 0 <mss 1460", "a `>` behind the options"),
        (
            "< S 0 <raw 0011223344556677889900112233445566778899001122334455667788990011223344556677889900>",
            "at most 40",
        ),
        ("+5 quiet", "3:1: `+5` is not understood; expected a time"),
        ("+1s..2s quiet", "what is done is done at one time"),
        ("+2s..1s > . 1 ack 1", "expected a time"),
        ("read 1 2", "3:8: `2` is too much; expected the end of the line"),
        ("= ESTABLISHMENT", "expected a state such as ESTABLISHED"),
        ("@bsd quiet", "expected `@xylem` or `@linux`"),
        ("< icmp unreachable 3", "3:21: the line ends here; expected `quotes`"),
        ("set traffic_class 3", "a multiple of four"),
    ] {
        let said = said(line);
        assert!(said.contains(expected), "{line}: {said}");
    }
    let problems = parse("linux: it is odd\nwith: magic on\n").expect_err("three things are wrong");
    assert_eq!(problems.len(), 3, "{problems:?}");
}

/// A link on which nobody is: what a script expects of it does not come.
struct Nobody(std::time::Duration);

impl Subject for Nobody {
    fn arm(&self) -> Arm {
        Arm::Linux
    }
    fn tolerance(&self) -> Tolerance {
        Tolerance { early: std::time::Duration::ZERO, late: std::time::Duration::ZERO }
    }
    fn now(&self) -> std::time::Duration {
        self.0
    }
    fn next(&mut self, until: std::time::Duration) -> Result<Option<(std::time::Duration, Vec<u8>)>, String> {
        self.0 = self.0.max(until);
        Ok(None)
    }
    fn deliver(&mut self, _packet: &[u8]) -> Result<(), String> {
        Ok(())
    }
    fn ask(&mut self, _ends: Ends, _verb: &Verb) -> Result<(), String> {
        Ok(())
    }
    fn look(&mut self, _ends: Ends) -> Result<(String, u32), String> {
        Ok(("CLOSED".to_owned(), 0))
    }
}

#[test]
fn a_line_that_does_not_come_true_is_named() {
    let script =
        parse("why: x\n\nlisten\n@xylem > . 1 ack 1\n+5ms < S 0\n  +10ms..20ms > S. 0 ack 1\n").expect("a script");
    let run = run(&script, &mut Nobody(std::time::Duration::ZERO));
    let failure = run.failure.expect("nobody answers");
    assert_eq!((failure.position.line, failure.position.column), (6, 3));
    assert_eq!(failure.expected, "+10ms..20ms > S. 0 ack 1");
    assert_eq!(failure.got, "nothing until 25ms");
    assert_eq!(run.log, ["0.000000 listen backlog 16", "0.005000 < S 0"]);
}
