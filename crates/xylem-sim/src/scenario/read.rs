//! From the lines of a file to a [`Scenario`]: what each word means, and whether the names that lines mention are there.
//! All that is wrong is said at once, each with its place.

use super::fields::{Fields, SPAN, graph_value, span, whole};
use super::line::{Entry, Line, lines};
use super::{
    CONVERSATIONS_MAX, CableWish, Check, Echoed, Ending, Extent, GraphName, HOSTS_MAX, HostWish, Kind, Override,
    PlugWish, Pull, Scenario, TrafficWish,
};
use std::time::Duration;
use xylem_graph::file::{Located, Position, Problem};
use xylem_graph::link::{LinkModel, LinkModelError};

/// Most bytes of a transfer in one direction: 1 TiB takes long enough to simulate.
const TRANSFER_MAX: u64 = 1 << 40;
/// Most bytes of a datagram: what UDP over IPv4 takes.
const DATAGRAM_MAX: u64 = 65_507;
/// How long a scenario lasts if it does not say.
const TIME: Duration = Duration::from_secs(60);
/// How long all has been closed when `check quiet` looks: TIME-WAIT lasts one minute at the usual segment lifetime, an
/// orphan waits as long, and a neighbour or a fragment is forgotten sooner.
const QUIET: Duration = Duration::from_secs(180);

/// What can stand behind the `=` of a line with a name.
const THINGS: &str =
    "`host`, `link`, `transfer`, `datagrams` or `ping` behind the `=`, or `seed`, `time` or `golden` before it";

/// Reads a scenario.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn parse(text: &str) -> Result<Scenario, Vec<Problem>> {
    let (lines, problems) = lines(text);
    let mut reader = Reader { scenario: Scenario::empty(), problems };
    // Hosts, then cables, then the rest: a line may mention what stands further down.
    for pass in [Pass::Hosts, Pass::Cables, Pass::Rest] {
        for line in lines.iter().filter(|line| Pass::of(line) == pass) {
            reader.line(line);
        }
    }
    reader.whole();
    if reader.problems.is_empty() {
        return Ok(reader.scenario);
    }
    reader.problems.sort();
    reader.problems.dedup();
    Err(reader.problems)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Hosts,
    Cables,
    Rest,
}

impl Pass {
    fn of(line: &Line) -> Pass {
        match (&line.name, line.words[0].as_str()) {
            (Some(_), "host") => Pass::Hosts,
            (Some(_), "link") => Pass::Cables,
            _ => Pass::Rest,
        }
    }
}

impl Scenario {
    fn empty() -> Scenario {
        Scenario {
            seed: 1,
            time: TIME,
            golden: None,
            hosts: Vec::new(),
            cables: Vec::new(),
            traffic: Vec::new(),
            pulls: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| **host.name == *name)
    }
}

struct Reader {
    scenario: Scenario,
    problems: Vec<Problem>,
}

impl Reader {
    fn wrong(&mut self, position: Position, what: impl Into<String>, expected: impl Into<String>, mend: &str) {
        self.problems.push(Problem::new(position, what, expected, mend));
    }

    fn line(&mut self, line: &Line) {
        let word = &line.words[0];
        match (&line.name, word.as_str()) {
            (Some(name), _) if matches!(name.as_str(), "seed" | "time" | "golden") => self.setting(name, line),
            (Some(name), "host") => self.host(name, line),
            (Some(name), "link") => self.cable(name, line),
            (Some(name), "transfer" | "datagrams" | "ping") => self.traffic(name, line),
            (None, "pull") => self.pull(line),
            (None, "check") => self.check(line),
            (Some(_), other) => self.wrong(word.position, format!("`{other}` is nothing known"), THINGS, "correct it"),
            (None, other) => {
                let expected = "`pull`, `check`, or a name and `=` before it";
                self.wrong(word.position, format!("`{other}` is nothing known"), expected, "correct it");
            }
        }
    }

    fn setting(&mut self, name: &Located<String>, line: &Line) {
        if let Some(entry) = line.options.first() {
            self.wrong(entry.name.position, format!("`{}` has options", **name), "a value only", "take them out");
        }
        let [value] = line.words.as_slice() else {
            let position = line.words[1].position;
            return self.wrong(
                position,
                format!("`{}` has several values", **name),
                "one value",
                "take the others out",
            );
        };
        let understood = match name.as_str() {
            "seed" => whole(value).map(|seed| self.scenario.seed = seed).is_some(),
            "time" => span(value).map(|time| self.scenario.time = time).is_some(),
            _ => {
                let right = value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
                self.scenario.golden = Some(value.clone());
                right
            }
        };
        let expected = match name.as_str() {
            "seed" => "a whole number below 2^64",
            "time" => SPAN,
            _ => "sixteen hexadecimal digits",
        };
        if !understood {
            self.wrong(value.position, format!("`{}` is `{}`", **name, **value), expected, "correct it");
        }
    }

    /// Whether nothing else has this name yet; says so if something has.
    fn is_new(&mut self, name: &Located<String>) -> bool {
        let scenario = &self.scenario;
        let hosts = scenario.hosts.iter().map(|host| &host.name);
        let cables = scenario.cables.iter().map(|cable| &cable.name);
        let before = hosts.chain(cables).chain(scenario.traffic.iter().map(|traffic| &traffic.name));
        let Some(before) = before.into_iter().find(|before| *before == name).map(|before| before.position) else {
            return true;
        };
        let what = format!("`{}` is there already, from line {}", **name, before.line);
        self.wrong(name.position, what, "a new name", "choose another name");
        false
    }

    fn host(&mut self, name: &Located<String>, line: &Line) {
        if !self.is_new(name) {
            return;
        }
        if let Some(word) = line.words.get(1) {
            self.wrong(word.position, format!("`{}` follows `host`", **word), "options only", "take it out");
        }
        if self.scenario.hosts.len() == HOSTS_MAX {
            return self.wrong(name.position, "one host too many", format!("at most {HOSTS_MAX}"), "take one out");
        }
        let mut fields = Fields::new(line, &mut self.problems);
        let graph = match fields.written("graph") {
            None => Located::at(line.words[0].position, GraphName::Builtin("host".to_owned())),
            Some(file) if file.quoted => Located::at(file.position, GraphName::File(file.text.clone())),
            Some(name) => Located::at(name.position, GraphName::Builtin(name.text.clone())),
        };
        let others = line.options.iter().filter(|entry| *entry.name.value != *"graph");
        let overrides = others.filter_map(|entry| override_of(entry, &mut self.problems)).collect();
        self.scenario.hosts.push(HostWish { name: name.clone(), graph, overrides });
    }

    fn cable(&mut self, name: &Located<String>, line: &Line) {
        if !self.is_new(name) {
            return;
        }
        let Some([one, other]) = self.two(line, "--") else { return };
        let (Some(one), Some(other)) = (self.plug(&one), self.plug(&other)) else { return };
        if let Some(model) = self.model(line) {
            self.scenario.cables.push(CableWish { name: name.clone(), ends: [one, other], model });
        }
    }

    /// The options of a cable are the words of the link model.
    fn model(&mut self, line: &Line) -> Option<LinkModel> {
        let mut items: Vec<String> = Vec::new();
        for entry in &line.options {
            let item = format!("{}={}", *entry.name, entry.value.text);
            if let Err(error) = item.parse::<LinkModel>() {
                self.wrong(
                    entry.value.position,
                    format!("`{}` is `{}`", *entry.name, error.got),
                    error.expected,
                    "correct it",
                );
                continue;
            }
            items.push(item);
        }
        match items.join(" ").parse() {
            Ok(model) => Some(model),
            // Each was right by itself: together they say something twice.
            Err::<_, LinkModelError>(error) => {
                self.wrong(line.words[0].position, format!("`link` says {}", error.got), error.expected, "correct it");
                None
            }
        }
    }

    fn plug(&mut self, word: &Located<String>) -> Option<Located<PlugWish>> {
        let (host, node) = match word.split_once(':') {
            Some((host, node)) => (host, Some(node.to_owned())),
            None => (word.as_str(), None),
        };
        let host = self.known_host(&Located::at(word.position, host.to_owned()))?;
        Some(Located::at(word.position, PlugWish { host, node }))
    }

    fn known_host(&mut self, name: &Located<String>) -> Option<usize> {
        let found = self.scenario.host(name);
        if found.is_none() {
            let names: Vec<&str> = self.scenario.hosts.iter().map(|host| host.name.as_str()).collect();
            let expected = if names.is_empty() { "a host; there are none".to_owned() } else { names.join(", ") };
            self.wrong(
                name.position,
                format!("no host is called `{}`", **name),
                expected,
                "add the host or correct the name",
            );
        }
        found
    }

    /// The words `A between B` behind the first.
    fn two(&mut self, line: &Line, between: &str) -> Option<[Located<String>; 2]> {
        match &line.words[1..] {
            [one, middle, other] if **middle == *between => Some([one.clone(), other.clone()]),
            _ => {
                let word = &line.words[0];
                let expected = format!("`{} HOST {between} HOST`", **word);
                self.wrong(word.position, format!("`{}` joins no two hosts", **word), expected, "write both");
                None
            }
        }
    }

    fn traffic(&mut self, name: &Located<String>, line: &Line) {
        if !self.is_new(name) {
            return;
        }
        let Some([client, server]) = self.two(line, "->") else { return };
        let (Some(client), Some(server)) = (self.known_host(&client), self.known_host(&server)) else { return };
        let mut fields = Fields::new(line, &mut self.problems);
        let word = &line.words[0];
        let (count, every, usual) = match word.as_str() {
            "transfer" => (1, Duration::ZERO, "tcp"),
            "datagrams" => (10, Duration::from_millis(10), "udp"),
            _ => (3, Duration::from_secs(1), "icmp"),
        };
        let protocol = fields.text("protocol").unwrap_or(Located::at(word.position, usual.to_owned()));
        let mut wish = TrafficWish {
            name: name.clone(),
            kind: Kind::Transfer { there: Extent::of(0), back: Extent::of(0), ending: Ending::Right },
            client,
            server,
            protocol,
            address: fields.address("address"),
            port: 7000,
            start: fields.span("start").unwrap_or_default(),
            every: fields.span("every").unwrap_or(every),
            count: fields.number("count", 1, CONVERSATIONS_MAX).unwrap_or(count),
        };
        if word.as_str() != "ping" {
            wish.port = fields.number("port", 1, 65_535).map_or(wish.port, |port| port as u16);
        }
        wish.kind = match word.as_str() {
            "transfer" => transfer(&mut fields),
            "datagrams" => Kind::Datagrams(echoed(&mut fields, 512)),
            _ => Kind::Ping(echoed(&mut fields, 56)),
        };
        if matches!(wish.kind, Kind::Transfer { .. }) && u64::from(wish.port) + wish.count > 65_536 {
            let what = format!("{} connections begin at port {}", wish.count, wish.port);
            fields.wrong(name.position, what, "ports up to 65535", "begin at a lower port");
        }
        if client == server {
            let what = "a host converses with itself".to_owned();
            fields.wrong(word.position, what, "two hosts", "name another one");
        }
        fields.finish();
        self.scenario.traffic.push(wish);
    }

    fn pull(&mut self, line: &Line) {
        let names: Vec<&str> = self.scenario.cables.iter().map(|cable| cable.name.as_str()).collect();
        let found = match &line.words[1..] {
            [name] => names.iter().position(|known| *known == name.as_str()),
            _ => None,
        };
        let Some(cable) = found else {
            let position = line.words.last().expect("a line has a word").position;
            let expected = format!("`pull CABLE` with one of: {}", names.join(", "));
            return self.wrong(position, "no cable is named", expected, "name one");
        };
        let mut fields = Fields::new(line, &mut self.problems);
        let at = fields.span("at").unwrap_or_default();
        let back = fields.span("back");
        if back.is_some_and(|back| back <= at) {
            let position = line.words[0].position;
            fields.wrong(
                position,
                "the cable is put back before it is pulled".into(),
                "`back` after `at`",
                "correct it",
            );
        }
        fields.finish();
        self.scenario.pulls.push(Pull { cable, at, back });
    }

    fn check(&mut self, line: &Line) {
        let first = line.words[0].position;
        let words: Vec<&str> = line.words[1..].iter().map(|word| word.as_str()).collect();
        match words.as_slice() {
            ["delivered"] => {
                Fields::new(line, &mut self.problems).finish();
                self.add(first, Check::Delivered);
            }
            ["within", limit] => {
                Fields::new(line, &mut self.problems).finish();
                match span(limit) {
                    Some(limit) => self.add(first, Check::Within(limit)),
                    None => self.wrong(line.words[2].position, format!("`{limit}` is no time"), SPAN, "correct it"),
                }
            }
            ["quiet"] => {
                let mut fields = Fields::new(line, &mut self.problems);
                let after = fields.span("after").unwrap_or(QUIET);
                fields.finish();
                self.add(first, Check::Quiet(after));
            }
            [what @ ("drops" | "dropped" | "paths")] => self.host_checks(what, line),
            _ => {
                let expected = "`delivered`, `within SPAN`, `quiet`, `drops`, `dropped` or `paths`";
                self.wrong(first, "nothing known is checked", expected, "correct it");
            }
        }
    }

    fn add(&mut self, position: Position, check: Check) {
        self.scenario.checks.push(Located::at(position, check));
    }

    /// Checks with a host for every option.
    fn host_checks(&mut self, what: &str, line: &Line) {
        if line.options.is_empty() {
            let expected = format!("`check {what} {{ HOST = … }}`");
            self.wrong(line.words[0].position, format!("`{what}` of no host"), expected, "name a host");
        }
        for entry in &line.options {
            let Some(host) = self.known_host(&entry.name) else { continue };
            let text = entry.value.text.as_str();
            let check = match what {
                "drops" => whole(text).map(|most| Check::Drops(host, most)),
                "paths" => whole(text).map(|count| Check::Paths(host, count)),
                _ => text.split_once(": ").map(|(protocol, why)| Check::Dropped(host, protocol.into(), why.into())),
            };
            match check {
                Some(check) => self.add(entry.name.position, check),
                None => {
                    let expected = if what == "dropped" { "\"PROTOCOL: WHY\"" } else { "a whole number" };
                    self.wrong(entry.value.position, format!("`{}` is `{text}`", *entry.name), expected, "correct it");
                }
            }
        }
    }

    /// What is wrong with the scenario as a whole.
    fn whole(&mut self) {
        let first = Position { line: 1, column: 1 };
        if self.scenario.hosts.is_empty() && self.problems.is_empty() {
            self.wrong(first, "there are no hosts", "a line such as `client = host`", "add one");
        }
        if self.scenario.checks.is_empty() && self.problems.is_empty() {
            self.wrong(first, "nothing is checked", "a line such as `check delivered`", "add one");
        }
    }
}

fn transfer(fields: &mut Fields<'_>) -> Kind {
    let endings = [("right", Ending::Right), ("any", Ending::Any), ("fails", Ending::Fails)];
    Kind::Transfer {
        there: fields.extent("there", TRANSFER_MAX, 64 << 10),
        back: fields.extent("back", TRANSFER_MAX, 0),
        ending: fields.choice("outcome", &endings, Ending::Right),
    }
}

fn echoed(fields: &mut Fields<'_>, size: u64) -> Echoed {
    Echoed {
        size: fields.extent("size", DATAGRAM_MAX, size),
        patience: fields.span("patience").unwrap_or(Duration::from_secs(5)),
        returned: fields.number("returned", 0, CONVERSATIONS_MAX),
    }
}

/// An option of a host that names an option of one of its nodes.
fn override_of(entry: &Entry, problems: &mut Vec<Problem>) -> Option<Override> {
    let Some((node, option)) = entry.name.split_once('.') else {
        let what = format!("`{}` is no option of a host", *entry.name);
        let expected = "`graph`, or `node.option` for an option of its graph";
        problems.push(Problem::new(entry.name.position, what, expected, "take it out or correct it"));
        return None;
    };
    Some(Override {
        node: Located::at(entry.name.position, node.to_owned()),
        option: option.to_owned(),
        value: Located::at(entry.value.position, graph_value(&entry.value)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 7\ntime = 2min\na = host { ip.ttl = 3, graph = \"x.graph\" }\nb = host\n\
        c = link a:left -- b { loss = 1%, mtu = 576 }\nt = transfer a -> b { there = 1B..2KiB, outcome = any }\n\
        pull c { at = 1s, back = 2s }\ncheck within 3s\ncheck drops { a = 1, b = 2 }\ngolden = 0123456789abcdef\n";

    #[test]
    fn every_line_is_read() {
        let scenario = parse(TEXT).expect("the scenario is right");
        assert_eq!((scenario.seed, scenario.time), (7, Duration::from_secs(120)));
        assert_eq!(*scenario.hosts[0].graph, GraphName::File("x.graph".into()));
        assert_eq!(scenario.hosts[0].overrides[0].option, "ttl");
        assert_eq!(scenario.cables[0].ends[0].node.as_deref(), Some("left"));
        assert_eq!((scenario.cables[0].model.loss_per_million, scenario.cables[0].model.mtu), (10_000, 576));
        let Kind::Transfer { there, ending, .. } = scenario.traffic[0].kind else { panic!("it is a transfer") };
        assert_eq!((there, ending), (Extent { least: 1, most: 2048 }, Ending::Any));
        assert_eq!(scenario.pulls[0].back, Some(Duration::from_secs(2)));
        assert_eq!(scenario.checks.len(), 3);
        assert_eq!(scenario.golden.map(|golden| golden.position.line), Some(10));
    }

    #[test]
    fn a_spoilt_scenario_is_another_one_or_has_problems_with_places() {
        let mut random = xylem_core::Random::seeded(11);
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..5000 {
            let mut bytes = TEXT.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = b" ={},\"#\n.-a9"[random.below(12) as usize],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[random.below(bytes.len() as u64) as usize]),
                }
            }
            match parse(std::str::from_utf8(&bytes).expect("it is still ASCII")) {
                Ok(_) => right += 1,
                Err(problems) => {
                    wrong += 1;
                    assert!(!problems.is_empty() && problems.iter().all(|problem| problem.position.line > 0));
                }
            }
        }
        assert!(right > 0 && wrong > right, "{right} right, {wrong} wrong");
    }
}
