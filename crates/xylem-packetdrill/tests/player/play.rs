//! One script after its clock: packets and calls when they are due, and what the stack sends compared in content and in
//! time with what is written.

use super::calls::Prepared;
use super::driver::Driver;
use super::packet::{Ends, Packet};
use super::script::{Call, Line, Script, What, When};
use std::net::Ipv4Addr;
use std::path::Path;
use xylem_wire::SequenceNumber;

/// How far from its time something may happen, in microseconds: packetdrill's own tolerance.
const TOLERANCE: i64 = 4_000;

/// Where TCP_INFO has its members: places and sizes.
const MEMBERS: &[(&str, usize, usize)] = &[
    ("tcpi_state", 0, 1),
    ("tcpi_ca_state", 1, 1),
    ("tcpi_retransmits", 2, 1),
    ("tcpi_options", 5, 1),
    ("tcpi_rto", 8, 4),
    ("tcpi_snd_mss", 16, 4),
    ("tcpi_unacked", 24, 4),
    ("tcpi_sacked", 28, 4),
    ("tcpi_lost", 32, 4),
    ("tcpi_rtt", 68, 4),
    ("tcpi_snd_ssthresh", 76, 4),
    ("tcpi_snd_cwnd", 80, 4),
    ("tcpi_total_retrans", 100, 4),
    ("tcpi_notsent_bytes", 144, 4),
];
const INFO_BYTES: usize = 248;

struct Player<'a> {
    driver: Driver,
    ends: Ends,
    begin: i64,
    /// When the last line happened.
    last: i64,
    /// The descriptor of the connection.
    connection: i64,
    blocked: Option<(&'a Call, Prepared, i64)>,
}

/// Plays a script; what went otherwise, with the line.
pub fn play(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let script = Script::read(&text)?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let settings = folder.path().join("settings");
    std::fs::write(&settings, &script.settings).map_err(|error| error.to_string())?;
    let mut driver = Driver::new("v4", Some(&settings));
    let begin = driver.now();
    let ends = Ends {
        local: (Ipv4Addr::new(192, 168, 0, 1), 8080),
        remote: (Ipv4Addr::new(192, 0, 2, 1), 40_000),
        local_first: None,
        remote_first: SequenceNumber(u32::MAX - 1000),
        stamp_offset: None,
    };
    let mut player = Player { driver, ends, begin, last: 0, connection: 3, blocked: None };
    for line in &script.lines {
        player.line(line).map_err(|error| format!("{}:{}: {error}", path.display(), line.number))?;
    }
    player.finish_blocked(true)?;
    assert_eq!(player.driver.say("free"), "freed");
    Ok(())
}

impl<'a> Player<'a> {
    fn line(&mut self, line: &'a Line) -> Result<(), String> {
        let due = line.when.at.map_or(self.last, |at| if line.when.is_relative { self.last + at } else { at });
        match &line.what {
            What::Leaves(packet) => return self.leaves(packet, &line.when, due),
            What::Arrives(packet) => {
                self.driver.until(self.begin + due);
                let bytes = packet.build(&self.ends);
                assert_eq!(self.driver.send(&bytes), 0);
            }
            What::Look(looks) => self.look(looks)?,
            What::Call(call) => {
                self.driver.until(self.begin + due);
                self.finish_blocked(line.when.blocks || self.is_overdue(due))?;
                self.call(call, &line.when)?;
            }
        }
        self.last = due;
        Ok(())
    }

    fn call(&mut self, call: &'a Call, when: &When) -> Result<(), String> {
        if call.name == "connect" || (call.name == "sendto" && self.ends.local_first.is_none()) {
            // The peer is a server now.
            self.ends.remote.1 = 8080;
        }
        let prepared = Prepared::new(call, &self.ends)?;
        if when.blocks {
            let end = when.to.ok_or("a call that blocks needs its end")?;
            let mood = self.driver.block(&prepared.words);
            if mood != "blocked" {
                return Err(format!("expected the call to sleep in the kernel, but it is {mood}"));
            }
            self.blocked = Some((call, prepared, end));
            return Ok(());
        }
        let outcome = self.driver.call(&prepared.words);
        if let Some(difference) = prepared.differs(call, &outcome) {
            return Err(format!("{}: {difference}", call.name));
        }
        if call.name == "accept" && outcome.result >= 0 {
            self.connection = outcome.result;
        }
        Ok(())
    }

    /// Whether the call that blocked should have come back before then.
    fn is_overdue(&self, due: i64) -> bool {
        self.blocked.as_ref().is_some_and(|(_, _, end)| *end < due)
    }

    /// A call that blocked must have come back when it should, and not before.
    fn finish_blocked(&mut self, must: bool) -> Result<(), String> {
        let Some((call, prepared, end)) = self.blocked.take() else { return Ok(()) };
        if !must && self.driver.say("is done") == "blocked" {
            self.blocked = Some((call, prepared, end));
            return Ok(());
        }
        let outcome = self.driver.join();
        if let Some(difference) = prepared.differs(call, &outcome) {
            return Err(format!("{}: {difference}", call.name));
        }
        if call.name == "accept" {
            self.connection = outcome.result;
        }
        let ended = outcome.ended - self.begin;
        if (ended - end).abs() > TOLERANCE {
            return Err(format!("{}: expected to come back at {end} us, got {ended} us", call.name));
        }
        Ok(())
    }

    fn leaves(&mut self, expected: &Packet, when: &When, due: i64) -> Result<(), String> {
        let mut left = self.driver.receive().ok_or("expected a packet, got none")?;
        let mut packet = Packet::parse(&left.packet, &mut self.ends, expected)?;
        while packet.length < expected.length && packet.begin == expected.begin {
            let Some(more) = self.driver.receive() else { break };
            packet.join(&Packet::parse(&more.packet, &mut self.ends, expected)?);
            left = more;
        }
        if let Some(difference) = packet.differs(expected) {
            return Err(format!("another packet left ({difference}):\nexpected {expected:?}\ngot      {packet:?}"));
        }
        let happened = left.time - self.begin;
        let latest = when.to.map_or(due, |to| if when.is_relative { self.last + to } else { to });
        if when.at.is_some() && !(due - TOLERANCE..=latest + TOLERANCE).contains(&happened) {
            return Err(format!("expected to leave at {due} us, got {happened} us"));
        }
        self.last = happened;
        Ok(())
    }

    fn look(&mut self, looks: &[(String, String, i64)]) -> Result<(), String> {
        let words = format!(
            "getsockopt {} {} {} o:{INFO_BYTES} l:{INFO_BYTES}",
            self.connection,
            libc::IPPROTO_TCP,
            libc::TCP_INFO
        );
        let outcome = self.driver.call(&words);
        if outcome.result != 0 {
            return Err(format!("TCP_INFO: errno {}", outcome.errno));
        }
        for (member, operator, expected) in looks {
            let (_, place, size) =
                MEMBERS.iter().find(|(name, ..)| name == member).ok_or_else(|| format!("what is `{member}`?"))?;
            let bytes = &outcome.rooms[0][*place..*place + *size];
            let value = bytes.iter().rev().fold(0i64, |all, byte| all << 8 | i64::from(*byte));
            let holds = match operator.as_str() {
                "==" => value == *expected,
                "!=" => value != *expected,
                "<" => value < *expected,
                ">" => value > *expected,
                "<=" => value <= *expected,
                ">=" => value >= *expected,
                other => return Err(format!("what is `{other}`?")),
            };
            if !holds {
                return Err(format!("expected {member} {operator} {expected}, got {value}"));
            }
        }
        Ok(())
    }
}
