//! What a link does to frames, as values and as text. The text is for people: `loss=1% delay=10ms rate=100Mb/s` on a
//! command line or in a graph file. Everything is an integer inside, so that a model means the same on every machine.

use super::text;
use core::fmt;
use core::str::FromStr;
use xylem_core::random::Random;
use xylem_core::time::Duration;

/// The number of parts in a whole, for every probability here.
pub const MILLION: u32 = 1_000_000;

/// The longest delay and the longest jitter a link may have: far beyond the Moon, far below what time can hold.
pub const DELAY_MAX: Duration = Duration::from_secs(3600);

/// The slowest rate a link may have, in bits per second: below this a full-size frame takes minutes.
pub const RATE_BITS_PER_SECOND_MIN: u64 = 100;

/// The highest rate a link may have, in bits per second; a link without a rate is the one without serialisation.
pub const RATE_BITS_PER_SECOND_MAX: u64 = 1_000_000_000_000;

/// The smallest MTU a link may have, in bytes: what IPv4 asks of every link (RFC 791, section 3.2).
pub const MTU_MIN: usize = 68;

/// The largest MTU a link may have, in bytes: the largest IPv4 packet (RFC 791, section 3.1).
pub const MTU_MAX: usize = 65_535;

/// The longest transmit queue a link may have, in frames.
pub const QUEUE_FRAMES_MAX: usize = 65_536;

/// What one direction of a link does to the frames on it. The default is a perfect Ethernet: nothing is lost, late or
/// changed, and frames carry at most 1500 bytes.
///
/// Probabilities are parts per million and independent of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// Bits per second of frame bytes, link header included (preamble, gap and frame check sequence are not counted);
    /// `None` is a link that takes no time to send.
    pub rate_bits_per_second: Option<u64>,
    /// The time from the end of a frame's serialisation to its arrival; at most [`DELAY_MAX`].
    pub delay: Duration,
    /// A delay from zero up to this, equally likely, is added to each frame; at most [`DELAY_MAX`]. It never reorders:
    /// a frame arrives no earlier than the frame before it, so heavy jitter makes the mean delay longer.
    pub jitter: Duration,
    /// Frames lost on the wire, in a million. They take their time on the wire all the same.
    pub loss_per_million: u32,
    /// Frames that arrive twice, in a million. The copy follows the frame at once and is never corrupted.
    pub duplicate_per_million: u32,
    /// Frames held back so that a few later ones overtake them, in a million.
    pub reorder_per_million: u32,
    /// Frames of which one bit after the link header is flipped, in a million.
    pub corrupt_per_million: u32,
    /// The largest frame in bytes, its link header not counted.
    pub mtu: usize,
    /// The frames that may wait for, or be in, serialisation; one more is dropped (tail drop). No meaning without a
    /// rate.
    pub queue_frames_max: usize,
    /// The seed of the link's random stream if the text named one; see [`LinkModel::random`].
    pub seed: Option<u64>,
}

impl Default for LinkModel {
    fn default() -> LinkModel {
        LinkModel {
            rate_bits_per_second: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss_per_million: 0,
            duplicate_per_million: 0,
            reorder_per_million: 0,
            corrupt_per_million: 0,
            mtu: 1500,
            queue_frames_max: 1000,
            seed: None,
        }
    }
}

impl LinkModel {
    /// The random stream of a link of this model: the model's own seed, or `seed` if it has none. A wire with two
    /// directions gives each a [`Random::child`] of this stream.
    pub fn random(&self, seed: u64) -> Random {
        Random::seeded(self.seed.unwrap_or(seed))
    }

    /// True if frames must be sent one by one and at most [`LinkModel::mtu`] long: whoever sends on such a link cuts
    /// large messages first, so that a loss is the loss of one frame for every contestant.
    pub fn is_impaired(&self) -> bool {
        let default = LinkModel::default();
        *self != LinkModel { mtu: self.mtu, queue_frames_max: self.queue_frames_max, seed: self.seed, ..default }
    }

    /// Checks every value against its limit.
    ///
    /// # Errors
    /// The first value outside its limits, with what was expected and what stands there.
    pub fn check(&self) -> Result<(), LinkModelError> {
        let wrong =
            |item: &str, expected: String, got: String| Err(LinkModelError { item: item.into(), expected, got });
        if let Some(rate) = self.rate_bits_per_second
            && !(RATE_BITS_PER_SECOND_MIN..=RATE_BITS_PER_SECOND_MAX).contains(&rate)
        {
            return wrong("rate", "100b/s to 1000Gb/s".into(), text::Rate(rate).to_string());
        }
        for (name, span) in [("delay", self.delay), ("jitter", self.jitter)] {
            if span > DELAY_MAX {
                return wrong(name, "at most 3600s".into(), text::Span(span).to_string());
            }
        }
        for (name, parts) in self.probabilities() {
            if parts > MILLION {
                return wrong(name, "at most 100%".into(), text::Parts(parts).to_string());
            }
        }
        if !(MTU_MIN..=MTU_MAX).contains(&self.mtu) {
            return wrong("mtu", format!("{MTU_MIN} to {MTU_MAX} bytes"), self.mtu.to_string());
        }
        if !(1..=QUEUE_FRAMES_MAX).contains(&self.queue_frames_max) {
            return wrong("queue", format!("1 to {QUEUE_FRAMES_MAX} frames"), self.queue_frames_max.to_string());
        }
        Ok(())
    }

    fn probabilities(&self) -> [(&'static str, u32); 4] {
        [
            ("loss", self.loss_per_million),
            ("duplicate", self.duplicate_per_million),
            ("reorder", self.reorder_per_million),
            ("corrupt", self.corrupt_per_million),
        ]
    }

    fn take(&mut self, item: &str, name: &str, value: &str) -> Result<(), LinkModelError> {
        let wrong = |expected: &str| LinkModelError { item: item.into(), expected: expected.into(), got: value.into() };
        const PERCENTAGE: &str = "a percentage with at most four decimals, such as 1% or 0.05%";
        const TIME: &str = "a time in ns, us, ms or s, such as 20ms or 1.5s";
        match name {
            "rate" => {
                let expected = "a rate in b/s, kb/s, Mb/s or Gb/s, such as 100Mb/s";
                self.rate_bits_per_second = Some(text::rate(value).ok_or_else(|| wrong(expected))?);
            }
            "delay" => self.delay = text::span(value).ok_or_else(|| wrong(TIME))?,
            "jitter" => self.jitter = text::span(value).ok_or_else(|| wrong(TIME))?,
            "loss" => self.loss_per_million = text::parts(value).ok_or_else(|| wrong(PERCENTAGE))?,
            "duplicate" => self.duplicate_per_million = text::parts(value).ok_or_else(|| wrong(PERCENTAGE))?,
            "reorder" => self.reorder_per_million = text::parts(value).ok_or_else(|| wrong(PERCENTAGE))?,
            "corrupt" => self.corrupt_per_million = text::parts(value).ok_or_else(|| wrong(PERCENTAGE))?,
            "mtu" => self.mtu = text::whole(value).ok_or_else(|| wrong("a number of bytes, such as 1500"))?,
            "queue" => self.queue_frames_max = text::whole(value).ok_or_else(|| wrong("a number of frames"))?,
            "seed" => self.seed = Some(text::whole(value).ok_or_else(|| wrong("a number below 2^64"))?),
            _ => return Err(unknown(item)),
        }
        Ok(())
    }
}

fn unknown(item: &str) -> LinkModelError {
    LinkModelError {
        item: item.into(),
        expected:
            "perfect, or NAME=VALUE with rate, delay, jitter, loss, duplicate, reorder, corrupt, mtu, queue or seed"
                .into(),
        got: item.into(),
    }
}

/// Reads a model: `NAME=VALUE` items between spaces or commas, each name once; what is not named has its default. The
/// word `perfect`, and no text at all, are the default.
impl FromStr for LinkModel {
    type Err = LinkModelError;

    fn from_str(text: &str) -> Result<LinkModel, LinkModelError> {
        let mut model = LinkModel::default();
        let mut seen = Vec::with_capacity(10);
        for item in text.split([' ', '\t', '\n', ',']).filter(|item| !item.is_empty()) {
            let (name, value) = match item.split_once('=') {
                Some(pair) => pair,
                None if item == "perfect" => continue,
                None => return Err(unknown(item)),
            };
            // An unknown name fails here, so that `seen` holds at most the ten known ones.
            model.take(item, name, value)?;
            if seen.contains(&name) {
                return Err(LinkModelError {
                    item: item.into(),
                    expected: "each name once".into(),
                    got: format!("`{name}` again"),
                });
            }
            seen.push(name);
        }
        model.check()?;
        Ok(model)
    }
}

/// Prints the model so that reading it back gives the same model; values that are the default are left out.
impl fmt::Display for LinkModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = LinkModel::default();
        let mut items = Vec::new();
        if let Some(rate) = self.rate_bits_per_second {
            items.push(format!("rate={}", text::Rate(rate)));
        }
        for (name, span) in [("delay", self.delay), ("jitter", self.jitter)] {
            if !span.is_zero() {
                items.push(format!("{name}={}", text::Span(span)));
            }
        }
        for (name, parts) in self.probabilities() {
            if parts > 0 {
                items.push(format!("{name}={}", text::Parts(parts)));
            }
        }
        if self.mtu != default.mtu {
            items.push(format!("mtu={}", self.mtu));
        }
        if self.queue_frames_max != default.queue_frames_max {
            items.push(format!("queue={}", self.queue_frames_max));
        }
        if let Some(seed) = self.seed {
            items.push(format!("seed={seed}"));
        }
        if items.is_empty() { formatter.write_str("perfect") } else { formatter.write_str(&items.join(" ")) }
    }
}

/// A link model that cannot be: the caller's mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkModelError {
    /// The item of the text, or the name of the value.
    pub item: String,
    /// What may stand there.
    pub expected: String,
    /// What stands there.
    pub got: String,
}

impl fmt::Display for LinkModelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "link model `{}`: expected {}, got `{}`", self.item, self.expected, self.got)
    }
}

impl core::error::Error for LinkModelError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_means_what_it_says() {
        let model: LinkModel =
            "loss=1% reorder=1%, corrupt=0.1% delay=1ms jitter=1.5us duplicate=100% rate=100Mb/s queue=100 mtu=9000 seed=42"
                .parse()
                .expect("every item is right");
        assert_eq!(
            model,
            LinkModel {
                rate_bits_per_second: Some(100_000_000),
                delay: Duration::from_millis(1),
                jitter: Duration::from_nanos(1500),
                loss_per_million: 10_000,
                duplicate_per_million: 1_000_000,
                reorder_per_million: 10_000,
                corrupt_per_million: 1_000,
                mtu: 9000,
                queue_frames_max: 100,
                seed: Some(42),
            }
        );
        assert!(model.is_impaired());
        assert_eq!("".parse(), Ok(LinkModel::default()));
        assert!(!LinkModel::default().is_impaired());
    }

    #[test]
    fn printing_and_reading_back_is_the_same_model() {
        let mut random = Random::seeded(11);
        assert_eq!(LinkModel::default().to_string(), "perfect");
        assert_eq!("perfect".parse(), Ok(LinkModel::default()));
        for _ in 0..2000 {
            let mut parts = || random.below(1_000_001) as u32;
            let probabilities = [parts(), parts(), parts(), parts()];
            let model = LinkModel {
                rate_bits_per_second: [None, Some(100 + random.below(1_000_000_000_000 - 99))]
                    [random.below(2) as usize],
                delay: Duration::from_nanos(random.below(3_600_000_000_001)),
                jitter: Duration::from_micros(random.below(1000)),
                loss_per_million: probabilities[0],
                duplicate_per_million: probabilities[1],
                reorder_per_million: probabilities[2],
                corrupt_per_million: probabilities[3],
                mtu: 68 + random.below(65_468) as usize,
                queue_frames_max: 1 + random.below(65_536) as usize,
                seed: [None, Some(random.next())][random.below(2) as usize],
            };
            assert_eq!(model.to_string().parse(), Ok(model.clone()), "{model}");
        }
    }

    #[test]
    fn errors_say_expected_and_got() {
        for (text, expected, got) in [
            ("loss=2", "a percentage", "`2`"),
            ("loss=101%", "at most 100%", "`101%`"),
            ("loss=-1%", "a percentage", "`-1%`"),
            ("loss=0.00001%", "four decimals", "`0.00001%`"),
            ("delay=10", "a time", "`10`"),
            ("delay=2h", "a time", "`2h`"),
            ("delay=3601s", "at most 3600s", "`3601s`"),
            ("delay=99999999999999999999999s", "a time", "`99999999999999999999999s`"),
            ("rate=100", "a rate", "`100`"),
            ("rate=0b/s", "100b/s to 1000Gb/s", "`0b/s`"),
            ("mtu=10", "68 to 65535 bytes", "`10`"),
            ("queue=0", "1 to 65536 frames", "`0`"),
            ("speed=1", "NAME=VALUE", "`speed=1`"),
            ("lossy", "perfect, or", "`lossy`"),
            ("loss=1% loss=2%", "each name once", "`loss` again"),
            ("seed=x", "below 2^64", "`x`"),
        ] {
            let error = text.parse::<LinkModel>().expect_err(text).to_string();
            assert!(error.contains(expected) && error.contains(got), "`{text}` said: {error}");
        }
    }
}
