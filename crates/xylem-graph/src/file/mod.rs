//! Graph files: reading, checking, printing and drawing them, before anything runs.
//!
//! [`parse`] turns a text into a [`Graph`], [`check`](check()) judges it by the [`Descriptions`] of a program's protocols, `Display`
//! prints it back and [`draw`](draw()) shows it. All of it is pure: text and data in, values out; the instance is built elsewhere
//! from a graph that passed.
//!
//! A line is one of these; `#` starts a comment, options may go on over several lines, and `auto` or a device's name stands
//! for a device:
//!
//! ```text
//! name = protocol over lower, lower { option = value, option = value }
//! protocol over lower
//! place app : name name
//! demux = layered
//! data = layered
//! device = auto
//! ```

mod check;
mod choice;
mod combination;
mod description;
mod draw;
mod graph;
mod name;
mod nearest;
mod option;
mod parse;
mod print;
mod problem;
mod settings;
mod token;
mod value;

#[cfg(test)]
mod tests;

pub use check::check;
pub use choice::{Data, Demux, Device, DeviceName, Placement, is_reserved};
pub use combination::{Combination, Combinations, Status, combination, combinations};
pub use description::{Description, Descriptions, Kind, Number, Numbered, On, Provides, Role, Slot, Space, Uppers};
pub use draw::{COLUMNS_MAX, draw, svg};
pub use graph::{Graph, LOWERS_MAX, Located, Lower, NODES_MAX, Node, OPTIONS_MAX, Place, SetError, Setting};
pub use name::{NAME_BYTES_MAX, Name, NameError};
pub use option::{DefaultValue, Misfit, OptionDescription, OptionKind, Presence};
pub use parse::{TEXT_BYTES_MAX, parse};
pub use problem::{PROBLEMS_MAX, Position, Problem, report};
pub use settings::Settings;
pub use value::{VALUE_BYTES_MAX, Value};

/// Reads a graph file and checks it: what a program does before it builds an instance.
///
/// # Errors
///
/// All problems, of the text and of the graph that it says; where a line could not be read, those that hold whatever it may
/// have meant.
pub fn load(text: &str, descriptions: &dyn Descriptions) -> Result<Graph, Vec<Problem>> {
    let mut reading = parse::read(text);
    if !reading.problems.is_empty() {
        let more = check::check_partly(&reading, descriptions);
        reading.problems.extend(more);
        return Err(problem::in_order(reading.problems));
    }
    let problems = check(&reading.graph, descriptions);
    if problems.is_empty() { Ok(reading.graph) } else { Err(problems) }
}
