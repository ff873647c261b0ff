//! Scripts printed back in the format they are read from: reading what is printed gives the same value again.

use super::event::{Arm, Event, Fact, Line, Opener, Outcome, Report, ReportKind, Verb, Way, When, Wish};
use super::segment::{Extent, Flaw, OptionWish, Place, Segment, Stamp};
use super::settings::Settings;
use super::{Claim, Script};
use std::fmt::{self, Display, Formatter};
use std::time::Duration;
use xylem_wire::{Ecn, TcpFlags};

impl Display for Script {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        writeln!(out, "why:   {}", self.why)?;
        for rule in &self.rfc {
            writeln!(out, "rfc:   {rule}")?;
        }
        let settings = self.settings.to_string();
        if !settings.is_empty() {
            writeln!(out, "with:  {settings}")?;
        }
        for (name, claim) in [("xylem", &self.xylem), ("linux", &self.linux)] {
            match claim {
                Claim::Same => {}
                Claim::Skip(reason) => writeln!(out, "{name}: skip because {reason}")?,
                Claim::Differs(reason) => writeln!(out, "{name}: differs because {reason}")?,
            }
        }
        writeln!(out)?;
        self.lines.iter().try_for_each(|line| writeln!(out, "{}", line.value))
    }
}

impl Display for Settings {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let usual = Settings::default();
        let mut words = Vec::new();
        let mut truth = |name: &str, value: bool, usual: bool| {
            if value != usual {
                words.push(format!("{name} {}", if value { "on" } else { "off" }));
            }
        };
        truth("timestamps", self.timestamps, usual.timestamps);
        truth("sack", self.sack, usual.sack);
        truth("scaling", self.scaling, usual.scaling);
        truth("fast_open", self.fast_open, usual.fast_open);
        if self.ecn != usual.ecn {
            words.push(format!("ecn {}", self.ecn.word()));
        }
        if self.cookies != usual.cookies {
            words.push(format!("cookies {}", self.cookies.word()));
        }
        if self.congestion != usual.congestion {
            words.push(format!("congestion {}", self.congestion));
        }
        if let Some(bytes) = self.receive_buffer {
            words.push(format!("receive_buffer {bytes}"));
        }
        if self.mtu != usual.mtu {
            words.push(format!("mtu {}", self.mtu));
        }
        if self.isn != usual.isn {
            words.push(format!("isn {}", self.isn));
        }
        if self.initial_window != usual.initial_window {
            words.push(format!("initial_window {}", self.initial_window));
        }
        out.write_str(&words.join(", "))
    }
}

impl Display for Line {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.only {
            None => {}
            Some(Arm::Xylem) => out.write_str("@xylem ")?,
            Some(Arm::Linux) => out.write_str("@linux ")?,
        }
        if self.when != When::NOW {
            write!(out, "{} ", self.when)?;
        }
        if !self.who.is_empty() {
            write!(out, "{}: ", self.who)?;
        }
        self.event.fmt(out)
    }
}

impl Display for When {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (sign, least, most) = match *self {
            When::After { least, most } => ("+", least, most),
            When::At { least, most } => ("", least, most),
        };
        write!(out, "{sign}{}", Span(least))?;
        if most != least {
            write!(out, "..{}", Span(most))?;
        }
        Ok(())
    }
}

/// A span of time in the largest unit that is exact.
pub(super) struct Span(pub Duration);

impl Display for Span {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            micros if micros % 1_000_000 == 0 => write!(out, "{}s", micros / 1_000_000),
            micros if micros % 1_000 == 0 => write!(out, "{}ms", micros / 1_000),
            micros => write!(out, "{micros}us"),
        }
    }
}

impl Display for Event {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Event::Send { segment, pieces: 1 } => write!(out, "< {segment}"),
            Event::Send { segment, pieces } => write!(out, "< {segment} in {pieces}"),
            Event::Report(report) => write!(out, "< icmp {report}"),
            Event::Expect { segment, pieces: Some(1) } => write!(out, "> {segment}"),
            Event::Expect { segment, pieces: Some(pieces) } => write!(out, "> {segment} in {pieces}"),
            Event::Expect { segment, pieces: None } => write!(out, "> {segment} in any"),
            Event::May { segment } => write!(out, "may > {segment}"),
            Event::Ask(verb) => verb.fmt(out),
            Event::Look(facts) => {
                out.write_str("=")?;
                facts.iter().try_for_each(|fact| write!(out, " {fact}"))
            }
            Event::Quiet => out.write_str("quiet"),
            Event::Anew { later } => write!(out, "anew {later}"),
        }
    }
}

impl Display for Verb {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Verb::Listen { backlog } => write!(out, "listen backlog {backlog}"),
            Verb::ListenNoMore => out.write_str("listen no more"),
            Verb::Accept => out.write_str("accept"),
            Verb::AcceptNothing => out.write_str("accept nothing"),
            Verb::Connect => out.write_str("connect"),
            Verb::Opened { by, segment, after } => {
                let by = match by {
                    Opener::Peer => "peer",
                    Opener::Us => "us",
                };
                write!(out, "opened by {by}")?;
                if !after.is_zero() {
                    write!(out, " after {}", Span(*after))?;
                }
                fields(segment, out)
            }
            Verb::Write { bytes, urgent: false } => write!(out, "write {bytes}"),
            Verb::Write { bytes, urgent: true } => write!(out, "write {bytes} urgent"),
            Verb::WriteFails => out.write_str("write fails"),
            Verb::Read(bytes) => write!(out, "read {bytes}"),
            Verb::ReadNothing => out.write_str("read nothing"),
            Verb::ReadEnd => out.write_str("read end"),
            Verb::Close => out.write_str("close"),
            Verb::Shutdown(Way::Read) => out.write_str("shutdown read"),
            Verb::Shutdown(Way::Write) => out.write_str("shutdown write"),
            Verb::Abort => out.write_str("abort"),
            Verb::Set(wish) => write!(out, "set {wish}"),
            Verb::Told(outcome) => write!(out, "told {}", outcome.word()),
        }
    }
}

impl Display for Wish {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Wish::NoDelay(true) => out.write_str("no_delay on"),
            Wish::NoDelay(false) => out.write_str("no_delay off"),
            Wish::KeepAlive(after) => write!(out, "keep_alive {}", Span(*after)),
            Wish::UserTimeout(after) => write!(out, "user_timeout {}", Span(*after)),
            Wish::ReceiveBuffer(bytes) => write!(out, "receive_buffer {bytes}"),
            Wish::HopLimit(hops) => write!(out, "hop_limit {hops}"),
            Wish::TrafficClass(class) => write!(out, "traffic_class {class}"),
        }
    }
}

impl Outcome {
    /// All outcomes.
    pub(super) const ALL: [Outcome; 7] = [
        Outcome::Open,
        Outcome::Refused,
        Outcome::Reset,
        Outcome::TimedOut,
        Outcome::Unreachable,
        Outcome::Failed,
        Outcome::NoError,
    ];

    /// Its word in a script.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Open => "open",
            Outcome::Refused => "refused",
            Outcome::Reset => "reset",
            Outcome::TimedOut => "timed_out",
            Outcome::Unreachable => "unreachable",
            Outcome::Failed => "failed",
            Outcome::NoError => "nothing",
        }
    }
}

impl Display for Fact {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Fact::State(name) => out.write_str(name),
            Fact::Window { least, most } => write!(out, "cwnd {}", Extent { least: *least, most: *most }),
        }
    }
}

impl Display for Report {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.kind {
            ReportKind::Unreachable(code) => write!(out, "unreachable {code}")?,
            ReportKind::TooLarge { mtu } => write!(out, "too_large {mtu}")?,
            ReportKind::TimeExceeded => out.write_str("time_exceeded")?,
            ReportKind::ParameterProblem => out.write_str("parameter_problem")?,
            ReportKind::SourceQuench => out.write_str("source_quench")?,
        }
        write!(out, " quotes {}", self.quotes)
    }
}

impl Display for Segment {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.flags, self.sequence)?;
        match (self.payload, self.sequence) {
            (0, _) => {}
            (payload, Place::Counted(first)) => write!(out, "..{}", first + i64::from(payload))?,
            (payload, Place::Raw(_) | Place::Any) => write!(out, " bytes {payload}")?,
        }
        fields(self, out)
    }
}

/// All but flags and numbers.
fn fields(segment: &Segment, out: &mut Formatter<'_>) -> fmt::Result {
    if let Some(place) = segment.acknowledgment {
        write!(out, " ack {place}")?;
    }
    if let Some(window) = segment.window {
        write!(out, " win {window}")?;
    }
    if let Some(pointer) = segment.urgent {
        write!(out, " urg {pointer}")?;
    }
    if let Some(ecn) = segment.ecn {
        write!(out, " {}", ecn_word(ecn))?;
    }
    if let Some(hops) = segment.hop_limit {
        write!(out, " ttl {hops}")?;
    }
    if let Some(dscp) = segment.dscp {
        write!(out, " dscp {dscp}")?;
    }
    for flaw in &segment.flaws {
        match flaw {
            Flaw::Checksum => out.write_str(" bad_checksum")?,
            Flaw::Reserved(bits) => write!(out, " reserved {bits}")?,
            Flaw::HeaderWords(words) => write!(out, " header_words {words}")?,
            Flaw::From(address) => write!(out, " from {address}")?,
            Flaw::To(address) => write!(out, " to {address}")?,
            Flaw::OtherContent => out.write_str(" other_content")?,
            Flaw::CutTo(bytes) => write!(out, " cut_to {bytes}")?,
        }
    }
    if segment.options.is_some() || segment.others {
        let mut words: Vec<String> = segment.options.iter().flatten().map(|option| option.to_string()).collect();
        if segment.others {
            words.push("...".to_owned());
        }
        write!(out, " <{}>", words.join(", "))?;
    }
    Ok(())
}

pub(super) const ECN_WORDS: [(Ecn, &str); 4] =
    [(Ecn::NotCapable, "not_ect"), (Ecn::Capable0, "ect0"), (Ecn::Capable1, "ect1"), (Ecn::Experienced, "ce")];

fn ecn_word(ecn: Ecn) -> &'static str {
    // The table has a line for each of the four values.
    ECN_WORDS.iter().find(|(known, _)| *known == ecn).map_or("not_ect", |(_, word)| word)
}

impl Display for Place {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Place::Counted(number) => number.fmt(out),
            Place::Raw(number) => write!(out, "raw {number}"),
            Place::Any => out.write_str("*"),
        }
    }
}

impl Display for Extent {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.least)?;
        if self.most != self.least {
            write!(out, "..{}", self.most)?;
        }
        Ok(())
    }
}

impl Display for Stamp {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Stamp::Counted(value) => value.fmt(out),
            Stamp::Any => out.write_str("*"),
        }
    }
}

impl Display for OptionWish {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            OptionWish::SegmentSize(Some(size)) => write!(out, "mss {size}"),
            OptionWish::SegmentSize(None) => out.write_str("mss *"),
            OptionWish::WindowScale(Some(shift)) => write!(out, "wscale {shift}"),
            OptionWish::WindowScale(None) => out.write_str("wscale *"),
            OptionWish::SackPermitted => out.write_str("sackok"),
            OptionWish::Timestamps(value, echo) => write!(out, "ts {value} ecr {echo}"),
            OptionWish::Sack(runs) => {
                out.write_str("sack")?;
                runs.iter().try_for_each(|(left, right)| write!(out, " {left}..{right}"))
            }
            OptionWish::Cookie(None) => out.write_str("cookie *"),
            OptionWish::Cookie(Some(bytes)) => {
                out.write_str("cookie")?;
                if !bytes.is_empty() {
                    out.write_str(" ")?;
                }
                hexadecimal(bytes, out)
            }
            OptionWish::NoOperation => out.write_str("nop"),
            OptionWish::End => out.write_str("end"),
            OptionWish::Raw(bytes) => {
                out.write_str("raw ")?;
                hexadecimal(bytes, out)
            }
        }
    }
}

fn hexadecimal(bytes: &[u8], out: &mut Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

/// The letter of each flag, as [`TcpFlags`] prints them.
pub(super) const FLAGS: [(char, TcpFlags); 8] = [
    ('F', TcpFlags::FIN),
    ('S', TcpFlags::SYN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('U', TcpFlags::URG),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('.', TcpFlags::ACK),
];
