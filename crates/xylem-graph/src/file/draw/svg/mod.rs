//! A graph as a picture worth putting in a document: SVG, readable on light and on dark paper, the same bytes every time.
//!
//! The layout and the routes are those of the terminal's drawing, with a column of [`COLUMN`] pixels and text measured by a
//! table. Boxes carry what their nodes say beyond the defaults; placements are regions; the other choices are the caption.

mod region;
mod style;
mod text;

use std::fmt::Write as _;

use super::layout::{Item, Layout, Placed, Style};
use super::route::{self, Routes};
use super::{OPTIONS_SHOWN_MAX, option_lines};
use crate::file::graph::{Graph, Node, Setting};
use crate::file::{Descriptions, Placement, Presence, Role};
use region::{Band, HEAD, MARGIN, Region};
pub(in crate::file) use text::Face;
use text::escaped;

/// Pixels of a layout's column.
const COLUMN: usize = 8;
/// The widest picture, in columns: about two screens.
const COLUMNS_MAX: usize = 400;
/// Pixels around the picture.
const PAPER_MARGIN: usize = 24;
/// Pixels between a box's border and its text, left and right.
const PADDING: usize = 12;
/// Pixels above a box's first line and below its last.
const PADDING_HEIGHT: usize = 8;
/// Pixels from a level to the first level line below it, and from the last one to what follows.
const CHANNEL_PADDING: usize = 16;
/// Pixels between the level lines of a channel.
const TRACK: usize = 12;
/// The radius of a line's corners, at most.
const CORNER: usize = 6;
/// The narrowest box in pixels: a region's label fits above it.
const BOX_WIDTH_MIN: usize = 80;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rectangle {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Rectangle {
    fn right(&self) -> usize {
        self.left + self.width
    }
    fn bottom(&self) -> usize {
        self.top + self.height
    }
    fn touches(&self, other: &Rectangle) -> bool {
        self.left <= other.right()
            && other.left <= self.right()
            && self.top <= other.bottom()
            && other.top <= self.bottom()
    }
}

/// The picture of a graph, an SVG document. Options that say what goes without saying (by the protocol's description) are
/// left out, and `title` names the picture for those who cannot see it. A graph that is too wide or too tangled for boxes,
/// or that has circles, unknown lowers or two nodes of one name, is listed in the picture instead.
pub fn svg(graph: &Graph, descriptions: &dyn Descriptions, title: &str) -> String {
    let label = |node: &Node| label(node, descriptions).into_iter().map(|(_, text)| text).collect();
    let width = |lines: &[String]| {
        // The faces are not known here: the first line is a name, and no other line's face is wider than a device's.
        let wide = |(at, line): (usize, &String)| if at == 0 { Face::Name } else { Face::Device }.width(line);
        let text = lines.iter().enumerate().map(wide).max().unwrap_or(0);
        (text + 2 * PADDING).max(BOX_WIDTH_MIN).div_ceil(COLUMN) + 1
    };
    match Layout::of(graph, &Style { label: &label, width: &width, columns_max: COLUMNS_MAX }) {
        Some(layout) => Picture::of(graph, descriptions, &layout).document(title),
        None => list(graph, title),
    }
}

/// The lines of a node's box: its name, its protocol if that has another name, and what it says beyond the defaults.
fn label(node: &Node, descriptions: &dyn Descriptions) -> Vec<(Face, String)> {
    let mut lines = vec![(Face::Name, node.name.value.to_string())];
    if node.name != node.protocol {
        lines.push((Face::Protocol, node.protocol.value.to_string()));
    }
    let description = descriptions.description(&node.protocol.value);
    let differs = |setting: &&Setting| {
        let option = description.and_then(|description| description.option(&setting.name.value));
        !matches!(option.map(|it| it.presence), Some(Presence::Default(usual)) if usual.value() == setting.value.value)
    };
    let said: Vec<&Setting> = node.options.iter().filter(differs).collect();
    lines.extend(option_lines(&said, OPTIONS_SHOWN_MAX).into_iter().map(|line| (Face::Option, line)));
    lines
}

/// Where everything stands.
struct Picture<'a> {
    graph: &'a Graph,
    descriptions: &'a dyn Descriptions,
    layout: &'a Layout,
    routes: Routes,
    /// The column at the left border.
    first_column: usize,
    /// For each level its top and its bottom.
    levels: Vec<(usize, usize)>,
    regions: Vec<Region>,
    width: usize,
    height: usize,
}

impl<'a> Picture<'a> {
    fn of(graph: &'a Graph, descriptions: &'a dyn Descriptions, layout: &'a Layout) -> Picture<'a> {
        let placed = || layout.levels.iter().flatten();
        let first_column = placed().map(|placed| placed.left).min().unwrap_or(0);
        let columns = placed().map(|placed| placed.left + placed.width - first_column).max().unwrap_or(1);
        let mut picture = Picture {
            graph,
            descriptions,
            layout,
            routes: route::routes(layout),
            first_column,
            levels: Vec::new(),
            regions: Vec::new(),
            width: 2 * PAPER_MARGIN + (columns - 1) * COLUMN,
            height: 0,
        };
        picture.stack_levels();
        picture.find_regions();
        let caption = picture.caption().iter().map(|text| Face::Caption.width(text)).max().unwrap_or(0);
        picture.width = picture.width.max(caption + 2 * PAPER_MARGIN);
        picture
    }

    /// Whether placements are worth showing: the file says some, or not all are the same.
    fn shows_placements(&self) -> bool {
        !self.graph.places.is_empty() || self.one_placement().is_none()
    }

    /// The placement of all nodes, if it is one.
    fn one_placement(&self) -> Option<Placement> {
        let mut placements = self.graph.nodes.iter().map(|node| self.graph.placement(&node.name));
        let first = placements.next()?;
        placements.all(|other| other == first).then_some(first)
    }

    fn stack_levels(&mut self) {
        let head = if self.shows_placements() { HEAD } else { 0 };
        let mut top = PAPER_MARGIN + head;
        for (level, items) in self.layout.levels.iter().enumerate() {
            let height = items.iter().map(|placed| self.box_height(placed)).max().unwrap_or(0);
            self.levels.push((top, top + height));
            let tracks = self.routes.nets(level).iter().filter_map(|net| net.track).max().map_or(0, |track| track + 1);
            let lines = tracks.max(1) - 1;
            top += height + 2 * CHANNEL_PADDING + lines * TRACK + head;
        }
        let bottom = self.levels.last().map_or(PAPER_MARGIN, |(_, bottom)| *bottom);
        self.height = bottom + self.caption().len() * Face::Caption.line() + 2 * PAPER_MARGIN;
    }

    fn x(&self, column: usize) -> usize {
        PAPER_MARGIN + (column - self.first_column) * COLUMN
    }

    fn lines(&self, item: &Item) -> Vec<(Face, String)> {
        match *item {
            Item::Node(at) => label(&self.graph.nodes[at], self.descriptions),
            Item::Device(..) | Item::Wire(_) => Vec::new(),
        }
    }

    fn box_height(&self, placed: &Placed) -> usize {
        match placed.item {
            Item::Wire(_) => 0,
            Item::Device(..) => Face::Device.line() + 2 * PADDING_HEIGHT,
            Item::Node(_) => {
                self.lines(&placed.item).iter().map(|(face, _)| face.line()).sum::<usize>() + 2 * PADDING_HEIGHT
            }
        }
    }

    /// The box of an item, in the middle of its level's height; a wire's is as high as its level.
    fn area(&self, level: usize, placed: &Placed) -> Rectangle {
        let (top, bottom) = self.levels[level];
        let height = if matches!(placed.item, Item::Wire(_)) { bottom - top } else { self.box_height(placed) };
        let spare = bottom - top - height;
        Rectangle { left: self.x(placed.left), top: top + spare / 2, width: (placed.width - 1) * COLUMN, height }
    }

    fn find_regions(&mut self) {
        if !self.shows_placements() {
            return;
        }
        let placement = |item: &Item| match *item {
            Item::Node(at) => Some(self.graph.placement(&self.graph.nodes[at].name)),
            Item::Device(..) | Item::Wire(_) => None,
        };
        let mut bands: Vec<Band> = Vec::new();
        for (level, items) in self.layout.levels.iter().enumerate() {
            let (top, bottom) = self.levels[level];
            let mut goes_on = false;
            for placed in items.iter().filter(|placed| !matches!(placed.item, Item::Wire(_))) {
                let Some(own) = placement(&placed.item) else {
                    goes_on = false;
                    continue;
                };
                let area = self.area(level, placed);
                match bands.last_mut() {
                    Some(band) if goes_on && band.placement == own => band.area.width = area.right() - band.area.left,
                    _ => bands.push(Band {
                        placement: own,
                        level,
                        area: Rectangle { top, height: bottom - top, ..area },
                    }),
                }
                goes_on = true;
            }
        }
        let foreign = |area: &Rectangle, own: Placement| {
            self.layout.levels.iter().enumerate().any(|(level, items)| {
                let boxes = items.iter().filter(|placed| !matches!(placed.item, Item::Wire(_)));
                boxes.filter(|placed| placement(&placed.item) != Some(own)).any(|placed| {
                    let other = self.area(level, placed);
                    area.touches(&other)
                })
            })
        };
        // Half way between the bottom margin of the upper level and the head of the lower one.
        let middle = |level: usize| (self.levels[level].1 + MARGIN + self.levels[level + 1].0 - HEAD) / 2;
        self.regions = region::regions(&bands, &foreign, &middle);
    }

    /// The choices, in a line or two.
    fn caption(&self) -> Vec<String> {
        let graph = self.graph;
        let mut choices =
            format!("demux: {}  ·  data: {}  ·  device: {}", graph.demux.value, graph.data.value, graph.device.value);
        if let Some(placement) = self.one_placement() {
            choices = format!("placement: {placement}  ·  {choices}");
        }
        vec![choices]
    }

    fn document(&self, title: &str) -> String {
        let mut svg = begin(self.width, self.height, title);
        self.paint_regions(&mut svg);
        for level in 0..self.layout.levels.len() {
            self.paint_lines(level, &mut svg);
        }
        for (level, items) in self.layout.levels.iter().enumerate() {
            items.iter().for_each(|placed| self.paint_box(level, placed, &mut svg));
        }
        let below = self.levels.last().map_or(0, |(_, bottom)| *bottom) + PAPER_MARGIN;
        for (line, text) in self.caption().iter().enumerate() {
            let baseline = below + (line + 1) * Face::Caption.line();
            write_text(&mut svg, Face::Caption, (PAPER_MARGIN, baseline), "start", text);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// All borders first, then all fillings: together they are the outline of what the rectangles cover.
    fn paint_regions(&self, svg: &mut String) {
        for class in ["outline", "ground"] {
            for region in &self.regions {
                let radius = if region.areas.len() == 1 { 10 } else { 0 };
                for Rectangle { left, top, width, height } in &region.areas {
                    let placement = region.placement;
                    put(
                        svg,
                        format_args!(
                            "<rect class=\"{class} {placement}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>\n"
                        ),
                    );
                }
            }
        }
        for region in &self.regions {
            let (place, text) = self.region_label(region);
            write_text(svg, Face::Region, place, "start", text);
        }
    }

    /// A region's label stands at the left of its top, where no line comes down through it.
    fn region_label(&self, region: &Region) -> ((usize, usize), &'static str) {
        let (text, band, area) = (region.placement.word(), &region.bands[0], &region.areas[0]);
        let width = Face::Region.width(text);
        let lines: Vec<usize> = (0..self.layout.levels[band.level].len())
            .filter_map(|slot| self.routes.above(band.level, slot))
            .map(|column| self.x(column))
            .collect();
        let free = |left: &usize| lines.iter().all(|&x| x + 4 < *left || x > left + width + 4);
        // First with the boxes' own margin, then closer to the border.
        let first = area.left + MARGIN;
        let last = area.right().saturating_sub(width + MARGIN).max(first);
        let left = (first..=last).chain(area.left + 2..first).find(free).unwrap_or(first);
        ((left, band.area.top - 6), text)
    }

    /// The lines from a level to the next, and through the heights of both that their boxes leave free.
    fn paint_lines(&self, level: usize, svg: &mut String) {
        let (_, bottom) = self.levels[level];
        let end = |slot: usize, level: usize, top: bool| {
            let area = self.area(level, &self.layout.levels[level][slot]);
            if top { area.top } else { area.bottom() }
        };
        let Some(below) = self.layout.levels.get(level + 1) else { return };
        for net in self.routes.nets(level) {
            let Some(slot) = below.iter().position(|placed| placed.net == net.net) else { continue };
            // A wire is painted to the middle of nothing: its line goes on through its level.
            let arrives = match below[slot].item {
                Item::Wire(_) => self.levels[level + 1].1,
                Item::Node(_) | Item::Device(..) => end(slot, level + 1, true),
            };
            let track = bottom + CHANNEL_PADDING + net.track.unwrap_or(0) * TRACK;
            let mut path = String::new();
            for slot in 0..self.layout.levels[level].len() {
                let leaving = self.routes.below(level, slot).iter().filter(|(_, to)| below[*to].net == net.net);
                for &(column, _) in leaving {
                    line(&mut path, (self.x(column), end(slot, level, false)), track, (self.x(net.arrival), arrives));
                }
            }
            put(svg, format_args!("<path class=\"line\" d=\"{}\"/>\n", path.trim_end()));
        }
    }

    fn paint_box(&self, level: usize, placed: &Placed, svg: &mut String) {
        let Rectangle { left, top, width, height } = self.area(level, placed);
        let (class, name, radius, lines) = match placed.item {
            Item::Wire(_) => return,
            Item::Device(node, branch) => {
                let lines = vec![(Face::Device, placed.lines.join(" "))];
                ("box hardware", format!("{}.{branch}", self.graph.nodes[node].name.value), 2, lines)
            }
            Item::Node(at) => {
                let node = &self.graph.nodes[at];
                let (class, radius) = match self.descriptions.description(&node.protocol.value).map(|it| it.role) {
                    Some(Role::Virtual) => ("box virtual", 6),
                    Some(Role::Anchor) => ("box anchor", 8),
                    Some(Role::Carrier | Role::Endpoint) | None => ("box", 6),
                };
                (class, node.name.value.to_string(), radius, self.lines(&placed.item))
            }
        };
        put(svg, format_args!("<g class=\"item\" id=\"{name}\">\n"));
        put(
            svg,
            format_args!(
                "<rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\"/>\n"
            ),
        );
        let mut baseline = top + PADDING_HEIGHT;
        for (face, text) in &lines {
            baseline += face.line();
            // Letters stand on the baseline; a quarter of the line lies below it.
            write_text(svg, *face, (left + width / 2, baseline - face.line() / 4), "middle", text);
        }
        svg.push_str("</g>\n");
    }
}

/// Appends to a picture.
fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("writing to a string does not fail");
}

fn begin(width: usize, height: usize, title: &str) -> String {
    let title = escaped(title);
    let mut svg = String::new();
    put(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n{}</style>\n\
         <rect class=\"paper\" x=\"0\" y=\"0\" width=\"{width}\" height=\"{height}\"/>\n",
            style::sheet()
        ),
    );
    svg
}

fn write_text(svg: &mut String, face: Face, (x, y): (usize, usize), anchor: &str, text: &str) {
    let (class, text) = (face.class(), escaped(text));
    put(svg, format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>\n"));
}

/// A line from its departure down to a level line, along it, and down to its arrival, with round corners.
fn line(path: &mut String, (from, top): (usize, usize), track: usize, (to, bottom): (usize, usize)) {
    if from == to {
        put(path, format_args!("M{from} {top}V{bottom} "));
        return;
    }
    let radius = CORNER.min(from.abs_diff(to) / 2);
    let (leave, reach) = if from < to { (from + radius, to - radius) } else { (from - radius, to + radius) };
    let (above, below) = (track - radius, track + radius);
    put(
        path,
        format_args!(
            "M{from} {top}V{above}Q{from} {track} {leave} {track}H{reach}Q{to} {track} {to} {below}V{bottom} "
        ),
    );
}

/// The picture of a graph that is no drawing of boxes.
fn list(graph: &Graph, title: &str) -> String {
    let listing = super::listing::listing(graph);
    let lines: Vec<&str> = listing.lines().collect();
    let width = lines.iter().map(|line| Face::Caption.width(line)).max().unwrap_or(0) + 2 * PAPER_MARGIN;
    let mut svg = begin(width, lines.len() * Face::Caption.line() + 2 * PAPER_MARGIN, title);
    for (at, line) in lines.iter().enumerate() {
        write_text(
            &mut svg,
            Face::Caption,
            (PAPER_MARGIN, PAPER_MARGIN + (at + 1) * Face::Caption.line()),
            "start",
            line,
        );
    }
    svg.push_str("</svg>\n");
    svg
}
