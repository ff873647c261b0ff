//! The name that was probably meant, for the mend of a message.
//!
//! Distance counts letters inserted, removed, replaced or swapped with their neighbour (optimal string alignment). A third
//! of the letters may differ; beyond that a guess would mislead, and the message lists what exists instead.

/// The candidate closest to `word`, if any is close; of equals the first.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = word.chars().count().div_ceil(3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(word, candidate);
        if distance <= close && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The names in backquotes, `a`, `b` or `c`; of a long list the first ones and a count.
pub(super) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN_MAX: usize = 16;
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.len() > SHOWN_MAX {
        return format!("{} or one of {} more", quoted[..SHOWN_MAX].join(", "), quoted.len() - SHOWN_MAX);
    }
    match quoted.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
    }
}

/// Words longer than this are far from every name; it bounds the table below.
const LETTERS_MAX: usize = 64;

fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().take(LETTERS_MAX + 1).collect();
    let right: Vec<char> = right.chars().take(LETTERS_MAX + 1).collect();
    if left.len() > LETTERS_MAX || right.len() > LETTERS_MAX {
        return usize::MAX;
    }
    // rows[i][j] is the distance of the first i letters of `left` from the first j of `right`.
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
                    let least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
                    if swapped { least.min(rows[i - 2][j - 2] + 1) } else { least }
                }
            };
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_recognised() {
        let names = ["arp", "ethernet", "icmp", "ipv4", "udp"];
        for (slip, meant) in [("upd", "udp"), ("ethrenet", "ethernet"), ("ipv6", "ipv4"), ("icmpp", "icmp")] {
            assert_eq!(nearest(slip, names), Some(meant), "{slip}");
        }
        assert_eq!(nearest("quic", names), None);
        assert_eq!(nearest(&"x".repeat(1000), names), None);
    }

    #[test]
    fn lists_are_read_as_sentences() {
        assert_eq!(one_of([]), "nothing");
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert!(one_of(["x"; 20]).ends_with("or one of 4 more"));
    }
}
