//! A script's lines: when, and what: a packet, a system call, or a look at TCP_INFO. Settings by name stand in comments
//! (`// sysctl net.ipv4.tcp_sack 0`), since whoever plays a script has to see to them.

use super::packet::Packet;
use super::words::{Reader, Value};

/// A script.
#[derive(Debug, Default)]
pub struct Script {
    pub settings: String,
    pub lines: Vec<Line>,
}

#[derive(Debug)]
pub struct Line {
    /// Where it stands, from 1.
    pub number: usize,
    pub when: When,
    pub what: What,
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Counted from the line before; else from the beginning.
    pub is_relative: bool,
    /// `None`: whenever.
    pub at: Option<i64>,
    /// The end of a range, or of a blocking call.
    pub to: Option<i64>,
    /// It is a call that blocks until then.
    pub blocks: bool,
}

#[derive(Debug)]
pub enum What {
    Arrives(Packet),
    Leaves(Packet),
    Call(Call),
    /// Members of TCP_INFO of the last connection, and what they must be.
    Look(Vec<(String, String, i64)>),
}

#[derive(Debug)]
pub struct Call {
    pub name: String,
    pub arguments: Vec<Value>,
    /// `None`: whatever it is.
    pub result: Option<i64>,
    pub error: Option<Value>,
}

impl Script {
    pub fn read(text: &str) -> Result<Script, String> {
        let mut script = Script::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if let Some(setting) = line.strip_prefix("// sysctl ") {
                script.settings.push_str(setting);
                script.settings.push('\n');
            }
            if line.is_empty() || line.starts_with("//") || line.starts_with("--") {
                continue;
            }
            let read = read_line(line).map_err(|error| format!("line {}: {error}", index + 1))?;
            script.lines.push(Line { number: index + 1, when: read.0, what: read.1 });
        }
        Ok(script)
    }
}

fn read_line(line: &str) -> Result<(When, What), String> {
    let (time, rest) = line.split_once(char::is_whitespace).ok_or("a time alone")?;
    let when = read_time(time)?;
    let rest = rest.trim();
    let what = if let Some(packet) = rest.strip_prefix('<') {
        What::Arrives(Packet::read(packet)?)
    } else if let Some(packet) = rest.strip_prefix('>') {
        What::Leaves(Packet::read(packet)?)
    } else if let Some(code) = rest.strip_prefix("%{") {
        What::Look(read_looks(code.trim_end_matches("}%"))?)
    } else {
        What::Call(read_call(rest)?)
    };
    Ok((when, what))
}

/// `0.1`, `+.1`, `+0~+.1`, `0.1...0.2`, `*`.
fn read_time(text: &str) -> Result<When, String> {
    let seconds = |text: &str| -> Result<i64, String> {
        let text = text.trim_start_matches('+');
        let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is no time"))?;
        Ok((seconds * 1e6).round() as i64)
    };
    let is_relative = text.starts_with('+');
    if text == "*" {
        return Ok(When { is_relative: true, at: None, to: None, blocks: false });
    }
    let (begin, end, blocks) = match (text.split_once("..."), text.split_once('~')) {
        (Some((begin, end)), _) => (begin, Some(end), true),
        (None, Some((begin, end))) => (begin, Some(end), false),
        (None, None) => (text, None, false),
    };
    Ok(When { is_relative, at: Some(seconds(begin)?), to: end.map(seconds).transpose()?, blocks })
}

fn read_call(text: &str) -> Result<Call, String> {
    let (name, rest) = text.split_once('(').ok_or_else(|| format!("`{text}` is no call"))?;
    let mut reader = Reader::new(rest);
    let arguments = reader.list(")")?;
    if !reader.take("=") {
        return Err(format!("expected `=` at `{}`", reader.rest()));
    }
    if reader.take("?") {
        return Ok(Call { name: name.to_owned(), arguments, result: None, error: None });
    }
    let result = Some(reader.value()?.number()?);
    let error = if reader.rest().starts_with('E') { Some(reader.value()?) } else { None };
    Ok(Call { name: name.to_owned(), arguments, result, error })
}

/// `assert tcpi_snd_cwnd == 10`, several with `;`.
fn read_looks(text: &str) -> Result<Vec<(String, String, i64)>, String> {
    let looks = text.split(';').map(str::trim).filter(|look| !look.is_empty());
    let read = |look: &str| {
        let words: Vec<&str> = look.split(',').next().unwrap_or("").split_whitespace().collect();
        match words[..] {
            ["assert", member, operator, number] => {
                let number = number.parse().map_err(|_| format!("`{number}` is no number"))?;
                Ok((member.to_owned(), operator.to_owned(), number))
            }
            _ => Err(format!("expected `assert MEMBER OPERATOR NUMBER`, got `{look}`")),
        }
    };
    looks.map(read).collect()
}
