//! Which algorithms there are: a table from names to makers, open at its end. A program adds its own before it builds an
//! instance, and names it in the graph or for one connection; the built-in ones stand in the same table.

use super::{Bbr, CongestionControl, Cubic, NewReno};
use xylem_core::{BadRecord, Instant, Record};

/// The most bytes of an algorithm's name, as TCP_CONGESTION of other hosts has it.
pub const NAME_MAX: usize = 15;

/// What an algorithm starts from.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Payload bytes of a segment.
    pub segment: u32,
    /// The initial window in bytes (RFC 6928): also where a pause may lead back to.
    pub initial: u32,
    /// The window to begin with, in bytes: the initial one, or that of the algorithm whose place is taken.
    pub window: u32,
    /// The time.
    pub now: Instant,
    /// Differs between connections, so that they need not do everything at the same time.
    pub seed: u32,
}

impl Start {
    /// A start with `segments` segments of `segment` bytes: at most ten, and less of large ones (RFC 6928, section 2).
    pub fn new(segment: u32, segments: u32, now: Instant, seed: u32) -> Start {
        let segment = segment.max(1);
        let window = segments.saturating_mul(segment).min((2 * segment).max(14_600)).max(segment);
        Start { segment, initial: window, window, now, seed }
    }
}

/// Makes an algorithm's state for a new connection.
pub type Begin = fn(&Start) -> Box<dyn CongestionControl>;

/// Makes it for a connection that goes on from a record.
///
/// # Errors
/// [`BadRecord`] if the record does not hold what the algorithm's `export` writes, or contradicts itself: a record may
/// come from anybody.
pub type Import = fn(&Start, &mut Record) -> Result<Box<dyn CongestionControl>, BadRecord>;

/// An algorithm by name (RFC 9293, MUST-19, MAY-18). It stands in a `static`, for connections refer to it.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// What a graph or an application calls it: lower case, at most [`NAME_MAX`] bytes.
    pub name: &'static str,
    /// Makes one.
    pub begin: Begin,
    /// Makes one that goes on from its record. `None`: it begins anew where a connection is moved to.
    pub import: Option<Import>,
}

/// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
pub static CUBIC: Algorithm = Algorithm {
    name: "cubic",
    begin: |start| Box::new(Cubic::new(start)),
    import: Some(|_, record| Ok(Box::new(Cubic::import(record)?))),
};

/// BBR, version 3 (draft-ietf-ccwg-bbr).
pub static BBR: Algorithm = Algorithm {
    name: "bbr",
    begin: |start| Box::new(Bbr::new(start)),
    import: Some(|start, record| Ok(Box::new(Bbr::import(start, record)?))),
};

/// Reno as in RFC 5681 and RFC 6582.
pub static RENO: Algorithm = Algorithm {
    name: "reno",
    begin: |start| Box::new(NewReno::new(start)),
    import: Some(|_, record| Ok(Box::new(NewReno::import(record)?))),
};

impl Algorithm {
    /// One that begins anew where a connection is moved to.
    ///
    /// # Panics
    /// If the name has no byte or more than [`NAME_MAX`]: the author's mistake, found when compiling a `static`.
    pub const fn new(name: &'static str, begin: Begin) -> Algorithm {
        assert!(!name.is_empty() && name.len() <= NAME_MAX);
        Algorithm { name, begin, import: None }
    }

    /// One that goes on from `record`, or begins anew.
    pub(crate) fn go_on(&self, start: &Start, record: &mut Record) -> Result<Box<dyn CongestionControl>, BadRecord> {
        match self.import {
            Some(import) => import(start, record),
            None => Ok((self.begin)(start)),
        }
    }
}

impl PartialEq for Algorithm {
    /// Names are what tells algorithms apart.
    fn eq(&self, other: &Algorithm) -> bool {
        self.name == other.name
    }
}

impl std::fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The algorithms a TCP knows, the one it takes by default first.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithms(Vec<&'static Algorithm>);

impl Default for Algorithms {
    /// The built-in ones.
    fn default() -> Algorithms {
        Algorithms(vec![&CUBIC, &RENO, &BBR])
    }
}

impl Algorithms {
    /// Adds one. The one of the same name, if there is, makes way: a program may mend a built-in one.
    #[must_use]
    pub fn with(mut self, algorithm: &'static Algorithm) -> Algorithms {
        match self.0.iter_mut().find(|known| known.name == algorithm.name) {
            Some(known) => *known = algorithm,
            None => self.0.push(algorithm),
        }
        self
    }

    /// The one called `name`.
    pub fn named(&self, name: &str) -> Option<&'static Algorithm> {
        self.0.iter().copied().find(|known| known.name == name)
    }

    /// What they are called, the default first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|known| known.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static MINE: Algorithm = Algorithm::new("mine", |start| Box::new(NewReno::new(start)));
    static OTHER_RENO: Algorithm = Algorithm::new("reno", |start| Box::new(NewReno::new(start)));

    #[test]
    fn the_initial_window_follows_rfc_6928() {
        let window = |segment, segments| Start::new(segment, segments, Instant::ZERO, 0).window;
        assert_eq!(window(1460, 10), 14_600);
        assert_eq!(window(536, 10), 5_360);
        assert_eq!(window(9000, 10), 18_000, "two large segments, more than 14600 bytes");
        assert_eq!(window(1460, 1), 1460, "after a lost SYN");
        assert_eq!(window(0, 0), 1, "never nothing");
    }

    #[test]
    fn a_table_is_open_at_its_end_and_names_are_unique() {
        let usual = Algorithms::default().names().count();
        let table = Algorithms::default().with(&MINE).with(&OTHER_RENO).with(&MINE);
        assert_eq!(table.names().count(), usual + 1);
        assert_eq!(table.named("mine"), Some(&MINE));
        assert!(table.named("reno").expect("built in").import.is_none(), "the program's own has taken its place");
        assert_eq!(table.named("cubik"), None);
    }

    #[test]
    fn what_exports_nothing_begins_anew() {
        let start = Start::new(1000, 10, Instant::ZERO, 0);
        let mut record = Record::default();
        let anew = MINE.go_on(&start, &mut record).expect("nothing is read");
        assert_eq!(anew.window(), 10_000);
        assert!(RENO.go_on(&start, &mut record).is_err(), "but what expects its state is not content with nothing");
    }
}
