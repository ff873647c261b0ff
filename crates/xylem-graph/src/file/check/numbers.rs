//! Protocol numbers: every protocol is known to those below it, and no two under one lower by the same number.
//!
//! A virtual protocol has no number of its own: those above it are numbered on what it stands over. So each node's lowers are
//! first followed down through virtual protocols to the protocols whose headers carry the number.

use std::collections::{BTreeMap, BTreeSet};

use super::lowers::Misplaced;
use super::{Site, called};
use crate::file::description::{Description, Number, Provides, Space, Uppers};
use crate::file::graph::Node;
use crate::file::option::Presence;
use crate::file::problem::{Position, Problem};

/// An edge as a claim on the lower's header: the upper, and the lower that names it.
struct Claim {
    upper: usize,
    lower: usize,
    position: Position,
}

pub(super) fn check(site: &Site<'_>, misplaced: &Misplaced, problems: &mut Vec<Problem>) {
    let claims = claims(site, misplaced);
    let mut taken: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    let mut only: BTreeMap<usize, usize> = BTreeMap::new();
    for claim in &claims {
        let (upper, lower) = (&site.graph.nodes[claim.upper], &site.graph.nodes[claim.lower]);
        let (Some(above), Some(below)) = (site.described[claim.upper], site.described[claim.lower]) else { continue };
        let Provides::Kinds { uppers, .. } = below.provides else { continue };
        match uppers {
            Uppers::Many => {}
            Uppers::One => {
                if let Some(&first) = only.get(&claim.lower) {
                    problems.push(second_upper(&site.graph.nodes[first], upper, lower, claim.position));
                }
                only.entry(claim.lower).or_insert(claim.upper);
            }
            Uppers::Numbered(space) => match number(upper, above, below, space) {
                Found::None => problems.push(unnumbered(upper, above, lower, space, claim.position)),
                Found::Elsewhere => {}
                Found::Number(number) => {
                    if let Some(&first) = taken.get(&(claim.lower, number)) {
                        let first = &site.graph.nodes[first];
                        let option = match above.number_on(below.name, space) {
                            Some(Number::Option(option)) => Some(option),
                            Some(Number::Fixed(_)) | None => None,
                        };
                        let what = (space, number);
                        problems.push(clash(first, upper, lower, what, option, claim.position));
                    }
                    taken.entry((claim.lower, number)).or_insert(claim.upper);
                }
            },
        }
    }
}

/// All claims, each pair of upper and branch once, in the order of the file.
fn claims(site: &Site<'_>, misplaced: &Misplaced) -> Vec<Claim> {
    let virtuals: Vec<bool> = site
        .described
        .iter()
        .map(|found| found.is_some_and(|description| matches!(description.provides, Provides::AsBelow)))
        .collect();
    let mut claims = Vec::new();
    for (upper, branch, lower) in site.edges() {
        if virtuals[upper] || misplaced.contains(&(upper, branch)) {
            continue;
        }
        let position = site.graph.nodes[upper].lowers[branch].position;
        let carriers = carriers(site, &virtuals, lower);
        claims.extend(carriers.into_iter().map(|lower| Claim { upper, lower, position }));
    }
    claims
}

/// The node itself, or what is under it where it is virtual; each once, however many ways lead there.
fn carriers(site: &Site<'_>, virtuals: &[bool], start: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::from([start]);
    let mut waiting = vec![start];
    let mut carriers = BTreeSet::new();
    while let Some(index) = waiting.pop() {
        if !virtuals[index] {
            carriers.insert(index);
            continue;
        }
        let below = site.graph.nodes[index].lowers.iter().filter_map(|lower| site.index_of(&lower.value));
        waiting.extend(below.filter(|next| seen.insert(*next)));
    }
    carriers
}

enum Found {
    Number(u32),
    /// An option says it, and that option has a problem of its own.
    Elsewhere,
    None,
}

fn number(upper: &Node, above: &Description, below: &Description, space: Space) -> Found {
    let option = match above.number_on(below.name, space) {
        None => return Found::None,
        Some(Number::Fixed(number)) => return Found::Number(number),
        Some(Number::Option(option)) => option,
    };
    let default = || match above.option(option)?.presence {
        Presence::Default(default) => default.value().integer(),
        Presence::Optional | Presence::Required => None,
    };
    let said = match upper.option(option) {
        Some(said) => said.value.integer(),
        None => default(),
    };
    said.and_then(|number| u32::try_from(number).ok()).map_or(Found::Elsewhere, Found::Number)
}

fn unnumbered(upper: &Node, above: &Description, lower: &Node, space: Space, position: Position) -> Problem {
    Problem::new(
        position,
        format!("{} has no {} by which {} could name it", called(upper), space.0, called(lower)),
        format!("a protocol with a number on {}", lower.protocol.value),
        format!("put it over another protocol, or describe the number in {}", above.name),
    )
}

fn second_upper(first: &Node, upper: &Node, lower: &Node, position: Position) -> Problem {
    let what = if first.name == upper.name {
        format!("`{}` stands over {} in two ways", upper.name.value, called(lower))
    } else {
        format!("`{}` and `{}` both stand over {}", first.name.value, upper.name.value, called(lower))
    };
    Problem::new(
        position,
        format!("{what}, which cannot tell uppers apart"),
        "one node above it",
        format!("give `{}` a {} of its own", upper.name.value, lower.protocol.value),
    )
}

/// Two uppers with one number; `option` is what the second one's number comes from, if it comes from an option.
fn clash(
    first: &Node,
    upper: &Node,
    lower: &Node,
    (space, number): (Space, u32),
    option: Option<&str>,
    position: Position,
) -> Problem {
    let (one, other) = (&first.name.value, &upper.name.value);
    let what = if one == other {
        format!("`{other}` reaches {} in two ways with {} {number}", called(lower), space.0)
    } else {
        format!("`{one}` and `{other}` both claim {} {number} of {}", space.0, called(lower))
    };
    let mend = match option {
        Some(option) if one != other => format!("give `{other}` another `{option}`"),
        _ => format!("put `{other}` over another node, or remove it"),
    };
    Problem::new(position, what, "a number of its own for each upper", mend)
}
