//! What one seed stands for: two hosts with their settings, a link in each direction, what their applications do, what
//! happens to the link meanwhile, and who meddles. Everything is drawn here, before anything runs, and printed when the
//! seed fails.

use std::time::Duration;
use xylem_core::Random;
use xylem_graph::file::Value;
use xylem_graph::link::LinkModel;

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    /// The link from host 0, which opens, to host 1, and back.
    pub links: [LinkModel; 2],
    /// Options of each host's TCP.
    pub tcp: [Vec<(&'static str, Value)>; 2],
    /// What each host's application does.
    pub talks: [Talks; 2],
    /// What happens meanwhile, in order.
    pub happenings: Vec<(Duration, Happening)>,
    /// Segments with a congestion mark among those that may have one, in a million.
    pub marks_per_million: u32,
    /// So often somebody meddles, in a million events.
    pub meddles_per_million: u32,
}

/// What an application does with its end.
#[derive(Clone, Debug)]
pub struct Talks {
    /// Bytes it sends.
    pub total: u64,
    /// Bytes it pushes at a time, at most.
    pub push_max: u64,
    /// Now and then it says nothing for so long.
    pub silence: Option<Duration>,
    /// Bytes it reads at a time, at most.
    pub read_max: usize,
    /// How long it waits between two reads.
    pub read_every: Duration,
    /// When it has read so much, it reads nothing for so long.
    pub pause: Option<(u64, Duration)>,
    /// It says that it sends no more as soon as that is so; otherwise it closes both ways at the end.
    pub half_closes: bool,
    /// Small segments go at once.
    pub no_delay: bool,
}

/// What may happen in the middle.
#[derive(Clone, Debug)]
pub enum Happening {
    /// Both directions of the link are otherwise from now on; routers tell who sends what is too large, or not.
    Links([LinkModel; 2], bool),
    /// Nothing arrives any more, or things do again.
    Dark(bool),
    /// The receive buffer of a host's end is of so many bytes.
    Buffer(usize, usize),
    /// A host's end is controlled by another algorithm.
    Congestion(usize, &'static str),
}

const ALGORITHMS: [&str; 3] = ["cubic", "reno", "bbr"];

struct Dice(Random);

impl Dice {
    fn chance(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.0.below(choices.len() as u64) as usize].clone()
    }

    /// A number up to `most`: in one half of all cases small ones are as likely as large ones.
    fn any(&mut self, most: u64) -> u64 {
        if self.chance(50) {
            return self.0.below(most + 1);
        }
        let bits = self.0.below(65 - u64::from(most.leading_zeros()));
        self.0.below((2 << bits).min(most + 1))
    }

    fn milliseconds(&mut self, most: u64) -> Duration {
        Duration::from_micros(self.any(most * 1000))
    }

    fn link(&mut self) -> LinkModel {
        let mut model = LinkModel { delay: self.milliseconds(150), ..LinkModel::default() };
        let mut parts = |percent, most| if self.chance(percent) { self.any(most) as u32 } else { 0 };
        model.loss_per_million = parts(60, 80_000);
        model.duplicate_per_million = parts(30, 100_000);
        model.reorder_per_million = parts(40, 200_000);
        model.corrupt_per_million = parts(30, 40_000);
        if self.chance(30) {
            model.jitter = self.milliseconds(40);
        }
        if self.chance(40) {
            model.rate_bits_per_second = Some(200_000 + self.any(50_000_000));
            model.queue_frames_max = 4 + self.any(200) as usize;
        }
        model
    }

    fn tcp(&mut self) -> Vec<(&'static str, Value)> {
        let text = |word: &str| Value::Text(word.to_owned());
        let mut options = vec![("congestion", text(self.of(&ALGORITHMS)))];
        for option in ["sack", "timestamps", "window_scaling"] {
            if self.chance(30) {
                options.push((option, Value::Bool(false)));
            }
        }
        options.push(("ecn", text(self.of(&["off", "passive", "on"]))));
        options.push(("syn_cookies", text(self.of(&["overflow", "overflow", "always", "off"]))));
        for option in ["receive_buffer", "send_buffer"] {
            if self.chance(60) {
                options.push((option, Value::Size(2048 + self.any(256 << 10))));
            }
        }
        if self.chance(30) {
            options.push(("initial_window", Value::Integer(1 + self.any(9) as i64)));
        }
        if self.chance(30) {
            options.push(("delayed_ack", Value::Duration(self.milliseconds(490))));
        }
        options
    }

    /// An application that has something to send, and nothing to read yet.
    fn talks(&mut self) -> Talks {
        let total = if self.chance(10) { 0 } else { self.any(150_000) };
        let is_small = self.chance(15);
        Talks {
            total: if is_small { total.min(3000) } else { total },
            push_max: if is_small { 1 + self.any(20) } else { 200 + self.any(20_000) },
            silence: self.chance(20).then(|| self.milliseconds(4000)),
            read_max: usize::MAX,
            read_every: Duration::ZERO,
            pause: None,
            half_closes: true,
            no_delay: self.chance(30),
        }
    }

    /// How it reads what its peer sends. In so many steps and so long that a seed is bounded in events, and nobody gives up
    /// a peer that reads nothing (a quarter of an hour, where the application has gone).
    fn reads(&mut self, talks: &mut Talks, total: u64) {
        if self.chance(30) {
            let steps = 1 + self.any(200);
            talks.read_max = usize::try_from(1 + total / steps).unwrap_or(usize::MAX);
            talks.read_every = self.milliseconds(300);
        }
        if self.chance(20) {
            talks.pause = Some((self.any(total.max(1)), self.milliseconds(150_000)));
        }
    }
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64) -> Plan {
        let mut dice = Dice(Random::seeded(seed ^ 0x7472_616e_7366_6572));
        let is_even = dice.chance(30);
        let one = dice.link();
        let links = if is_even { [one.clone(), one] } else { [one, dice.link()] };
        let mut plan = Plan {
            seed,
            links,
            tcp: [dice.tcp(), dice.tcp()],
            talks: [dice.talks(), dice.talks()],
            happenings: Vec::new(),
            marks_per_million: if dice.chance(30) { dice.any(100_000) as u32 } else { 0 },
            meddles_per_million: if dice.chance(60) { dice.any(200_000) as u32 } else { 0 },
        };
        for host in 0..2 {
            let total = plan.talks[1 - host].total;
            dice.reads(&mut plan.talks[host], total);
        }
        // Where cookies stand in for memory, nobody repeats an answer to a SYN: the client has to say something.
        plan.talks[0].total = plan.talks[0].total.max(1);
        plan.talks[1].half_closes = dice.chance(70);
        let count = if dice.chance(60) { 1 + dice.0.below(3) } else { 0 };
        for _ in 0..count {
            plan.add_happening(&mut dice);
        }
        plan.happenings.sort_by_key(|(at, _)| *at);
        plan
    }

    fn add_happening(&mut self, dice: &mut Dice) {
        let at = dice.milliseconds(5000);
        let back = at + dice.milliseconds(10_000);
        match dice.0.below(5) {
            0 => {
                // Whoever neither hears of it nor looks for it could never get through.
                let tells = dice.chance(50);
                let mtu = 600 + dice.0.below(900) as usize;
                let links = self.links.clone().map(|link| LinkModel { mtu, ..link });
                self.happenings.push((at, Happening::Links(links, tells)));
                if dice.chance(50) {
                    self.happenings.push((back, Happening::Links(self.links.clone(), tells)));
                }
            }
            1 => {
                // A spike of delay: what is sent meanwhile is late, and so is what stands behind it.
                let delay = dice.milliseconds(3000);
                let links = self.links.clone().map(|link| LinkModel { delay: link.delay + delay, ..link });
                let end = at + dice.milliseconds(500);
                self.happenings.push((at, Happening::Links(links, true)));
                self.happenings.push((end, Happening::Links(self.links.clone(), true)));
            }
            2 => {
                self.happenings.push((at, Happening::Dark(true)));
                self.happenings.push((back, Happening::Dark(false)));
            }
            3 => {
                let (host, bytes) = (dice.0.below(2) as usize, 2048 + dice.any(512 << 10) as usize);
                self.happenings.push((at, Happening::Buffer(host, bytes)));
            }
            _ => {
                let host = dice.0.below(2) as usize;
                self.happenings.push((at, Happening::Congestion(host, dice.of(&ALGORITHMS))));
            }
        }
    }

    /// The size of a buffer of a host's TCP, as far as it may grow.
    pub fn buffer(&self, host: usize, option: &str) -> usize {
        let said = self.tcp[host].iter().find(|(name, _)| *name == option);
        let begun = said.map_or(4 << 20, |(_, value)| if let Value::Size(bytes) = value { *bytes as usize } else { 0 });
        let later = self.happenings.iter().map(|(_, happening)| match happening {
            Happening::Buffer(of, bytes) if *of == host && option == "receive_buffer" => *bytes,
            _ => 0,
        });
        later.chain([begun]).max().unwrap_or(begun)
    }

    /// Whether an option of a host's TCP is switched off.
    pub fn lacks(&self, host: usize, option: &str) -> bool {
        self.tcp[host].iter().any(|(name, value)| *name == option && *value == Value::Bool(false))
    }

    /// Whether an option of a host's TCP is this word.
    pub fn has(&self, host: usize, option: &str, word: &str) -> bool {
        let is_word = |value: &Value| matches!(value, Value::Text(text) if text == word);
        self.tcp[host].iter().any(|(name, value)| *name == option && is_word(value))
    }
}
