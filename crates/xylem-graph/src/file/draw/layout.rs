//! Where the boxes of a drawing stand: levels, the order within a level, and columns.
//!
//! A node's level is one above its highest lower. An edge that passes a level gets a place of its own there (a wire), shared by
//! all edges to the same lower. The order lowers the number of crossings by moving each item to the middle of its neighbours;
//! columns then follow the same wish, kept apart by pooling neighbours that would overlap.

use std::collections::{BTreeMap, HashMap};

use crate::file::graph::{Graph, Lower, Node};

/// More edges than this between neighbouring levels make no readable drawing.
const SEGMENTS_MAX: usize = 400;
/// Columns between two neighbours of one level; at least 1, which the routing relies on.
const GAP: usize = 2;
/// The columns a wire takes, so that its line has somewhere to evade to; at least 2, which the routing relies on.
const WIRE_WIDTH: usize = 3;
/// How often the order is swept; a few rounds settle graphs of this size.
const ORDER_SWEEPS: usize = 12;
const COLUMN_SWEEPS: usize = 8;

/// What stands at a place of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A node by its index.
    Node(usize),
    /// The device at a branch of a node.
    Device(usize, usize),
    /// An edge on its way down to the item of that net.
    Wire(usize),
}

/// An item with its place.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub item: Item,
    /// The net of the lines that arrive at this item from above: one net for each lower.
    pub net: usize,
    pub left: usize,
    pub width: usize,
    /// The lines of text in its box.
    pub lines: Vec<String>,
}

impl Placed {
    /// Rows: two borders and the text; a wire takes what the others of its level take.
    pub fn height(&self) -> usize {
        match self.item {
            Item::Wire(_) => 0,
            Item::Node(_) | Item::Device(..) => self.lines.len() + 2,
        }
    }

    fn centre_doubled(&self) -> usize {
        2 * self.left + self.width - 1
    }
}

/// What a kind of drawing says of its boxes. A column is a character in the terminal and a few pixels in a picture.
pub(super) struct Style<'a> {
    /// The lines inside a node's box.
    pub label: &'a dyn Fn(&Node) -> Vec<String>,
    /// The columns of a box with these lines, borders included; at least 4.
    pub width: &'a dyn Fn(&[String]) -> usize,
    /// The widest drawing, in columns.
    pub columns_max: usize,
}

/// All items, the top level first.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub levels: Vec<Vec<Placed>>,
    /// For each level the edges to the next level below, as slots of both, without repetition.
    pub segments: Vec<Vec<(usize, usize)>>,
}

impl Layout {
    /// The layout, or `None` when the graph is too wide, too tangled, or no graph at all (circles, unknown lowers, names twice).
    pub fn of(graph: &Graph, style: &Style<'_>) -> Option<Layout> {
        let mut layout = Layout::levels(graph, style)?;
        layout.order();
        layout.columns(style.columns_max)?;
        Some(layout)
    }

    fn levels(graph: &Graph, style: &Style<'_>) -> Option<Layout> {
        let index: HashMap<&str, usize> =
            graph.nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
        let mut height: HashMap<usize, usize> = HashMap::new();
        for node in graph.bottom_up()? {
            let below = node.lowers.iter().map(|lower| match &lower.value {
                Lower::Node(name) => height[&index[name.as_str()]] + 1,
                Lower::Device(_) => 1,
            });
            height.insert(index[node.name.as_str()], below.max().unwrap_or(0));
        }
        let top = height.values().copied().max().unwrap_or(0);
        let mut build = Build {
            width: style.width,
            levels: vec![Vec::new(); top + 1],
            segments: vec![Vec::new(); top + 1],
            slots: BTreeMap::new(),
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            build.add(top - height[&at], Item::Node(at), at, (style.label)(node));
        }
        // Nets: a node's is its index, and devices are numbered after the nodes.
        let mut net = graph.nodes.len();
        for (at, node) in graph.nodes.iter().enumerate() {
            let from = top - height[&at];
            for (branch, lower) in node.lowers.iter().enumerate() {
                match &lower.value {
                    Lower::Device(name) => {
                        let line = graph.device_on_edge(*name).word().to_owned();
                        build.add(from + 1, Item::Device(at, branch), net, vec![line]);
                        build.edge((from, at), (from + 1, net))?;
                        net += 1;
                    }
                    Lower::Node(name) => {
                        let below = index[name.as_str()];
                        build.edge((from, at), (top - height[&below], below))?;
                    }
                }
            }
        }
        Some(Layout { levels: build.levels, segments: build.segments })
    }

    /// Moves items to the middle of their neighbours above and below in turn, and keeps the order with the fewest crossings.
    fn order(&mut self) {
        let mut best = (self.crossings(), self.clone());
        for sweep in 0..ORDER_SWEEPS {
            let levels = self.levels.len();
            for step in 0..levels {
                let (level, down) = if sweep % 2 == 0 { (step, true) } else { (levels - 1 - step, false) };
                self.sort_level(level, down);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.clone());
            }
        }
        *self = best.1;
    }

    /// Sorts a level by the mean slot of its neighbours in the level above (`down`) or below. No neighbours: it stays.
    fn sort_level(&mut self, level: usize, down: bool) {
        let neighbours = |slot: usize| -> Vec<usize> {
            if down {
                let above = level.checked_sub(1).map(|above| &self.segments[above]);
                above.into_iter().flatten().filter(|edge| edge.1 == slot).map(|edge| edge.0).collect()
            } else {
                self.segments[level].iter().filter(|edge| edge.0 == slot).map(|edge| edge.1).collect()
            }
        };
        // Means are compared as fractions over a common factor, so that no rounding decides.
        const FACTOR: usize = 720_720;
        let wish = |slot: usize| {
            let found = neighbours(slot);
            if found.is_empty() { slot * FACTOR } else { found.iter().sum::<usize>() * FACTOR / found.len() }
        };
        let mut order: Vec<usize> = (0..self.levels[level].len()).collect();
        order.sort_by_key(|&slot| wish(slot));
        let mut new_slot = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_slot[old] = new;
        }
        let old = std::mem::take(&mut self.levels[level]);
        self.levels[level] = order.iter().map(|&slot| old[slot].clone()).collect();
        for edge in &mut self.segments[level] {
            edge.0 = new_slot[edge.0];
        }
        if let Some(above) = level.checked_sub(1) {
            for edge in &mut self.segments[above] {
                edge.1 = new_slot[edge.1];
            }
        }
    }

    fn crossings(&self) -> usize {
        let crossed = |edges: &Vec<(usize, usize)>| -> usize {
            let pairs =
                edges.iter().enumerate().flat_map(|(at, left)| edges[at + 1..].iter().map(move |right| (left, right)));
            pairs.filter(|(l, r)| (l.0 < r.0 && l.1 > r.1) || (l.0 > r.0 && l.1 < r.1)).count()
        };
        self.segments.iter().map(crossed).sum()
    }

    /// Gives every item its column, or says that a level is too wide.
    fn columns(&mut self, columns_max: usize) -> Option<()> {
        for items in &mut self.levels {
            let mut column = 0;
            for placed in &mut *items {
                placed.left = column;
                column += placed.width + GAP;
            }
            if column > columns_max + GAP {
                return None;
            }
        }
        let levels = self.levels.len();
        for sweep in 0..COLUMN_SWEEPS {
            for step in 0..levels {
                let level = if sweep % 2 == 0 { levels - 1 - step } else { step };
                self.centre_level(level, sweep, columns_max);
            }
        }
        Some(())
    }

    /// Moves the items of a level towards their neighbours: below in even sweeps, above in odd ones, both in the last two.
    fn centre_level(&mut self, level: usize, sweep: usize, columns_max: usize) {
        let both = sweep + 2 >= COLUMN_SWEEPS;
        let mut wishes: Vec<Vec<usize>> = vec![Vec::new(); self.levels[level].len()];
        if both || sweep.is_multiple_of(2) {
            for &(upper, lower) in &self.segments[level] {
                wishes[upper].push(self.levels[level + 1][lower].centre_doubled());
            }
        }
        if let Some(above) = level.checked_sub(1).filter(|_| both || sweep % 2 == 1) {
            for &(upper, lower) in &self.segments[above] {
                wishes[lower].push(self.levels[above][upper].centre_doubled());
            }
        }
        let items = &mut self.levels[level];
        let packed: usize = items.iter().map(|placed| placed.width + GAP).sum::<usize>().saturating_sub(GAP);
        // Each item's wish is measured from where it would stand if all were packed to the left; then any non-decreasing
        // wishes can be fulfilled, and `pooled` makes them so.
        let mut start = 0;
        let mut offsets = Vec::new();
        for (placed, wishes) in items.iter().zip(&wishes) {
            let centre = match wishes.len() {
                0 => placed.centre_doubled(),
                count => wishes.iter().sum::<usize>() / count,
            };
            // A centre is at most twice the columns, so these fit i64 many times over.
            let left = (centre as i64 - (placed.width as i64 - 1)) / 2;
            offsets.push(left - start as i64);
            start += placed.width + GAP;
        }
        let most = (columns_max - packed) as i64;
        let mut start = 0;
        for (placed, offset) in items.iter_mut().zip(pooled(&offsets)) {
            placed.left = start + offset.clamp(0, most) as usize;
            start += placed.width + GAP;
        }
    }
}

/// The non-decreasing sequence nearest to the given one (least squares, pool adjacent violators).
fn pooled(wishes: &[i64]) -> Vec<i64> {
    let mut pools: Vec<(i64, i64)> = Vec::new();
    for &wish in wishes {
        pools.push((wish, 1));
        while let [.., (sum, count), (next_sum, next_count)] = pools[..]
            && sum.div_euclid(count) > next_sum.div_euclid(next_count)
        {
            pools.pop();
            pools.pop();
            pools.push((sum + next_sum, count + next_count));
        }
    }
    pools.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum.div_euclid(count), count as usize)).collect()
}

/// A layout while its items are collected.
struct Build<'a> {
    width: &'a dyn Fn(&[String]) -> usize,
    levels: Vec<Vec<Placed>>,
    segments: Vec<Vec<(usize, usize)>>,
    /// Where a net passes or ends: (level, net) to slot.
    slots: BTreeMap<(usize, usize), usize>,
}

impl Build<'_> {
    fn add(&mut self, level: usize, item: Item, net: usize, lines: Vec<String>) -> usize {
        let width = if matches!(item, Item::Wire(_)) { WIRE_WIDTH } else { (self.width)(&lines) };
        let slot = self.levels[level].len();
        self.levels[level].push(Placed { item, net, left: 0, width, lines });
        self.slots.insert((level, net), slot);
        slot
    }

    /// An edge between (level, net) of the upper and of the lower, over wires where it passes levels.
    fn edge(&mut self, upper: (usize, usize), lower: (usize, usize)) -> Option<()> {
        let (mut level, net) = (upper.0, lower.1);
        let mut from = self.slots[&upper];
        while level < lower.0 {
            let to = match self.slots.get(&(level + 1, net)) {
                Some(&slot) => slot,
                None => self.add(level + 1, Item::Wire(net), net, Vec::new()),
            };
            if !self.segments[level].contains(&(from, to)) {
                self.segments[level].push((from, to));
            }
            let segments: usize = self.segments.iter().map(Vec::len).sum();
            if segments > SEGMENTS_MAX {
                return None;
            }
            from = to;
            level += 1;
        }
        // Every line leaves a box at a column of its own, two apart, and not at a corner.
        let placed = &mut self.levels[upper.0][self.slots[&upper]];
        let leaving = self.segments[upper.0].iter().filter(|edge| edge.0 == self.slots[&upper]).count();
        placed.width = placed.width.max(2 * leaving + 1);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::pooled;

    #[test]
    fn neighbours_that_would_overlap_share_their_wish() {
        assert_eq!(pooled(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(pooled(&[5, 1, 9]), [3, 3, 9]);
        assert_eq!(pooled(&[9, 6, 3]), [6, 6, 6]);
        assert_eq!(pooled(&[]), [0; 0]);
    }
}
