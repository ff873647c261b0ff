//! Bytes that are no graph: never a panic, always a reason, and every reason points into the text.

use proptest::prelude::*;

use super::{descriptions, files};
use crate::file::*;

/// Reads, checks, prints and draws whatever comes; asserts what must hold for any text.
fn survives(text: &str) {
    let lines = text.split('\n').count();
    let pointed = |problem: &Problem| {
        let Position { line, column } = problem.position;
        let inside = (1..=lines).contains(&(line as usize));
        let width = text.split('\n').nth(line as usize - 1).map_or(0, |line| line.chars().count());
        assert!(inside && (1..=width + 1).contains(&(column as usize)), "{problem} points out of\n{text:?}");
    };
    match parse(text) {
        Err(problems) => {
            assert!(!problems.is_empty() && problems.len() <= PROBLEMS_MAX);
            problems.iter().for_each(pointed);
        }
        Ok(graph) => {
            assert_eq!(parse(&graph.to_string()).as_ref(), Ok(&graph));
            let problems = check(&graph, &descriptions::catalogue());
            // What a file leaves out (a device line) is nowhere; all else has a place.
            problems.iter().filter(|problem| problem.position != Position::NOWHERE).for_each(pointed);
            let drawn = draw(&graph);
            assert!(drawn.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{drawn}");
        }
    }
}

/// Pieces that make up graph files, so that random texts get past the first token.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "ip", "ipv4", "tcp", "udp", "over", "place", "app", "demux", "device", "tap", "auto", "=", ",", ":", "{",
            "}", "\n", "\r\n", " ", "\u{a0}", "#", "\"", "\"x\"", "\\", "\\u{", "30s", "0x", "1KB", "-", "ü",
            "\u{feff}", "layered",
        ])
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_pieces(pieces in proptest::collection::vec(piece(), 0..60), spaced in any::<bool>()) {
        survives(&pieces.join(if spaced { " " } else { "" }));
    }

    #[test]
    fn mutated_files(
        file in 0..files::ALL.len(),
        mutations in proptest::collection::vec((any::<prop::sample::Index>(), piece(), 0..3usize), 1..6),
    ) {
        let mut characters: Vec<char> = files::ALL[file].1.chars().collect();
        for (at, piece, remove) in mutations {
            let at = at.index(characters.len().max(1));
            let end = (at + remove).min(characters.len());
            characters.splice(at.min(end)..end, piece.chars());
        }
        survives(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn lines_left_out(file in 0..files::ALL.len(), kept in any::<u64>()) {
        let lines = files::ALL[file].1.lines().enumerate().filter(|(line, _)| kept >> (line % 64) & 1 == 1);
        survives(&lines.map(|(_, line)| format!("{line}\n")).collect::<String>());
    }
}

#[test]
fn long_and_deep_texts_end_in_time() {
    survives(&"{".repeat(100_000));
    survives(&"x over {\n".repeat(20_000));
    survives(&"x = 1, ".repeat(20_000));
    survives(&format!("x over y {{ {} }}", "a = 1, ".repeat(20_000)));
    survives(&"\"".repeat(99_999));
    survives(&format!("x over {}", "y, ".repeat(10_000)));
    survives(&"é".repeat(50_000));
    survives(&format!("place app : {}", "n ".repeat(50_000)));
}
