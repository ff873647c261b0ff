//! The regions of a picture: where the nodes of one placement stand. Neighbours of one placement in a level are a band,
//! bands that lie above one another are a region; a region is one rectangle if nothing foreign stands in it, and follows its
//! bands otherwise.

use super::Rectangle;
use crate::file::Placement;

/// Pixels between a region's border and its boxes, at the sides and below.
pub(super) const MARGIN: usize = 8;
/// Pixels above a region's boxes, for its label.
pub(super) const HEAD: usize = 20;

/// Neighbours of one placement in a level: their common rectangle, and the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Band {
    pub placement: Placement,
    pub level: usize,
    pub area: Rectangle,
}

/// A region: its bands, the top ones first, and the rectangles that cover it.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub placement: Placement,
    pub bands: Vec<Band>,
    pub areas: Vec<Rectangle>,
}

/// The regions of all bands, which come level by level. `foreign` says whether a rectangle touches a box that is not of this
/// placement; `middle` is the height between a level and the next.
pub(super) fn regions(
    bands: &[Band],
    foreign: &dyn Fn(&Rectangle, Placement) -> bool,
    middle: &dyn Fn(usize) -> usize,
) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::new();
    for group in groups(bands) {
        regions.push(Region { placement: group[0].placement, bands: group, areas: Vec::new() });
    }
    let whole: Vec<Rectangle> = regions.iter().map(|region| around(&region.bands)).collect();
    for (at, region) in regions.iter_mut().enumerate() {
        let alone = whole.iter().enumerate().all(|(other, area)| other == at || !area.touches(&whole[at]));
        region.areas = match alone && !foreign(&whole[at], region.placement) {
            true => vec![whole[at]],
            false => pieces(&region.bands, middle),
        };
    }
    regions
}

/// Whether two bands of neighbouring levels belong together.
fn joined(upper: &Band, lower: &Band) -> bool {
    upper.placement == lower.placement
        && upper.level + 1 == lower.level
        && upper.area.left < lower.area.right()
        && lower.area.left < upper.area.right()
}

/// Bands that hang together, each group in the order of the levels.
fn groups(bands: &[Band]) -> Vec<Vec<Band>> {
    let mut group: Vec<usize> = (0..bands.len()).collect();
    for (at, lower) in bands.iter().enumerate() {
        for (before, upper) in bands[..at].iter().enumerate() {
            if joined(upper, lower) && group[before] != group[at] {
                let (from, to) = (group[at].max(group[before]), group[at].min(group[before]));
                group.iter_mut().filter(|number| **number == from).for_each(|number| *number = to);
            }
        }
    }
    let numbers = 0..bands.len();
    let members =
        |number: usize| bands.iter().zip(&group).filter(move |(_, own)| **own == number).map(|(band, _)| *band);
    numbers.map(|number| members(number).collect::<Vec<Band>>()).filter(|members| !members.is_empty()).collect()
}

/// The rectangle around bands, with its margins.
fn around(bands: &[Band]) -> Rectangle {
    let edges = |of: fn(&Band) -> usize| bands.iter().map(of);
    let left = edges(|band| band.area.left).min().unwrap_or(0);
    let top = edges(|band| band.area.top).min().unwrap_or(0);
    let right = edges(|band| band.area.right()).max().unwrap_or(0);
    let bottom = edges(|band| band.area.bottom()).max().unwrap_or(0);
    with_margins(&Rectangle { left, top, width: right - left, height: bottom - top })
}

fn with_margins(area: &Rectangle) -> Rectangle {
    Rectangle {
        left: area.left - MARGIN,
        top: area.top - HEAD,
        width: area.width + 2 * MARGIN,
        height: area.height + HEAD + MARGIN,
    }
}

/// A rectangle for each band, longer by half the way to the bands it is joined to.
fn pieces(bands: &[Band], middle: &dyn Fn(usize) -> usize) -> Vec<Rectangle> {
    let piece = |band: &Band| {
        let mut area = with_margins(&band.area);
        if bands.iter().any(|upper| joined(upper, band)) {
            let top = middle(band.level - 1);
            area.height += area.top - top;
            area.top = top;
        }
        if bands.iter().any(|lower| joined(band, lower)) {
            area.height = middle(band.level) - area.top;
        }
        area
    };
    bands.iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(placement: Placement, level: usize, left: usize, width: usize) -> Band {
        Band { placement, level, area: Rectangle { left, top: 100 * (level + 1), width, height: 40 } }
    }

    #[test]
    fn what_hangs_together_is_one_region_and_one_rectangle_if_nobody_else_is_in_it() {
        let bands = [
            band(Placement::App, 0, 100, 50),
            band(Placement::Server, 0, 300, 50),
            band(Placement::App, 1, 120, 90),
            band(Placement::App, 2, 400, 50),
        ];
        let middle = |level: usize| 100 * (level + 1) + 60;
        let free = regions(&bands, &|_, _| false, &middle);
        assert_eq!(free.iter().map(|region| region.bands.len()).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(free[0].areas, [Rectangle { left: 92, top: 80, width: 126, height: 168 }]);
        let taken = regions(&bands, &|_, placement| placement == Placement::App, &middle);
        assert_eq!(taken[0].areas.len(), 2);
        assert_eq!(taken[0].areas[0].bottom(), taken[0].areas[1].top, "its pieces meet half way");
        assert_eq!(taken[1].areas.len(), 1);
    }
}
