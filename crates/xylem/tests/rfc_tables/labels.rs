//! How a rule is named, in one spelling that a search finds. RFC 9293 has labels of its own, `MUST-12`; a rule of another
//! RFC is its number and section, `RFC 6298 5.3`, with a step of that section behind a hyphen, `RFC 5961 3.2-1`. A mention
//! with a comma, `RFC 6298, section 5`, is a reference for the reader and no claim.

use std::fmt;

/// The RFC whose labels stand alone.
pub const TCP: u16 = 9293;
/// The RFCs whose key rules have labels of ours.
pub const NUMBERED: [u16; 6] = [5961, 6298, 6675, 7323, 8985, 9438];

/// A rule of an RFC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The RFC's number.
    pub rfc: u16,
    /// Its label there.
    pub name: String,
}

impl Label {
    pub fn new(rfc: u16, name: &str) -> Label {
        Label { rfc, name: name.to_owned() }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "RFC {} {}", self.rfc, self.name)
    }
}

/// The labels named in a line of Rust.
pub fn in_line(line: &str) -> Vec<Label> {
    let mut found = Vec::new();
    for (place, _) in line.char_indices() {
        let (before, rest) = line.split_at(place);
        if before.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '-' || last == '_') {
            continue;
        }
        found.extend(of_tcp(rest));
        found.extend(numbered(rest));
    }
    found
}

/// What the heading `rfc:` of a packet script names, if it is a label.
pub fn in_heading(rule: &str) -> Option<Label> {
    let (number, name) = rule.trim().split_once(' ')?;
    match number.parse().ok()? {
        TCP => of_tcp(name.trim()),
        number if NUMBERED.contains(&number) => Some(Label::new(number, name.trim())),
        _ => None,
    }
}

fn of_tcp(text: &str) -> Option<Label> {
    let word = ["MUST-", "SHLD-", "MAY-", "REC-"].into_iter().find(|word| text.starts_with(word))?;
    let digits = text[word.len()..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len() - word.len());
    (digits > 0).then(|| Label::new(TCP, &text[..word.len() + digits]))
}

fn numbered(text: &str) -> Option<Label> {
    let (number, name) = text.strip_prefix("RFC ")?.split_once(' ')?;
    let number = number.parse().ok().filter(|number| NUMBERED.contains(number))?;
    let end = name.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '.' || letter == '-'));
    let name = name[..end.unwrap_or(name.len())].trim_end_matches('.');
    name.starts_with(|first: char| first.is_ascii_digit()).then(|| Label::new(number, name))
}
