//! A grid of characters that lines and boxes are painted on.
//!
//! Lines know which net they belong to: parts of one net join where they meet, and where two nets cross, the upright one is
//! drawn whole and the level one passes behind it.

use std::collections::BTreeMap;
use std::fmt;

const UP: u8 = 1;
const DOWN: u8 = 2;
const LEFT: u8 = 4;
const RIGHT: u8 = 8;

/// The characters by their arms, the sum of the constants above.
const LINES: [char; 16] = [' ', '│', '│', '│', '─', '┘', '┐', '┤', '─', '└', '┌', '├', '─', '┴', '┬', '┼'];

#[derive(Clone, Copy, Debug)]
enum Cell {
    Text(char),
    Line { arms: u8, net: usize },
}

/// The grid; it grows as needed.
#[derive(Default)]
pub(super) struct Canvas {
    /// By row, then column, so that iteration is in reading order.
    cells: BTreeMap<(usize, usize), Cell>,
}

impl Canvas {
    /// A level line from one column to another, both included.
    pub fn horizontal(&mut self, row: usize, from: usize, to: usize, net: usize) {
        for column in from..=to {
            let left = if column > from { LEFT } else { 0 };
            let right = if column < to { RIGHT } else { 0 };
            self.line(row, column, left | right, net);
        }
    }

    /// An upright line over the rows from `from` up to, not including, `to`.
    pub fn vertical(&mut self, column: usize, from: usize, to: usize, net: usize) {
        for row in from..to {
            self.line(row, column, UP | DOWN, net);
        }
    }

    /// An arm up from a place on a net's level line.
    pub fn arm_up(&mut self, row: usize, column: usize, net: usize) {
        self.line(row, column, UP, net);
    }

    /// An arm down from a place on a net's level line.
    pub fn arm_down(&mut self, row: usize, column: usize, net: usize) {
        self.line(row, column, DOWN, net);
    }

    fn line(&mut self, row: usize, column: usize, new: u8, new_net: usize) {
        let cell = self.cells.entry((row, column)).or_insert(Cell::Line { arms: 0, net: new_net });
        let Cell::Line { arms, net } = cell else {
            panic!("a line runs through a box at row {row}, column {column}");
        };
        if *net == new_net {
            *arms |= new;
        } else if new & (UP | DOWN) != 0 {
            assert!(*arms & (UP | DOWN) == 0, "two upright lines share row {row}, column {column}");
            *cell = Cell::Line { arms: new, net: new_net };
        } else {
            assert!(*arms & (LEFT | RIGHT) == 0, "two level lines share row {row}, column {column}");
        }
    }

    /// Text over whatever is there.
    pub fn text(&mut self, column: usize, row: usize, text: &str) {
        for (offset, character) in text.chars().enumerate() {
            self.cells.insert((row, column + offset), Cell::Text(character));
        }
    }

    /// A box with lines of text in it, the first centred.
    pub fn boxed(&mut self, left: usize, top: usize, width: usize, lines: &[String], double: bool) {
        let [corners, edges] = if double { ["╔╗╚╝", "═║"] } else { ["┌┐└┘", "─│"] };
        let corner = |index: usize| corners.chars().nth(index).unwrap_or(' ').to_string();
        let (level, upright) = (&edges[..edges.len() / 2], &edges[edges.len() / 2..]);
        let inner = width - 2;
        self.text(left, top, &format!("{}{}{}", corner(0), level.repeat(inner), corner(1)));
        for (index, line) in lines.iter().enumerate() {
            let padded = if index == 0 { format!("{line:^inner$}") } else { format!(" {line:<0$}", inner - 1) };
            self.text(left, top + 1 + index, &format!("{upright}{padded}{upright}"));
        }
        let bottom = top + 1 + lines.len();
        self.text(left, bottom, &format!("{}{}{}", corner(2), level.repeat(inner), corner(3)));
    }
}

/// The rows without trailing spaces and without the columns that are empty in all of them.
impl fmt::Display for Canvas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.cells.keys().map(|(_, column)| *column).min().unwrap_or(0);
        let rows = self.cells.keys().map(|(row, _)| row + 1).max().unwrap_or(0);
        for row in 0..rows {
            let mut line = String::new();
            let mut width = 0;
            for (&(_, column), cell) in self.cells.range((row, 0)..(row + 1, 0)) {
                line.extend(std::iter::repeat_n(' ', column - left - width));
                line.push(match *cell {
                    Cell::Text(character) => character,
                    Cell::Line { arms, .. } => LINES[usize::from(arms)],
                });
                width = column - left + 1;
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}
