//! The lines between the levels of a drawing, so that none can be taken for another.
//!
//! All edges to one lower are one net: they leave their uppers at columns of their own, meet on one level line (the net's
//! track) and arrive at the lower in one column. Columns of departure are at least two apart, so an arriving line always finds
//! a column where no other net departs; upright lines of different nets therefore never share a column, and tracks can stand
//! in any order.

use super::canvas::Canvas;
use super::layout::{Item, Layout, Placed};

/// A net on its way through one channel: where its edges depart and where it arrives.
pub(super) struct Net {
    pub net: usize,
    pub departures: Vec<usize>,
    pub arrival: usize,
    /// The row of its level line, counted from the top of the channel; a straight line needs none.
    pub track: Option<usize>,
}

/// The lines of a drawing.
pub(super) struct Routes {
    /// By level and slot: where the lines from above arrive.
    arrivals: Vec<Vec<Option<usize>>>,
    /// By level and slot: column and lower slot of each line that departs.
    departures: Vec<Vec<Vec<(usize, usize)>>>,
    /// By level: the nets of the channel below it.
    channels: Vec<Vec<Net>>,
}

/// Routes all edges of a layout.
pub(super) fn routes(layout: &Layout) -> Routes {
    let mut routes = Routes {
        arrivals: layout.levels.iter().map(|items| vec![None; items.len()]).collect(),
        departures: Vec::new(),
        channels: Vec::new(),
    };
    for (level, items) in layout.levels.iter().enumerate() {
        let departures: Vec<Vec<(usize, usize)>> = items
            .iter()
            .enumerate()
            .map(|(slot, upper)| match (&upper.item, routes.arrivals[level][slot]) {
                // A wire goes straight through its level.
                (Item::Wire(_), Some(column)) => {
                    lowers(layout, level, slot).into_iter().map(|lower| (column, lower)).collect()
                }
                _ => depart(layout, level, slot),
            })
            .collect();
        let mut nets = Vec::new();
        for slot in 0..layout.levels.get(level + 1).map_or(0, Vec::len) {
            let lower = &layout.levels[level + 1][slot];
            let columns = |ours: bool| -> Vec<usize> {
                let all = departures.iter().flatten();
                all.filter(|(_, towards)| (*towards == slot) == ours).map(|(column, _)| *column).collect()
            };
            let (mut own, others) = (columns(true), columns(false));
            if own.is_empty() {
                continue;
            }
            own.sort_unstable();
            let arrival = arrive(lower, &own, &others);
            routes.arrivals[level + 1][slot] = Some(arrival);
            nets.push(Net { net: lower.net, departures: own, arrival, track: None });
        }
        assign_tracks(&mut nets);
        routes.departures.push(departures);
        routes.channels.push(nets);
    }
    routes
}

/// The slots below that an item's edges lead to, from left to right.
fn lowers(layout: &Layout, level: usize, slot: usize) -> Vec<usize> {
    let mut lowers: Vec<usize> =
        layout.segments[level].iter().filter(|edge| edge.0 == slot).map(|edge| edge.1).collect();
    lowers.sort_unstable();
    lowers
}

/// The columns inside a place where lines may arrive or depart, first and last.
fn inside(placed: &Placed) -> (usize, usize) {
    match placed.item {
        Item::Wire(_) => (placed.left, placed.left + placed.width - 1),
        Item::Node(_) | Item::Device(..) => (placed.left + 1, placed.left + placed.width - 2),
    }
}

/// Where the lines of a box depart: as straight above their lowers as they can, two columns apart.
fn depart(layout: &Layout, level: usize, slot: usize) -> Vec<(usize, usize)> {
    let upper = &layout.levels[level][slot];
    let (first, last) = inside(upper);
    let middle = upper.left + (upper.width - 1) / 2;
    let lowers = lowers(layout, level, slot);
    let count = lowers.len();
    let mut departures: Vec<(usize, usize)> = Vec::new();
    for (index, lower) in lowers.into_iter().enumerate() {
        let (below_first, below_last) = inside(&layout.levels[level + 1][lower]);
        // A single line leaves in the middle if that is straight; several spread towards their lowers.
        let wish = if count == 1 { middle.clamp(below_first, below_last) } else { below_first.midpoint(below_last) };
        // Room for those before and after it; the box was made wide enough for all.
        let least = departures.last().map_or(first, |(column, _)| column + 2);
        let most = last - 2 * (count - 1 - index);
        departures.push((wish.clamp(least, most.max(least)), lower));
    }
    departures
}

/// Where a net arrives: straight below one of its own departures if it can (the middle one first), else at the nearest column
/// where no other net departs.
fn arrive(lower: &Placed, own: &[usize], others: &[usize]) -> usize {
    let (first, last) = inside(lower);
    let middle = own.len() / 2;
    let mut straight: Vec<usize> = own.iter().copied().filter(|column| (first..=last).contains(column)).collect();
    straight.sort_by_key(|column| column.abs_diff(own[middle]));
    if let Some(&column) = straight.first() {
        return column;
    }
    let wish = own[middle];
    let centre = first.midpoint(last);
    let free = (first..=last).filter(|column| !others.contains(column));
    let found = free.min_by_key(|column| (column.abs_diff(centre) / 2, column.abs_diff(wish)));
    found.expect("departures are two columns apart and a lower is at least two wide inside, so one column is free")
}

/// Level lines that overlap, or nearly touch, get rows of their own; a straight line gets none.
fn assign_tracks(nets: &mut [Net]) {
    let span = |net: &Net| {
        let columns = || net.departures.iter().chain([&net.arrival]);
        // A net has an arrival, so there is always a least and a greatest column.
        (columns().min().copied().unwrap_or(0), columns().max().copied().unwrap_or(0))
    };
    let mut order: Vec<usize> = (0..nets.len()).filter(|&at| span(&nets[at]).0 < span(&nets[at]).1).collect();
    order.sort_by_key(|&at| span(&nets[at]));
    let mut ends: Vec<usize> = Vec::new();
    for at in order {
        let (from, to) = span(&nets[at]);
        let track = ends.iter().position(|&end| end + 1 < from).unwrap_or(ends.len());
        if track == ends.len() {
            ends.push(to);
        }
        ends[track] = to;
        nets[at].track = Some(track);
    }
}

impl Routes {
    /// The column where the lines from above arrive at an item, if any do.
    pub fn above(&self, level: usize, slot: usize) -> Option<usize> {
        self.arrivals[level][slot]
    }

    /// The columns where lines depart from an item, with the slots they lead to.
    pub fn below(&self, level: usize, slot: usize) -> &[(usize, usize)] {
        &self.departures[level][slot]
    }

    /// The nets of the channel below a level.
    pub fn nets(&self, level: usize) -> &[Net] {
        &self.channels[level]
    }

    /// Paints the lines between a level and the next, from a row on; says how many rows they take.
    pub fn paint(&self, level: usize, row: usize, canvas: &mut Canvas) -> usize {
        let nets = &self.channels[level];
        let Some(tracks) = nets.iter().map(|net| net.track.map_or(1, |track| track + 1)).max() else {
            return 0;
        };
        // Level lines first: an upright one then goes over them.
        for net in nets {
            if let Some(track) = net.track {
                let columns = || net.departures.iter().chain([&net.arrival]).copied();
                let (from, to) = (columns().min().unwrap_or(0), columns().max().unwrap_or(0));
                canvas.horizontal(row + track, from, to, net.net);
            }
        }
        for Net { net, departures, arrival, track } in nets {
            let Some(track) = *track else {
                canvas.vertical(*arrival, row, row + tracks, *net);
                continue;
            };
            for &column in departures {
                canvas.vertical(column, row, row + track, *net);
                canvas.arm_up(row + track, column, *net);
            }
            canvas.arm_down(row + track, *arrival, *net);
            canvas.vertical(*arrival, row + track + 1, row + tracks, *net);
        }
        tracks
    }
}
