//! Which of the messages sent came back, each counted once however often the network doubled it.

use std::collections::BTreeSet;

/// See the module's text.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    seen: BTreeSet<u64>,
    again: u64,
}

impl Numbers {
    /// Message `number` came back.
    pub fn add(&mut self, number: u64) {
        if !self.seen.insert(number) {
            self.again += 1;
        }
    }

    /// How many different ones came back.
    pub fn count(&self) -> u64 {
        self.seen.len() as u64
    }

    /// For people.
    pub fn said(&self, sent: u64) -> String {
        let again = if self.again > 0 { format!(", {} of them again", self.again) } else { String::new() };
        format!("{} of {sent} came back right{again}", self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_counts_once() {
        let mut numbers = Numbers::default();
        [3, 1, 3].into_iter().for_each(|number| numbers.add(number));
        assert_eq!((numbers.count(), numbers.said(4)), (2, "2 of 4 came back right, 1 of them again".into()));
    }
}
