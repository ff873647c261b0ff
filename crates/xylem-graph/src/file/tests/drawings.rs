//! Drawings: the usual graphs look as they should, and any drawing says exactly the edges of its graph.

use proptest::prelude::*;
use std::collections::BTreeSet;

use super::{files, strategies};
use crate::file::*;

/// The edges a drawing shows, read back from its characters alone by following the lines down from each box.
fn edges_of(drawing: &str) -> BTreeSet<(String, String)> {
    let grid: Vec<Vec<char>> = drawing.lines().map(|line| line.chars().collect()).collect();
    let at = |row: usize, column: usize| grid.get(row).and_then(|line| line.get(column)).copied().unwrap_or(' ');
    let title = |row: usize, column: usize| -> String {
        let edge = |c: char| c == '│' || c == '║';
        let left = (0..=column).rev().find(|&c| edge(at(row, c))).expect("a box has a left edge");
        let right = (column..).find(|&c| c > left && edge(at(row, c))).expect("a box has a right edge");
        let inner: String = (left + 1..right).map(|c| at(row, c)).collect();
        inner.split_whitespace().next().unwrap_or("").to_owned()
    };
    // The first row of text of the box whose bottom border has a place in it.
    let upper = |row: usize, column: usize| -> String {
        let top = (0..row).rev().find(|&r| "─┴".contains(at(r, column)) || "┌┐".contains(at(r, column)));
        title(top.expect("a box has a top") + 1, column)
    };
    let mut edges = BTreeSet::new();
    for row in 0..grid.len() {
        for column in 0..grid[row].len() {
            // Departures are the `┬` in bottom borders: nothing of a line is above them but the box.
            if at(row, column) != '┬' || !in_border(&grid, row, column) {
                continue;
            }
            let from = upper(row, column);
            for (lower_row, lower_column) in follow(&at, row, column) {
                edges.insert((from.clone(), title(lower_row + 1, lower_column)));
            }
        }
    }
    edges
}

/// True when the place is in the bottom border of a box: to the left a lower left corner whose upright edge goes up.
fn in_border(grid: &[Vec<char>], row: usize, column: usize) -> bool {
    let corner = (0..column).rev().find(|&c| !"─┬".contains(grid[row][c]));
    let closing = (column + 1..grid[row].len()).find(|&c| !"─┬".contains(grid[row][c]));
    let (Some(corner), Some(closing)) = (corner, closing) else { return false };
    let above = |c: usize| row.checked_sub(1).and_then(|r| grid[r].get(c)).copied().unwrap_or(' ');
    // A track can look like a border from the side (`└──┬──┘`), but then it has no text between its ends.
    grid[row][corner] == '└'
        && grid[row][closing] == '┘'
        && above(corner) == '│'
        && above(closing) == '│'
        && (corner + 1..closing).any(|c| above(c).is_ascii_alphanumeric())
}

/// The places in top borders that a line from a departure leads to.
fn follow(at: &dyn Fn(usize, usize) -> char, row: usize, column: usize) -> Vec<(usize, usize)> {
    let arms = |c: char| -> &str {
        match c {
            '│' => "ud",
            '─' => "lr",
            '└' => "ur",
            '┘' => "ul",
            '┌' => "dr",
            '┐' => "dl",
            '├' => "udr",
            '┤' => "udl",
            '┬' => "dlr",
            '┴' => "ulr",
            '┼' => "udlr",
            _ => "",
        }
    };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![(row + 1, column, 'd')];
    while let Some((row, column, way)) = waiting.pop() {
        if !seen.insert((row, column, way)) {
            continue;
        }
        let here = at(row, column);
        let step = |way: char| match way {
            'd' => (row + 1, column, 'd'),
            'u' => (row - 1, column, 'u'),
            'l' => (row, column - 1, 'l'),
            _ => (row, column + 1, 'r'),
        };
        match (here, way) {
            ('╧', 'd') => found.push((row, column)),
            ('┴', 'd') if top_border(at, row, column) => found.push((row, column)),
            // A line that passes behind an upright one goes on on its other side.
            ('│', 'l' | 'r') => waiting.push(step(way)),
            // Back at a departure of a sibling: that one is followed on its own.
            ('┬', 'u') => {}
            _ => {
                let back = match way {
                    'd' => 'u',
                    'u' => 'd',
                    'l' => 'r',
                    _ => 'l',
                };
                assert!(arms(here).contains(back), "a line ends at row {row}, column {column} in {here:?}");
                waiting.extend(arms(here).chars().filter(|&arm| arm != back).map(step));
            }
        }
    }
    found
}

/// True when the row is a box's top border around the column: corners at both ends with upright edges below.
fn top_border(at: &dyn Fn(usize, usize) -> char, row: usize, column: usize) -> bool {
    let corner = (0..column).rev().find(|&c| !"─┴".contains(at(row, c)));
    let closing = (column + 1..).find(|&c| !"─┴".contains(at(row, c)));
    let (Some(corner), Some(closing)) = (corner, closing) else { return false };
    at(row, corner) == '┌'
        && at(row, closing) == '┐'
        && at(row + 1, corner) == '│'
        && at(row + 1, closing) == '│'
        && (corner + 1..closing).any(|c| at(row + 1, c).is_ascii_alphanumeric())
}

fn edges(graph: &Graph) -> BTreeSet<(String, String)> {
    let all = graph.nodes.iter().flat_map(|node| node.lowers.iter().map(move |lower| (node, lower)));
    all.map(|(node, lower)| (node.name.value.to_string(), lower.word().to_owned())).collect()
}

/// True when a drawing is a list, because the graph is no drawing of boxes.
fn is_list(drawing: &str) -> bool {
    !drawing.contains('┘') && !drawing.contains('╝')
}

/// With a line end first, so that the drawing stands here as it is.
const HOST: &str = "
            ┌────────────────┐
            │ sock (sockets) │
            └┬──────────────┬┘
             │              │
             │     ┌────────┴─────────┐
┌──────┐  ┌──┴──┐  │       tcp        │
│ icmp │  │ udp │  │ congestion cubic │
└───┬──┘  └──┬──┘  └────┬─────────────┘
    └────────┼──────────┘
   ┌─────────┴───────────┐
   │      ip (ipv4)      │
   │ address 10.0.0.2/24 │
   │ gateway 10.0.0.1    │
   └──────┬──────┬───────┘
          │      │
       ┌──┴──┐   │
       │ arp │   │
       └──┬──┘   │
          └──────┤
    ┌────────────┴─────┐
    │ link0 (ethernet) │
    │ interface tap0   │
    │ mtu 1500         │
    └────────┬─────────┘
             │
          ╔══╧═══╗
          ║ auto ║
          ╚══════╝

demux = layered   data = layered   device = auto
";

#[test]
fn the_usual_host() {
    let graph = parse(files::ALL[0].1).expect("the host's graph is right");
    assert_eq!(format!("\n{}", draw(&graph)), HOST);
}

#[test]
fn every_graph_file_draws_its_edges() {
    for (_, text) in files::ALL {
        let graph = parse(text).expect("the file is right");
        let drawing = draw(&graph);
        assert!(!is_list(&drawing));
        assert_eq!(edges_of(&drawing), edges(&graph), "\n{drawing}");
    }
}

/// The reader above must see faults; otherwise the properties below prove nothing.
#[test]
fn a_fault_in_a_drawing_is_seen() {
    let graph = parse(files::ALL[0].1).expect("the host's graph is right");
    assert_eq!(edges_of(HOST), edges(&graph));
    for (fault, right, wrong) in [
        ("loses the end of a line", "└──────┤", "       │"),
        ("takes two lines for one", "└────────┼──────────┘", "└────────┤          │"),
        ("loses a departure", "└──────┬──────┬───────┘", "└──────┬──────────────┘"),
        ("ends at another box", "│ udp │", "│ tcp │"),
    ] {
        assert!(HOST.contains(right));
        let drawing = HOST.replace(right, wrong);
        let read = std::panic::catch_unwind(|| edges_of(&drawing));
        assert!(read.map_or(true, |read| read != edges(&graph)), "a drawing that {fault} reads the same");
    }
}

#[test]
fn places_and_devices_are_shown_where_they_differ() {
    let graph = parse("a over auto\nb over a { note = \"grüße\" }\nplace server : a\ndevice = tap").expect("a graph");
    assert_eq!(
        format!("\n{}", draw(&graph)),
        "
┌──────────────────────┐
│          b           │
│ note gr\\u{fc}\\u{df}e │
└──────────┬───────────┘
           │
     ┌─────┴─────┐
     │ a @server │
     └─────┬─────┘
           │
        ╔══╧══╗
        ║ tap ║
        ╚═════╝

demux = layered   data = layered   device = tap
"
    );
}

#[test]
fn what_is_no_drawing_is_listed() {
    let graph = parse("a over b, lost\nb = p over a, tap").expect("it parses");
    assert_eq!(
        draw(&graph),
        "b (p)\n├─ over a\n└─ over tap (device)\na\n├─ over b\n└─ over lost (unknown)\n\n\
         demux = layered   data = layered   device = auto\n"
    );
    let uppers: String = (0..30).map(|at| format!("upper{at} = p over l\n")).collect();
    let wide = draw(&parse(&format!("l over tap\n{uppers}")).expect("it parses"));
    assert!(is_list(&wide) && wide.starts_with("upper29 (p)\n└─ over l\n"), "{wide}");
    assert_eq!(draw(&Graph::default()), "\ndemux = layered   data = layered   device = auto\n");
}

/// Options are left out before boxes are given up.
#[test]
fn wide_options_give_way_to_boxes() {
    let uppers: String = (0..5).map(|at| format!("u{at} = p over l {{ note = \"{}\" }}\n", "x".repeat(30))).collect();
    let graph = parse(&format!("l over tap\n{uppers}")).expect("it parses");
    let drawing = draw(&graph);
    assert!(!is_list(&drawing) && !drawing.contains("note"), "{drawing}");
    assert_eq!(edges_of(&drawing), edges(&graph));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn small_graphs_are_drawn_with_their_edges(graph in strategies::descending(1..8)) {
        let drawing = draw(&graph);
        // Each device is ten columns with its gap, each of the seven nodes eight at most, and each wire five.
        let devices: usize = graph.nodes.iter().map(|node| node.devices().count()).sum();
        prop_assert!(devices > 4 || !is_list(&drawing));
        if !is_list(&drawing) {
            prop_assert_eq!(edges_of(&drawing), edges(&graph), "\n{}\n{}", graph, drawing);
        }
    }

    #[test]
    fn large_graphs_are_drawn_with_their_edges_or_listed(graph in strategies::descending(8..40)) {
        let drawing = draw(&graph);
        prop_assert!(drawing.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "too wide:\n{}", drawing);
        if !is_list(&drawing) {
            prop_assert_eq!(edges_of(&drawing), edges(&graph), "\n{}\n{}", graph, drawing);
        }
    }
}
