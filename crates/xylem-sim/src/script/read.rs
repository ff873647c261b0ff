//! From the text of a script to its value. All that is wrong is said at once, each with its place.

use super::event::{Arm, Event, Fact, Line, Opener, Outcome, Report, ReportKind, Verb, Way, When, Wish};
use super::read_segment::{extent, fields, place, segment};
use super::segment::Segment;
use super::settings::{Setting, Settings};
use super::words::{SPAN, Word, Words, span, whole};
use super::{Claim, LINES_MAX, Script, TEXT_BYTES_MAX};
use std::time::Duration;
use xylem_graph::file::{Located, Position, Problem};

const EVENT: &str = "`<`, `>`, `may >`, `=`, `quiet`, `anew`, or what an application asks, such as `listen`";
const VERB: &str =
    "`listen`, `accept`, `connect`, `opened by`, `write`, `read`, `close`, `shutdown`, `abort`, `set` or `told`";
const WISH: &str = "`no_delay`, `keep_alive`, `user_timeout`, `receive_buffer`, `hop_limit` or `traffic_class`";
/// Connections that wait, if a script does not say.
const BACKLOG: usize = 16;
/// The most bytes of one read or write.
const BYTES_MAX: usize = 1 << 20;

/// States by their RFC names.
const STATES: [&str; 11] = [
    "LISTEN",
    "SYN-SENT",
    "SYN-RECEIVED",
    "ESTABLISHED",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "CLOSE-WAIT",
    "CLOSING",
    "LAST-ACK",
    "TIME-WAIT",
    "CLOSED",
];

/// Reads a script.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn parse(text: &str) -> Result<Script, Vec<Problem>> {
    let mut script = Script {
        why: String::new(),
        rfc: Vec::new(),
        settings: Settings::default(),
        xylem: Claim::Same,
        linux: Claim::Same,
        lines: Vec::new(),
    };
    let start = Position { line: 1, column: 1 };
    if text.len() > TEXT_BYTES_MAX {
        let what = format!("the script has {} bytes", text.len());
        return Err(vec![Problem::new(start, what, format!("at most {TEXT_BYTES_MAX}"), "shorten it")]);
    }
    let mut problems = Vec::new();
    for (number, text) in (1..).zip(text.lines()) {
        if let Err(problem) = script.line(number, text) {
            problems.push(problem);
        }
    }
    if script.why.is_empty() {
        problems.push(Problem::new(start, "the script does not say what it shows", "`why: …`", "add that line"));
    }
    if script.lines.len() > LINES_MAX {
        let what = format!("{} lines", script.lines.len());
        problems.push(Problem::new(start, what, format!("at most {LINES_MAX}"), "make two scripts of it"));
    }
    problems.sort();
    if problems.is_empty() { Ok(script) } else { Err(problems) }
}

impl Script {
    fn line(&mut self, number: u32, text: &str) -> Result<(), Problem> {
        if self.lines.is_empty()
            && let Some((name, value)) = text.split_once(':')
            && let "why" | "rfc" | "with" | "linux" | "xylem" = name.trim()
        {
            let column = name.chars().count() as u32 + 2;
            return self.heading(name.trim(), value, Position { line: number, column });
        }
        let mut words = Words::of(text, number, 1);
        let Some(first) = words.peek() else { return Ok(()) };
        let line = line(&mut words)?;
        words.finish()?;
        self.lines.push(Located::at(first.position, line));
        Ok(())
    }

    fn heading(&mut self, name: &str, value: &str, position: Position) -> Result<(), Problem> {
        let text = value.trim();
        let wrong = |what: &str, expected: &str| Problem::new(position, what, expected, "correct it");
        match name {
            "why" if self.why.is_empty() && !text.is_empty() => self.why = text.to_owned(),
            "why" => return Err(wrong("a second or an empty `why`", "one line that says what the script shows")),
            "rfc" if text.is_empty() => return Err(wrong("no rule", "an RFC's number and a label or section")),
            "rfc" => self.rfc.push(text.to_owned()),
            "with" => {
                let mut column = position.column;
                for part in value.split(',') {
                    let mut words = Words::of(part, position.line, column);
                    column += part.chars().count() as u32 + 1;
                    setting(&mut words, &mut self.settings)?;
                    words.finish()?;
                }
            }
            _ => {
                let claim = match (text.strip_prefix("skip because "), text.strip_prefix("differs because ")) {
                    (Some(reason), _) => Claim::Skip(reason.trim().to_owned()),
                    (_, Some(reason)) => Claim::Differs(reason.trim().to_owned()),
                    _ => return Err(wrong("a claim without a reason", "`skip because …` or `differs because …`")),
                };
                if name == "linux" { self.linux = claim } else { self.xylem = claim }
            }
        }
        Ok(())
    }
}

fn setting(words: &mut Words<'_>, settings: &mut Settings) -> Result<(), Problem> {
    let names = "`timestamps`, `sack`, `scaling`, `ecn`, `cookies`, `fast_open`, `congestion`, `receive_buffer`, \
                 `mtu`, `isn` or `initial_window`";
    let name = words.need(names)?;
    match name.text {
        "timestamps" => settings.timestamps = words.read("`on` or `off`", truth)?,
        "sack" => settings.sack = words.read("`on` or `off`", truth)?,
        "scaling" => settings.scaling = words.read("`on` or `off`", truth)?,
        "fast_open" => settings.fast_open = words.read("`on` or `off`", truth)?,
        "ecn" => settings.ecn = words.read("`on`, `off` or `passive`", choice)?,
        "cookies" => settings.cookies = words.read("`on`, `off` or `passive`", choice)?,
        "congestion" => settings.congestion = words.need("the name of a congestion control")?.text.to_owned(),
        "receive_buffer" => settings.receive_buffer = Some(words.read("a number of bytes", whole)?),
        "mtu" => settings.mtu = words.read("68 to 9000 bytes", |it| whole(it).filter(|it| (68..=9000).contains(it)))?,
        "isn" => settings.isn = words.read("a number of 32 bits", whole)?,
        "initial_window" => settings.initial_window = words.read("a number of segments", whole)?,
        _ => return Err(name.wrong(names)),
    }
    Ok(())
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn choice(text: &str) -> Option<Setting> {
    [Setting::Off, Setting::On, Setting::Passive].into_iter().find(|setting| setting.word() == text)
}

fn line(words: &mut Words<'_>) -> Result<Line, Problem> {
    let only = match words.peek() {
        Some(word) if word.text.starts_with('@') => {
            words.take();
            Some(match word.text {
                "@xylem" => Arm::Xylem,
                "@linux" => Arm::Linux,
                _ => return Err(word.wrong("`@xylem` or `@linux`")),
            })
        }
        _ => None,
    };
    let when = match words.peek() {
        Some(word) if word.text.starts_with(|first: char| first == '+' || first.is_ascii_digit()) => {
            words.take();
            when(word)?
        }
        _ => When::NOW,
    };
    let who = match words.peek().and_then(|word| word.text.strip_suffix(':')) {
        Some(name) if !name.is_empty() => {
            words.take();
            name.to_owned()
        }
        _ => String::new(),
    };
    let first = words.peek();
    let event = event(words)?;
    let is_range = match when {
        When::After { least, most } | When::At { least, most } => least != most,
    };
    if let (true, false, Some(word)) = (is_range, matches!(event, Event::Expect { .. } | Event::May { .. }), first) {
        let what = "what is done is done at one time";
        return Err(Problem::new(word.position, what, "a time without `..`", "write one time"));
    }
    Ok(Line { only, when, who, event })
}

fn when(word: Word<'_>) -> Result<When, Problem> {
    let expected = format!("{SPAN}, two of them with `..` between them, perhaps with `+` in front");
    let relative = word.text.strip_prefix('+');
    let text = relative.unwrap_or(word.text);
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (span(least), span(most)) {
        (Some(least), Some(most)) if least <= most => Ok(match relative {
            Some(_) => When::After { least, most },
            None => When::At { least, most },
        }),
        _ => Err(word.wrong(&expected)),
    }
}

fn event(words: &mut Words<'_>) -> Result<Event, Problem> {
    let word = words.need(EVENT)?;
    Ok(match word.text {
        "<" if words.take_if("icmp") => Event::Report(report(words)?),
        "<" => {
            let position = words.peek().map_or(word.position, |word| word.position);
            let (segment, pieces) = segment(words)?;
            let can = segment.window.is_none_or(|window| window.least == window.most && window.most <= 0xffff);
            let pieces = pieces.unwrap_or(Some(1));
            let (true, Some(pieces)) = (can, pieces) else {
                let what = "what is sent has one window of 16 bits, and comes in a number of pieces";
                return Err(Problem::new(position, what, "numbers, not ranges", "write one number"));
            };
            if pieces > 1 && !segment.payload.is_multiple_of(pieces) {
                let what = format!("{} bytes cannot be sent in {pieces} equal pieces", segment.payload);
                return Err(Problem::new(position, what, "a multiple", "change either"));
            }
            Event::Send { segment, pieces }
        }
        ">" => {
            let (segment, pieces) = segment(words)?;
            Event::Expect { segment, pieces: pieces.unwrap_or(Some(1)) }
        }
        "may" => {
            words.read("`>` behind `may`", |text| (text == ">").then_some(()))?;
            let position = words.peek().map_or(word.position, |word| word.position);
            let (segment, pieces) = segment(words)?;
            if pieces.is_some() {
                return Err(Problem::new(position, "`in` behind `may`", "one segment", "write a line for each"));
            }
            Event::May { segment }
        }
        "=" => Event::Look(facts(words)?),
        "quiet" => Event::Quiet,
        "anew" => Event::Anew { later: words.read("how much later the peer's numbers begin", whole)? },
        _ => Event::Ask(verb(word, words)?),
    })
}

fn verb(word: Word<'_>, words: &mut Words<'_>) -> Result<Verb, Problem> {
    let bytes = |text: &str| whole::<usize>(text).filter(|bytes| *bytes <= BYTES_MAX);
    let at_most = "a number of bytes, at most 1 MiB";
    Ok(match word.text {
        "listen" if words.take_if("no") => {
            words.read("`more` behind `listen no`", |text| (text == "more").then_some(()))?;
            Verb::ListenNoMore
        }
        "listen" if words.take_if("backlog") => Verb::Listen { backlog: words.read("a number of connections", whole)? },
        "listen" => Verb::Listen { backlog: BACKLOG },
        "accept" if words.take_if("nothing") => Verb::AcceptNothing,
        "accept" => Verb::Accept,
        "connect" => Verb::Connect,
        "opened" => opened(words)?,
        "write" if words.take_if("fails") => Verb::WriteFails,
        "write" => Verb::Write { bytes: words.read(at_most, bytes)?, urgent: words.take_if("urgent") },
        "read" if words.take_if("nothing") => Verb::ReadNothing,
        "read" if words.take_if("end") => Verb::ReadEnd,
        "read" => Verb::Read(words.read("a number of bytes, `nothing` or `end`", bytes)?),
        "close" => Verb::Close,
        "abort" => Verb::Abort,
        "shutdown" => Verb::Shutdown(words.read("`read` or `write`", |text| match text {
            "read" => Some(Way::Read),
            "write" => Some(Way::Write),
            _ => None,
        })?),
        "set" => Verb::Set(wish(words)?),
        "told" => {
            let outcome = |text: &str| Outcome::ALL.into_iter().find(|outcome| outcome.word() == text);
            let expected = Outcome::ALL.map(Outcome::word).join(", ");
            Verb::Told(words.read(&expected, outcome)?)
        }
        _ => return Err(word.wrong(&format!("{EVENT}: {VERB}"))),
    })
}

fn opened(words: &mut Words<'_>) -> Result<Verb, Problem> {
    words.read("`by peer` or `by us`", |text| (text == "by").then_some(()))?;
    let by = words.read("`peer` or `us`", |text| match text {
        "peer" => Some(Opener::Peer),
        "us" => Some(Opener::Us),
        _ => None,
    })?;
    let after = if words.take_if("after") { words.read(SPAN, span)? } else { Duration::ZERO };
    let mut segment = Segment::default();
    fields(words, &mut segment)?;
    Ok(Verb::Opened { by, segment, after })
}

fn wish(words: &mut Words<'_>) -> Result<Wish, Problem> {
    let word = words.need(WISH)?;
    Ok(match word.text {
        "no_delay" => Wish::NoDelay(words.read("`on` or `off`", truth)?),
        "keep_alive" => Wish::KeepAlive(words.read(SPAN, span)?),
        "user_timeout" => Wish::UserTimeout(words.read(SPAN, span)?),
        "receive_buffer" => Wish::ReceiveBuffer(words.read("a number of bytes", whole)?),
        "hop_limit" => Wish::HopLimit(words.read("1 to 255", |text| whole(text).filter(|hops| *hops > 0))?),
        "traffic_class" => {
            let class = |text: &str| whole::<u8>(text).filter(|class| class % 4 == 0);
            Wish::TrafficClass(words.read("a multiple of four below 256", class)?)
        }
        _ => return Err(word.wrong(WISH)),
    })
}

fn facts(words: &mut Words<'_>) -> Result<Vec<Fact>, Problem> {
    let expected = "a state such as ESTABLISHED, or `cwnd NUMBER`";
    let mut facts = Vec::new();
    loop {
        let word = words.need(expected)?;
        facts.push(match word.text {
            "cwnd" => {
                let window = words.read("segments, or from and to", extent)?;
                Fact::Window { least: window.least, most: window.most }
            }
            text => match STATES.iter().find(|state| **state == text) {
                Some(state) => Fact::State(state),
                None => return Err(word.wrong(expected)),
            },
        });
        if words.peek().is_none() {
            return Ok(facts);
        }
    }
}

fn report(words: &mut Words<'_>) -> Result<Report, Problem> {
    let kinds = "`unreachable CODE`, `too_large MTU`, `time_exceeded`, `parameter_problem` or `source_quench`";
    let word = words.need(kinds)?;
    let kind = match word.text {
        "unreachable" => ReportKind::Unreachable(words.read("a code of 8 bits", whole)?),
        "too_large" => ReportKind::TooLarge { mtu: words.read("an MTU of 16 bits", whole)? },
        "time_exceeded" => ReportKind::TimeExceeded,
        "parameter_problem" => ReportKind::ParameterProblem,
        "source_quench" => ReportKind::SourceQuench,
        _ => return Err(word.wrong(kinds)),
    };
    words.read("`quotes` and the number of a segment", |text| (text == "quotes").then_some(()))?;
    Ok(Report { kind, quotes: place(words)? })
}
