//! The rules of an RFC as a file of `docs/rfc` lists them: what each asks, in our words, and why it is not done where it is
//! not. Nothing here looks at the code.

use super::files;
use super::labels::{Label, TCP};
use serde::Deserialize;

/// An RFC's rules, in the groups in which its page shows them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Its number.
    pub rfc: u16,
    /// What it is about.
    pub title: String,
    /// What a reader should know besides.
    #[serde(default)]
    pub note: String,
    pub group: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub title: String,
    pub rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub label: String,
    /// How strong it is; RFC 9293's labels say so themselves.
    pub level: Option<Level>,
    /// Where it stands; labels of ours begin with it.
    pub section: Option<String>,
    /// What it asks.
    pub asks: String,
    /// Why it is not done, or not here.
    pub exception: Option<String>,
}

/// How much a rule asks (RFC 2119).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    Must,
    Should,
    May,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::May => "MAY",
        }
    }
}

impl Rule {
    /// How strong it is. `REC` recommends, as `SHOULD` does.
    ///
    /// # Panics
    /// If the file says nothing and the label does not tell.
    pub fn level(&self) -> Level {
        match (self.level, self.label.split('-').next()) {
            (Some(level), _) => level,
            (None, Some("MUST")) => Level::Must,
            (None, Some("SHLD" | "REC")) => Level::Should,
            (None, Some("MAY")) => Level::May,
            (None, _) => panic!("{}: expected a `level`", self.label),
        }
    }

    /// Where it stands in its RFC.
    pub fn section(&self) -> &str {
        let begin = self.label.split('-').next().unwrap_or_default();
        self.section.as_deref().unwrap_or(begin)
    }
}

impl Rules {
    /// Those in the text of a file.
    ///
    /// # Errors
    /// What the file's grammar says is wrong.
    pub fn parse(text: &str) -> Result<Rules, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.group.iter().flat_map(|group| &group.rules)
    }

    pub fn label(&self, rule: &Rule) -> Label {
        Label::new(self.rfc, &rule.label)
    }

    /// What is wrong with the list itself: a label twice, an exception without a reason, a label of RFC 9293 missing.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut labels: Vec<&str> = self.all().map(|rule| rule.label.as_str()).collect();
        labels.sort_unstable();
        for pair in labels.windows(2).filter(|pair| pair[0] == pair[1]) {
            problems.push(format!("RFC {} {} is listed twice", self.rfc, pair[0]));
        }
        for rule in self.all() {
            let is_reason = |text: &String| text.split(' ').count() >= 5;
            if rule.exception.as_ref().is_some_and(|text| !is_reason(text)) {
                problems.push(format!("RFC {} {}: the exception gives no reason", self.rfc, rule.label));
            }
        }
        if self.rfc == TCP {
            for (word, count) in [("MUST", 69), ("SHLD", 31), ("MAY", 18), ("REC", 1)] {
                let names = (1..=count).map(|number| format!("{word}-{number}"));
                let missing = names.filter(|name| labels.binary_search(&name.as_str()).is_err());
                problems.extend(missing.map(|name| format!("RFC 9293 {name} is not listed")));
            }
        }
        problems
    }
}

/// All lists of the tree, by the RFC's number.
///
/// # Panics
/// If one of them cannot be read.
pub fn all() -> Vec<Rules> {
    let parse = |(name, text): (String, String)| Rules::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut rules: Vec<Rules> = files("docs/rfc", ".toml").into_iter().map(parse).collect();
    rules.sort_by_key(|rules| if rules.rfc == TCP { 0 } else { rules.rfc });
    rules
}
