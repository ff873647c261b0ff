//! From words to a segment: flags, numbers, fields in any order, options.

use super::print::{ECN_WORDS, FLAGS};
use super::segment::{Extent, Flaw, OptionWish, Place, Segment, Stamp};
use super::words::{Word, Words, hexadecimal, signed, whole};
use xylem_graph::file::{Position, Problem};
use xylem_wire::{TcpFlags, TcpHeader};

const FIELD: &str =
    "`ack`, `win`, `urg`, `in`, `ttl`, `dscp`, `ect0`, `ect1`, `ce`, `not_ect`, a flaw, or options between `<` and `>`";
const PLACE: &str = "a number counted from the SYN, `raw NUMBER`, or `*`";
const OPTION: &str = "`mss`, `wscale`, `sackok`, `ts`, `sack`, `cookie`, `nop`, `end`, `raw` or `...`";
/// The most payload of a line in bytes: more than any window a script has use for.
const PAYLOAD_MAX: i64 = 1 << 20;

/// Reads a segment and, behind `in`, of how many pieces it is: `Some(None)` stands for any number.
pub(super) fn segment(words: &mut Words<'_>) -> Result<(Segment, Option<Option<u32>>), Problem> {
    let flags = words.read("flags such as S, S. or P.", flags)?;
    let mut segment = Segment { flags, ..Segment::default() };
    numbers(words, &mut segment)?;
    let pieces = fields(words, &mut segment)?;
    if segment.flags.contains(TcpFlags::ACK) != segment.acknowledgment.is_some() {
        let at =
            words.peek().map_or_else(|| words.clone().need("").err().map(|it| it.position), |it| Some(it.position));
        let (what, mend) = match segment.acknowledgment {
            Some(_) => ("it has `ack` and no `.` among its flags", "add the flag or take `ack` out"),
            None => ("it has the flag `.` and no `ack`", "add `ack NUMBER`"),
        };
        return Err(Problem::new(at.unwrap_or_default(), what, "both or none", mend));
    }
    Ok((segment, pieces))
}

/// Reads the fields behind flags and numbers.
pub(super) fn fields(words: &mut Words<'_>, segment: &mut Segment) -> Result<Option<Option<u32>>, Problem> {
    let mut pieces = None;
    while let Some(word) = words.take() {
        match word.text {
            "ack" => segment.acknowledgment = Some(place(words)?),
            "win" => segment.window = Some(words.read("a window such as 1000, or 500..1000", extent)?),
            "urg" => segment.urgent = Some(words.read("an urgent pointer of 16 bits", whole)?),
            "ttl" => segment.hop_limit = Some(words.read("a time to live of 8 bits", whole)?),
            "dscp" => segment.dscp = Some(words.read("a code point below 64", |it| whole(it).filter(|it| *it < 64))?),
            "in" => pieces = Some(words.read("a number of segments, or `any`", count)?),
            "bad_checksum" => segment.flaws.push(Flaw::Checksum),
            "other_content" => segment.flaws.push(Flaw::OtherContent),
            "reserved" => {
                let bits = words.read("four bits", |it| whole(it).filter(|it| *it < 16))?;
                segment.flaws.push(Flaw::Reserved(bits));
            }
            "header_words" => {
                let bits = words.read("a length below 16", |it| whole(it).filter(|it| *it < 16))?;
                segment.flaws.push(Flaw::HeaderWords(bits));
            }
            "cut_to" => segment.flaws.push(Flaw::CutTo(words.read("so many bytes", whole)?)),
            "from" => segment.flaws.push(Flaw::From(words.read("an IPv4 address", |it| it.parse().ok())?)),
            "to" => segment.flaws.push(Flaw::To(words.read("an IPv4 address", |it| it.parse().ok())?)),
            text if text.starts_with('<') => options(word, segment)?,
            text => match ECN_WORDS.iter().find(|(_, known)| *known == text) {
                Some((ecn, _)) => segment.ecn = Some(*ecn),
                None => return Err(word.wrong(FIELD)),
            },
        }
    }
    Ok(pieces)
}

fn flags(text: &str) -> Option<TcpFlags> {
    if text == "-" {
        return Some(TcpFlags::NONE);
    }
    let flag = |letter| FLAGS.iter().find(|(known, _)| *known == letter).map(|(_, flag)| *flag);
    text.chars().try_fold(TcpFlags::NONE, |all, letter| Some(all | flag(letter)?))
}

/// The number of the first byte and, behind `..`, the one behind the last.
fn numbers(words: &mut Words<'_>, segment: &mut Segment) -> Result<(), Problem> {
    let word = words.peek();
    let range = word.and_then(|word| word.text.split_once(".."));
    let (Some(word), Some((first, behind))) = (word, range) else {
        segment.sequence = place(words)?;
        if words.take_if("bytes") {
            let bytes = |text: &str| whole::<u32>(text).filter(|bytes| i64::from(*bytes) <= PAYLOAD_MAX);
            segment.payload = words.read("a number of payload bytes", bytes)?;
        }
        return Ok(());
    };
    words.take();
    let (Some(first), Some(behind)) = (signed(first), signed(behind)) else { return Err(word.wrong(PLACE)) };
    if !(1..=PAYLOAD_MAX).contains(&(behind - first)) {
        return Err(word.wrong("a first byte and one behind the last, at least one and at most 1 MiB"));
    }
    (segment.sequence, segment.payload) = (Place::Counted(first), (behind - first) as u32);
    Ok(())
}

/// A sequence number.
pub(super) fn place(words: &mut Words<'_>) -> Result<Place, Problem> {
    if words.take_if("raw") {
        return words.read("a number of 32 bits", whole).map(Place::Raw);
    }
    words.read(PLACE, |text| if text == "*" { Some(Place::Any) } else { signed(text).map(Place::Counted) })
}

/// From and to, or only one.
pub(super) fn extent(text: &str) -> Option<Extent> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let extent = Extent { least: whole(least)?, most: whole(most)? };
    (extent.least <= extent.most).then_some(extent)
}

fn count(text: &str) -> Option<Option<u32>> {
    if text == "any" { Some(None) } else { whole(text).filter(|count| (1..=1000).contains(count)).map(Some) }
}

fn options(word: Word<'_>, segment: &mut Segment) -> Result<(), Problem> {
    let inside = word.text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let Some(inside) = inside else { return Err(word.wrong("a `>` behind the options")) };
    let mut wishes = Vec::new();
    let mut column = word.position.column + 1;
    for text in inside.split(',') {
        let mut words = Words::of(text, word.position.line, column);
        column += text.chars().count() as u32 + 1;
        if words.peek().is_none() && inside.trim().is_empty() {
            break;
        }
        if words.take_if("...") {
            segment.others = true;
        } else {
            wishes.push(option(&mut words)?);
        }
        words.finish()?;
    }
    let length: usize = wishes.iter().map(OptionWish::length_least).sum();
    if length > TcpHeader::OPTIONS_MAX {
        let what = format!("the options take {length} bytes or more");
        let position = Position { ..word.position };
        return Err(Problem::new(position, what, format!("at most {}", TcpHeader::OPTIONS_MAX), "take one out"));
    }
    segment.options = Some(wishes);
    Ok(())
}

fn option(words: &mut Words<'_>) -> Result<OptionWish, Problem> {
    let word = words.need(OPTION)?;
    Ok(match word.text {
        "mss" => OptionWish::SegmentSize(words.read("16 bits or `*`", any(whole))?),
        "wscale" => OptionWish::WindowScale(words.read("a shift or `*`", any(whole))?),
        "sackok" => OptionWish::SackPermitted,
        "nop" => OptionWish::NoOperation,
        "end" => OptionWish::End,
        "raw" => OptionWish::Raw(words.read("bytes as hexadecimal digits", hexadecimal)?),
        "cookie" => match words.take() {
            None => OptionWish::Cookie(Some(Vec::new())),
            Some(bytes) if bytes.text == "*" => OptionWish::Cookie(None),
            Some(bytes) => {
                let read = hexadecimal(bytes.text).filter(|read| !read.is_empty());
                OptionWish::Cookie(Some(read.ok_or_else(|| bytes.wrong("bytes as hexadecimal digits, or `*`"))?))
            }
        },
        "ts" => {
            let value = stamp(words)?;
            let echo = if words.take_if("ecr") { stamp(words)? } else { Stamp::Any };
            OptionWish::Timestamps(value, echo)
        }
        "sack" => {
            let mut runs = Vec::new();
            while words.peek().is_some() {
                let run = |text: &str| {
                    let (left, right) = text.split_once("..")?;
                    Some((signed(left)?, signed(right)?))
                };
                runs.push(words.read("a run such as 1001..2001", run)?);
            }
            OptionWish::Sack(runs)
        }
        _ => return Err(word.wrong(OPTION)),
    })
}

fn any<T>(read: impl Fn(&str) -> Option<T>) -> impl Fn(&str) -> Option<Option<T>> {
    move |text| if text == "*" { Some(None) } else { read(text).map(Some) }
}

fn stamp(words: &mut Words<'_>) -> Result<Stamp, Problem> {
    words.read("a clock's value or `*`", |text| match text {
        "*" => Some(Stamp::Any),
        text => signed(text).map(Stamp::Counted),
    })
}
