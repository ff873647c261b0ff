//! Packets as scripts write them: `P. 1:1001(1000) ack 1 win 257 <sack 1:2,nop>`. Numbers count from each side's SYN. A
//! packet that arrives is built from what is written; one that leaves is read and compared with it.

use std::net::Ipv4Addr;
use xylem_wire::{
    Ecn, FastOpenCookie, FragmentOffset, Header, IpProtocol, Ipv4Header, Port, SackBlock, SequenceNumber, Sum,
    TcpFlags, TcpHeader, TcpOptions, Timestamps,
};

/// A packet as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub ecn: Option<Ecn>,
    pub flags: TcpFlags,
    pub begin: u32,
    pub length: u32,
    pub acknowledgment: Option<u32>,
    pub window: Option<u16>,
    /// `None`: whatever there is (`<...>`).
    pub options: Option<Options>,
}

/// Options whose numbers count as the packet's do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    pub fast_open: Option<Vec<u8>>,
}

/// What the two ends of a script's connection are, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub local: (Ipv4Addr, u16),
    pub remote: (Ipv4Addr, u16),
    /// The numbers of the SYNs.
    pub local_first: Option<SequenceNumber>,
    pub remote_first: SequenceNumber,
    /// What our clock showed where the script says zero.
    pub stamp_offset: Option<u32>,
}

impl Packet {
    pub fn read(text: &str) -> Result<Packet, String> {
        let text = text.trim();
        let (ecn, text) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
            Some((word, rest)) => (Some(read_ecn(word)?), rest.trim()),
            None => (None, text),
        };
        let (front, options) = match text.split_once('<') {
            Some((front, options)) => (front, options.trim_end_matches('>')),
            None => (text, ""),
        };
        let mut words = front.split_whitespace();
        let flags = read_flags(words.next().ok_or("a packet without flags")?)?;
        let range = words.next().ok_or("a packet without numbers")?;
        let (begin, length) = range
            .split_once(':')
            .and_then(|(begin, rest)| {
                Some((begin.parse().ok()?, rest.split_once('(')?.1.strip_suffix(')')?.parse().ok()?))
            })
            .ok_or_else(|| format!("expected BEGIN:END(LENGTH), got `{range}`"))?;
        let mut packet =
            Packet { ecn, flags, begin, length, acknowledgment: None, window: None, options: Some(Options::default()) };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("`{word}` without its number"))?;
            let wrong = || format!("`{value}` is no number");
            match word {
                "ack" => packet.acknowledgment = Some(value.parse().map_err(|_| wrong())?),
                "win" => packet.window = Some(value.parse().map_err(|_| wrong())?),
                _ => return Err(format!("what is `{word}` in a packet?")),
            }
        }
        packet.options = if options.trim() == "..." { None } else { Some(read_options(options)?) };
        Ok(packet)
    }

    /// The packet of the peer, as bytes.
    pub fn build(&self, ends: &Ends) -> Vec<u8> {
        let options = self.options.clone().unwrap_or_default().build(ends);
        let length = TcpHeader::LEN + options.length();
        let mut segment = vec![0; length + self.length as usize];
        let first = ends.local_first.unwrap_or(SequenceNumber(0));
        let mut header = TcpHeader {
            source: Port(ends.remote.1),
            destination: Port(ends.local.1),
            sequence: ends.remote_first + self.begin,
            acknowledgment: self.acknowledgment.map_or(SequenceNumber(0), |number| first + number),
            header_words: TcpHeader::words_with(options.length()),
            flags: self.flags,
            window: self.window.unwrap_or(0),
            checksum: 0,
            urgent: 0,
        };
        options.build(&mut segment[TcpHeader::LEN..length]);
        let behind = Sum::of(&segment[TcpHeader::LEN..]);
        let (source, destination) = (ends.remote.0.into(), ends.local.0.into());
        header.checksum = header.checksum_to_send(source, destination, behind, segment.len() as u32);
        header.build(&mut segment);
        let mut network = Ipv4Header {
            header_words: Ipv4Header::WORDS,
            dscp: 0,
            ecn: self.ecn.unwrap_or(Ecn::NotCapable),
            total_length: (Ipv4Header::LEN + segment.len()) as u16,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: FragmentOffset::FIRST,
            time_to_live: 255,
            protocol: IpProtocol::TCP,
            checksum: 0,
            source: ends.remote.0,
            destination: ends.local.0,
        };
        network.checksum = network.checksum_to_send(&[]);
        let mut packet = vec![0; Ipv4Header::LEN];
        network.build(&mut packet);
        packet.extend(segment);
        packet
    }

    /// Reads a packet of the stack, whose ports and first numbers are noted if they were not known.
    pub fn parse(bytes: &[u8], ends: &mut Ends, expected: &Packet) -> Result<Packet, String> {
        let network = Ipv4Header::parse(bytes).map_err(|error| format!("no IPv4 packet: {error:?}"))?;
        let segment = &bytes[network.header_length()..];
        if !Sum::of(&bytes[..network.header_length()]).is_right() {
            return Err("a wrong checksum of IPv4".to_owned());
        }
        let pseudo =
            Sum::pseudo(network.source.into(), network.destination.into(), IpProtocol::TCP, segment.len() as u32);
        if !pseudo.add(Sum::of(segment)).is_right() {
            return Err("a wrong checksum of TCP".to_owned());
        }
        let header = TcpHeader::parse(segment).map_err(|error| format!("no TCP header: {error:?}"))?;
        let options = TcpOptions::parse(header.options(segment)).map_err(|error| format!("options: {error:?}"))?;
        if header.flags.contains(TcpFlags::SYN) {
            ends.local_first.get_or_insert(header.sequence);
            ends.local.1 = header.source.0;
        }
        if let (Some(stamps), Some((said, _)), None) =
            (options.timestamps, expected.options.as_ref().and_then(|options| options.timestamps), ends.stamp_offset)
        {
            ends.stamp_offset = Some(stamps.value.0.wrapping_sub(said));
        }
        let first = ends.local_first.unwrap_or(header.sequence);
        let has_acknowledgment = header.flags.contains(TcpFlags::ACK);
        Ok(Packet {
            ecn: Some(network.ecn),
            flags: header.flags,
            begin: header.sequence.since(first) as u32,
            length: (segment.len() - header.header_length()) as u32,
            acknowledgment: has_acknowledgment.then(|| header.acknowledgment.since(ends.remote_first) as u32),
            window: Some(header.window),
            options: Some(Options::of(&options, ends)),
        })
    }

    /// Takes in the piece that follows this one, as packetdrill joins what a device may have cut.
    pub fn join(&mut self, next: &Packet) {
        self.length += next.length;
        self.flags |= next.flags;
        self.acknowledgment = next.acknowledgment;
        self.window = next.window;
        self.options = next.options.clone();
    }

    /// How it differs from what was expected.
    pub fn differs(&self, expected: &Packet) -> Option<String> {
        let mut differences = Vec::new();
        let mut look = |what: &str, is_same: bool| {
            if !is_same {
                differences.push(what.to_owned());
            }
        };
        look("flags", self.flags == expected.flags);
        look("numbers", (self.begin, self.length) == (expected.begin, expected.length));
        look("ack", self.acknowledgment == expected.acknowledgment);
        look("window", expected.window.is_none() || self.window == expected.window);
        look("ecn", expected.ecn.is_none() || self.ecn == expected.ecn);
        if let (Some(expected), Some(options)) = (&expected.options, &self.options) {
            look("options", options.is_like(expected));
        }
        (!differences.is_empty()).then(|| differences.join(", "))
    }
}

/// How far our clock may be from what is written, in its ticks of a millisecond.
const STAMP_TOLERANCE: u32 = 4;

impl Options {
    fn is_like(&self, expected: &Options) -> bool {
        let stamps = match (self.timestamps, expected.timestamps) {
            (Some((value, echo)), Some((said, echoed))) => value.abs_diff(said) <= STAMP_TOLERANCE && echo == echoed,
            (None, None) => true,
            _ => false,
        };
        let rest = |options: &Options| Options { timestamps: None, ..options.clone() };
        stamps && rest(self) == rest(expected)
    }

    fn of(options: &TcpOptions, ends: &Ends) -> Options {
        let count = |number: SequenceNumber| number.since(ends.remote_first) as u32;
        let offset = ends.stamp_offset.unwrap_or(0);
        Options {
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            timestamps: options.timestamps.map(|it| (it.value.0.wrapping_sub(offset), it.echo.0)),
            sack: options.sack.iter().map(|block| (count(block.left), count(block.right))).collect(),
            fast_open: options.fast_open.map(|cookie| cookie.as_bytes().to_vec()),
        }
    }

    fn build(&self, ends: &Ends) -> TcpOptions {
        let first = ends.local_first.unwrap_or(SequenceNumber(0));
        let offset = ends.stamp_offset.unwrap_or(0);
        let mut options = TcpOptions {
            mss: self.mss,
            window_scale: self.window_scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps.map(|(value, echo)| Timestamps {
                value: SequenceNumber(value),
                echo: SequenceNumber(echo.wrapping_add(offset)),
            }),
            fast_open: self.fast_open.as_deref().and_then(FastOpenCookie::new),
            ..TcpOptions::NONE
        };
        for (left, right) in &self.sack {
            let block = SackBlock { left: first + *left, right: first + *right };
            assert!(options.sack.push(block), "more blocks than an option holds");
        }
        options
    }
}

fn read_ecn(word: &str) -> Result<Ecn, String> {
    match word {
        "noecn" => Ok(Ecn::NotCapable),
        "ect0" => Ok(Ecn::Capable0),
        "ect1" => Ok(Ecn::Capable1),
        "ce" => Ok(Ecn::Experienced),
        _ => Err(format!("`{word}` is no mark")),
    }
}

fn read_flags(word: &str) -> Result<TcpFlags, String> {
    let flag = |letter| match letter {
        'S' => Ok(TcpFlags::SYN),
        'F' => Ok(TcpFlags::FIN),
        'R' => Ok(TcpFlags::RST),
        'P' => Ok(TcpFlags::PSH),
        'U' => Ok(TcpFlags::URG),
        '.' => Ok(TcpFlags::ACK),
        'E' => Ok(TcpFlags::ECE),
        'W' => Ok(TcpFlags::CWR),
        _ => Err(format!("`{letter}` is no flag")),
    };
    word.chars().map(flag).try_fold(TcpFlags::NONE, |all, one| one.map(|one| all | one))
}

fn read_options(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let words: Vec<&str> = option.split_whitespace().collect();
        let wrong = || format!("`{option}` is no option");
        let number = |index: usize| words.get(index).and_then(|word| word.parse::<u32>().ok()).ok_or_else(wrong);
        match words[0] {
            "nop" | "eol" => {}
            "sackOK" => options.sack_permitted = true,
            "mss" => options.mss = Some(number(1)? as u16),
            "wscale" => options.window_scale = Some(number(1)? as u8),
            "TS" => options.timestamps = Some((number(2)?, number(4)?)),
            "FO" => options.fast_open = Some(words.get(1).map_or_else(Vec::new, |word| super::driver::from_hex(word))),
            "sack" => {
                for block in &words[1..] {
                    let ends = block.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                    options.sack.push(ends.ok_or_else(wrong)?);
                }
            }
            _ => return Err(wrong()),
        }
    }
    Ok(options)
}
