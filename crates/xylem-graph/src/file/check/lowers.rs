//! What stands over what: kinds fit, slots are filled, and the graph has a bottom and a top.

use std::collections::HashSet;

use super::{Site, called};
use crate::file::description::{Description, Kind, Provides, Role, Slot};
use crate::file::graph::{Lower, Node};
use crate::file::nearest::one_of;
use crate::file::problem::{Position, Problem};

/// The edges (upper, branch) that a problem was said about; other checks pass over them.
pub(super) type Misplaced = HashSet<(usize, usize)>;

pub(super) fn check(site: &Site<'_>, problems: &mut Vec<Problem>) -> Misplaced {
    let offers = Offers::of(site);
    let mut misplaced = Misplaced::new();
    for (index, node) in site.graph.nodes.iter().enumerate() {
        if let Some(description) = site.described[index] {
            slots(site, &offers, index, node, description, &mut misplaced, problems);
        }
    }
    if !site.has_unknown_lowers() {
        tops(site, problems);
    }
    misplaced
}

/// Fills each node's slots with its lowers and says what fits nowhere, what is too many and what is missing.
fn slots(
    site: &Site<'_>,
    offers: &Offers,
    index: usize,
    node: &Node,
    description: &Description,
    misplaced: &mut Misplaced,
    problems: &mut Vec<Problem>,
) {
    let mut filled = vec![0; description.over.len()];
    // A lower about which nothing is known may be the one that seems to be missing.
    let mut uncertain = false;
    for (branch, lower) in node.lowers.iter().enumerate() {
        let Some(kinds) = offers.by(site, &lower.value) else {
            uncertain = true;
            continue;
        };
        let takes = |slot: &Slot| slot.kinds.iter().any(|kind| kinds.contains(kind));
        let fitting = || description.over.iter().enumerate().filter(|(_, slot)| takes(slot));
        let chosen = fitting().find(|(place, slot)| filled[*place] < slot.most);
        if let Some((place, _)) = chosen {
            filled[place] += 1;
            continue;
        }
        misplaced.insert((index, branch));
        problems.push(match fitting().next() {
            Some((_, slot)) => Problem::new(
                lower.position,
                format!("`{}` is one {} too many below {}", lower.word(), slot.what, called(node)),
                slot.expected(),
                format!("remove `{}`, or put another {} over it", lower.word(), description.name),
            ),
            None => cannot_stand(site, offers, node, description, &lower.value, &kinds, lower.position),
        });
        // What stands in the wrong place probably stands for what is missing; one message is enough.
        uncertain |= fitting().next().is_none();
    }
    for (slot, count) in description.over.iter().zip(filled) {
        if count < slot.least && !uncertain {
            problems.push(lacks(site, offers, node, slot, count));
        }
    }
}

fn cannot_stand(
    site: &Site<'_>,
    offers: &Offers,
    node: &Node,
    description: &Description,
    lower: &Lower,
    kinds: &[Kind],
    position: Position,
) -> Problem {
    let what = if kinds.is_empty() {
        format!("{} cannot stand over `{}`, which offers nothing upward", called(node), lower.word())
    } else {
        format!("{} cannot stand over `{}`, which is of kind {}", called(node), lower.word(), kind_list(kinds))
    };
    let wanted: Vec<Kind> = description.over.iter().flat_map(|slot| slot.kinds).copied().collect();
    let expected =
        if wanted.is_empty() { "no lowers".to_owned() } else { format!("a lower of kind {}", kind_list(&wanted)) };
    let mend = match candidates(site, offers, node, &wanted) {
        found if !found.is_empty() => format!("put it over {}", one_of(found)),
        _ if wanted.is_empty() => "remove `over` and what follows".to_owned(),
        _ => "put a protocol of that kind between them".to_owned(),
    };
    Problem::new(position, what, expected, mend)
}

fn lacks(site: &Site<'_>, offers: &Offers, node: &Node, slot: &Slot, count: usize) -> Problem {
    let what = match count {
        _ if node.lowers.is_empty() => format!("nothing stands below {}", called(node)),
        0 => format!("{} stands over no {}", called(node), slot.what),
        1 => format!("{} stands over only one {}", called(node), slot.what),
        more => format!("{} stands over only {more} {}s", called(node), slot.what),
    };
    let mend = match candidates(site, offers, node, slot.kinds) {
        found if !found.is_empty() => format!("put it over {}", one_of(found)),
        _ => format!("add a node of kind {}, and put it over that", kind_list(slot.kinds)),
    };
    Problem::new(node.name.position, what, slot.expected(), mend)
}

/// What in the graph offers one of the wanted kinds and is not yet a lower of the node.
fn candidates<'a>(site: &Site<'a>, offers: &Offers, node: &Node, wanted: &[Kind]) -> Vec<&'a str> {
    if wanted.contains(&Kind::DEVICE) {
        return vec!["auto"];
    }
    let others = site.graph.nodes.iter().enumerate().filter(|(_, other)| other.name != node.name);
    let offering = others.filter(|(index, other)| {
        let kinds = offers.kinds[*index].as_deref().unwrap_or(&[]);
        // A virtual protocol above the node itself would make a circle.
        !node.stands_over(&other.name)
            && !other.stands_over(&node.name)
            && wanted.iter().any(|kind| kinds.contains(kind))
    });
    offering.map(|(_, other)| other.name.as_str()).collect()
}

fn kind_list(kinds: &[Kind]) -> String {
    let mut words: Vec<&str> = Vec::new();
    for kind in kinds {
        if !words.contains(&kind.0) {
            words.push(kind.0);
        }
    }
    words.join(" or ")
}

/// Whoever only carries for others must have others above; one of the nodes must reach the ground.
fn tops(site: &Site<'_>, problems: &mut Vec<Problem>) {
    let carried: HashSet<usize> = site.edges().map(|(_, _, lower)| lower).collect();
    for (index, node) in site.graph.nodes.iter().enumerate() {
        let Some(description) = site.described[index] else { continue };
        let needs_uppers = matches!(description.role, Role::Carrier | Role::Virtual);
        if needs_uppers && !carried.contains(&index) && site.by_name[node.name.as_str()] == index {
            problems.push(Problem::new(
                node.name.position,
                format!("nothing stands over {}, which only carries for others", called(node)),
                "a node above it",
                format!("name `{}` among the lowers of another node, or remove it", node.name.value),
            ));
        }
    }
}

/// What each node offers upward; `None` where that cannot be known (unknown protocols, circles of virtual protocols).
struct Offers {
    kinds: Vec<Option<Vec<Kind>>>,
}

impl Offers {
    fn of(site: &Site<'_>) -> Offers {
        let nodes = site.graph.nodes.len();
        let mut offers = Offers { kinds: vec![None; nodes] };
        // Each round settles at least one more layer of virtual protocols, so there are at most as many rounds as nodes.
        for _ in 0..=nodes {
            let next: Vec<_> = (0..nodes).map(|index| offers.node(site, index)).collect();
            if next == offers.kinds {
                break;
            }
            offers.kinds = next;
        }
        offers
    }

    fn node(&self, site: &Site<'_>, index: usize) -> Option<Vec<Kind>> {
        match site.described[index]?.provides {
            Provides::Nothing => Some(Vec::new()),
            Provides::Kinds { kinds, .. } => Some(kinds.to_vec()),
            Provides::AsBelow => {
                let mut lowers = site.graph.nodes[index].lowers.iter().map(|lower| self.by(site, &lower.value));
                let first = lowers.next()??;
                lowers.try_fold(first, |mut common, other| {
                    let other = other?;
                    common.retain(|kind| other.contains(kind));
                    Some(common)
                })
            }
        }
    }

    fn by(&self, site: &Site<'_>, lower: &Lower) -> Option<Vec<Kind>> {
        match lower {
            Lower::Device(_) => Some(vec![Kind::DEVICE]),
            Lower::Node(_) => self.kinds[site.index_of(lower)?].clone(),
        }
    }
}
