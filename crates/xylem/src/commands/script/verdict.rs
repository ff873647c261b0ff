//! What came of a script: what happened held against what the script claims about the stack.

use serde_json::json;
use xylem_sim::script::{Arm, Claim, Failure};

/// See the module's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The stack does what the script says.
    Passed,
    /// It does not.
    Failed(Failure),
    /// It was not tried, for this reason.
    Skipped(String),
    /// It does otherwise, as the script says it does.
    Differs(String),
    /// It does what the script says it does otherwise.
    DiffersNoMore(String),
    /// It could not be tried.
    Unable(String),
}

/// What a script claims, and where it went wrong if it did.
pub fn judge(claim: &Claim, failure: Option<Failure>) -> Verdict {
    match (claim, failure) {
        (Claim::Skip(reason), _) => Verdict::Skipped(reason.clone()),
        (Claim::Same, None) => Verdict::Passed,
        (Claim::Same, Some(failure)) => Verdict::Failed(failure),
        (Claim::Differs(reason), Some(_)) => Verdict::Differs(reason.clone()),
        (Claim::Differs(reason), None) => Verdict::DiffersNoMore(reason.clone()),
    }
}

/// A stack's name.
pub fn name(arm: Arm) -> &'static str {
    match arm {
        Arm::Xylem => "xylem",
        Arm::Linux => "linux",
    }
}

impl Verdict {
    /// Whether something is wrong.
    pub fn is_failure(&self) -> bool {
        match self {
            Verdict::Failed(_) | Verdict::DiffersNoMore(_) | Verdict::Unable(_) => true,
            Verdict::Passed | Verdict::Skipped(_) | Verdict::Differs(_) => false,
        }
    }

    /// It in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::Skipped(_) => "skipped",
            Verdict::Differs(_) => "differs",
            Verdict::DiffersNoMore(_) => "differs no more",
            Verdict::Unable(_) => "unable",
        }
    }

    /// A line that says it, beginning with the file's name and the place.
    pub fn in_file(&self, file: &str) -> String {
        match self {
            Verdict::Passed => format!("{file}: passed\n"),
            Verdict::Failed(Failure { position, expected, got }) => {
                let (line, column) = (position.line, position.column);
                format!("{file}:{line}:{column}: expected `{expected}`; got {got}\n")
            }
            Verdict::Skipped(reason) => format!("{file}: skipped because {reason}\n"),
            Verdict::Differs(reason) => format!("{file}: differs because {reason}\n"),
            Verdict::DiffersNoMore(reason) => {
                format!("{file}: expected to differ because {reason}; got no difference; mend: take the claim out\n")
            }
            Verdict::Unable(reason) => format!("{file}: could not be tried: {reason}\n"),
        }
    }

    /// As JSON: the word, and what else there is to say.
    pub fn as_json(&self) -> serde_json::Value {
        match self {
            Verdict::Passed => json!({ "is": self.word() }),
            Verdict::Failed(Failure { position, expected, got }) => json!({
                "is": self.word(),
                "line": position.line,
                "column": position.column,
                "expected": expected,
                "got": got,
            }),
            Verdict::Skipped(reason)
            | Verdict::Differs(reason)
            | Verdict::DiffersNoMore(reason)
            | Verdict::Unable(reason) => json!({ "is": self.word(), "because": reason }),
        }
    }
}
