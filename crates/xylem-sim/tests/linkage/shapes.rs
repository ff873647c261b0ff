//! The shapes in which the same sessions can be linked. The right-leaning ones (a session over all that is below it) are
//! what a graph makes; the others group sessions that do not reach down to the device.

use super::chatty::{Chatty, Spec};
use xylem_core::{Chain, Random, Session, Stack};

/// Links sessions made of these, top first.
pub type Shape = fn(&[Spec]) -> Box<dyn Session>;

/// One dynamic call a layer.
pub fn chain(specs: &[Spec]) -> Box<dyn Session> {
    Box::new(Chain::new(specs.iter().map(|spec| Box::new(Chatty::new(*spec)) as Box<dyn Session>).collect()))
}

/// One type, leaning to the right.
pub fn fused(specs: &[Spec]) -> Box<dyn Session> {
    let at = |index: usize| Chatty::new(specs[index]);
    match specs.len() {
        1 => Box::new(at(0)),
        2 => Box::new(Stack { upper: at(0), lower: at(1) }),
        3 => Box::new(Stack { upper: at(0), lower: Stack { upper: at(1), lower: at(2) } }),
        4 => {
            let lower = Stack { upper: at(2), lower: at(3) };
            Box::new(Stack { upper: at(0), lower: Stack { upper: at(1), lower } })
        }
        more => panic!("{more} sessions: this shape is written out up to four"),
    }
}

/// One type, leaning to the left.
pub fn fused_left(specs: &[Spec]) -> Box<dyn Session> {
    let at = |index: usize| Chatty::new(specs[index]);
    match specs.len() {
        1 => Box::new(at(0)),
        2 => Box::new(Stack { upper: at(0), lower: at(1) }),
        3 => Box::new(Stack { upper: Stack { upper: at(0), lower: at(1) }, lower: at(2) }),
        4 => {
            let upper = Stack { upper: at(0), lower: at(1) };
            Box::new(Stack { upper: Stack { upper, lower: at(2) }, lower: at(3) })
        }
        more => panic!("{more} sessions: this shape is written out up to four"),
    }
}

/// Boxes, chains and stacks by chance, leaning to the right.
pub fn mixed(specs: &[Spec], random: &mut Random) -> Box<dyn Session> {
    let [top, rest @ ..] = specs else { panic!("a shape of no sessions") };
    let top = Chatty::new(*top);
    if rest.is_empty() {
        return match random.below(3) {
            0 => Box::new(top),
            1 => Box::new(Box::new(top) as Box<dyn Session>),
            _ => Box::new(Chain::new(vec![Box::new(top)])),
        };
    }
    let below = mixed(rest, random);
    match random.below(3) {
        0 => Box::new(Stack { upper: top, lower: below }),
        1 => Box::new(Stack { upper: Box::new(top) as Box<dyn Session>, lower: below }),
        _ => Box::new(Chain::new(vec![Box::new(top), below])),
    }
}

/// Any tree at all.
pub fn tree(specs: &[Spec], random: &mut Random) -> Box<dyn Session> {
    if let [only] = specs {
        return Box::new(Chatty::new(*only));
    }
    let cut = 1 + random.below(specs.len() as u64 - 1) as usize;
    let (upper, lower) = (tree(&specs[..cut], random), tree(&specs[cut..], random));
    if random.below(2) == 0 { Box::new(Stack { upper, lower }) } else { Box::new(Chain::new(vec![upper, lower])) }
}
