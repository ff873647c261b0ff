//! A graph as a drawing for the terminal: uppers above lowers, boxes and lines in Unicode, at most [`COLUMNS_MAX`] columns;
//! and, from the same layout, as a picture for a document (`svg`).
//!
//! The drawing is laid out in levels (`layout`), its lines are routed so that no two can be taken for one another (`route`),
//! and what does not fit is listed instead (`listing`). Any graph can be drawn, checked or not.

mod canvas;
mod layout;
mod listing;
mod route;
mod svg;

#[cfg(test)]
pub(super) use svg::Face;
pub use svg::svg;

use super::graph::{Graph, Node, Setting};
use super::token::shortened;
use canvas::Canvas;
use layout::{Item, Layout, Style};

/// The widest drawing, in terminal columns.
pub const COLUMNS_MAX: usize = 100;

/// The most options shown in one box.
const OPTIONS_SHOWN_MAX: usize = 4;
/// The most characters of one option shown.
const OPTION_CHARACTERS_MAX: usize = 32;

/// The drawing, with the three choices below it. A graph that is too wide for boxes, or that has circles, unknown lowers or
/// two nodes of one name, is listed: each node with what it stands over.
///
/// A line that passes behind another one is interrupted (`─│─`); `┼`, `┬` and `┴` join.
pub fn draw(graph: &Graph) -> String {
    let with_options = |node: &Node| label(graph, node, OPTIONS_SHOWN_MAX);
    let without = |node: &Node| label(graph, node, 0);
    let width = |lines: &[String]| lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) + 4;
    let layout = |label| Layout::of(graph, &Style { label, width: &width, columns_max: COLUMNS_MAX });
    let layout = layout(&with_options).or_else(|| layout(&without));
    let mut drawing = match layout {
        Some(layout) => boxes(graph, &layout),
        None => listing::listing(graph),
    };
    drawing.push_str(&format!(
        "\ndemux = {}   data = {}   device = {}\n",
        graph.demux.value, graph.data.value, graph.device.value
    ));
    drawing
}

/// The lines inside a node's box.
fn label(graph: &Graph, node: &Node, options: usize) -> Vec<String> {
    let mut lines = vec![title(graph, node)];
    if options > 0 {
        lines.extend(option_lines(&node.options.iter().collect::<Vec<_>>(), options));
    }
    lines
}

/// At most `most` options, a line each, and how many more there are.
fn option_lines(options: &[&Setting], most: usize) -> Vec<String> {
    let line = |option: &&Setting| {
        let text = format!("{} {}", option.name.value, plain(&option.value.value));
        if text.chars().count() <= OPTION_CHARACTERS_MAX {
            return text;
        }
        let mut cut: String = text.chars().take(OPTION_CHARACTERS_MAX - 1).collect();
        cut.push('…');
        cut
    };
    let mut lines: Vec<String> = options.iter().take(most).map(line).collect();
    if options.len() > most {
        lines.push(format!("… {} more", options.len() - most));
    }
    lines
}

/// `name (protocol) @placement`, without what goes without saying.
fn title(graph: &Graph, node: &Node) -> String {
    let mut title = node.name.value.to_string();
    if node.name != node.protocol {
        title.push_str(&format!(" ({})", node.protocol.value));
    }
    if let Some(placement) = graph.placed(&node.name).filter(|_| !graph.places.is_empty()) {
        let everywhere = graph.nodes.iter().all(|other| graph.placement(&other.name) == placement);
        if !everywhere {
            title.push_str(&format!(" @{placement}"));
        }
    }
    title
}

/// A value in characters that are one column wide everywhere: a text without quotes, what is not ASCII escaped.
fn plain(value: &super::Value) -> String {
    match value.text() {
        Some(text) => shortened(text)
            .chars()
            .flat_map(|c| if c == '…' { vec![c] } else { c.escape_default().collect() })
            .collect(),
        None => value.to_string(),
    }
}

/// Paints a layout: boxes at the bottom of their level, lines between the levels.
fn boxes(graph: &Graph, layout: &Layout) -> String {
    let routes = route::routes(layout);
    let mut canvas = Canvas::default();
    let mut row = 0;
    for (level, items) in layout.levels.iter().enumerate() {
        let height = items.iter().map(|placed| placed.height()).max().unwrap_or(0);
        let bottom = row + height;
        for (slot, placed) in items.iter().enumerate() {
            let pin = routes.above(level, slot);
            match &placed.item {
                Item::Wire(_) => canvas.vertical(pin.unwrap_or(placed.left), row, bottom, placed.net),
                Item::Node(_) | Item::Device(..) => {
                    let top = bottom - placed.height();
                    if let Some(column) = pin {
                        canvas.vertical(column, row, top, placed.net);
                    }
                    let double = matches!(placed.item, Item::Device(..));
                    canvas.boxed(placed.left, top, placed.width, &placed.lines, double);
                    if let Some(column) = pin {
                        canvas.text(column, top, if double { "╧" } else { "┴" });
                    }
                    for &(column, _) in routes.below(level, slot) {
                        canvas.text(column, bottom - 1, "┬");
                    }
                }
            }
        }
        row = bottom;
        row += routes.paint(level, row, &mut canvas);
    }
    debug_assert!(!graph.nodes.is_empty() || row == 0);
    canvas.to_string()
}
