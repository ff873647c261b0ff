//! Percentages, times and rates as people write them, read and printed without floating point. A value is a decimal
//! number and a unit; what would need a fraction of the smallest unit is refused instead of rounded. Each printer
//! writes the largest unit it can write exactly, so that reading gives the same value back.

use core::fmt;
use core::str::FromStr;
use xylem_core::time::Duration;

/// Units of time, each with its nanoseconds and the decimals those allow. Longer suffixes come before their tails.
const TIMES: [(&str, u32); 4] = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

/// Units of rate, each with the decimals its bits per second allow.
const RATES: [(&str, u32); 4] = [("Gb/s", 9), ("Mb/s", 6), ("kb/s", 3), ("b/s", 0)];

/// A probability as parts per million, printed as a percentage.
pub(super) struct Parts(pub(super) u32);

/// A span of time, printed in its largest exact unit.
pub(super) struct Span(pub(super) Duration);

/// Bits per second, printed in their largest exact unit.
pub(super) struct Rate(pub(super) u64);

/// Reads `1%`, `0.05%`: parts per million. `None` if it is not a percentage or would need parts of a millionth.
pub(super) fn parts(text: &str) -> Option<u32> {
    // One percent is ten thousand parts per million: four decimals.
    u32::try_from(decimal(text.strip_suffix('%')?, 4)?).ok()
}

/// Reads `20ms`, `1.5s`, `100us`, `7ns`.
pub(super) fn span(text: &str) -> Option<Duration> {
    with_unit(text, &TIMES).map(Duration::from_nanos)
}

/// Reads `100Mb/s`, `2.5Gb/s`, `64kb/s`, `9600b/s`: bits per second.
pub(super) fn rate(text: &str) -> Option<u64> {
    with_unit(text, &RATES)
}

/// Reads a whole number: digits only, no sign.
pub(super) fn whole<T: FromStr>(text: &str) -> Option<T> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn with_unit(text: &str, units: &[(&str, u32)]) -> Option<u64> {
    units.iter().find_map(|&(unit, decimals)| decimal(text.strip_suffix(unit)?, decimals))
}

/// Reads `12.34` as a count of `10^-decimals`: `decimal("12.34", 4)` is 123 400.
fn decimal(text: &str, decimals: u32) -> Option<u64> {
    let (integer, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = if fraction == "0" { "" } else { fraction };
    if integer.is_empty() || text.ends_with('.') || fraction.len() > decimals as usize {
        return None;
    }
    let missing = decimals - fraction.len() as u32;
    let fraction: u64 = if fraction.is_empty() { 0 } else { whole(fraction)? };
    let fraction = fraction.checked_mul(10u64.checked_pow(missing)?)?;
    whole::<u64>(integer)?.checked_mul(10u64.checked_pow(decimals)?)?.checked_add(fraction)
}

/// Prints a count of `10^-decimals` without trailing zeros.
fn print_decimal(formatter: &mut fmt::Formatter<'_>, count: u64, decimals: u32, unit: &str) -> fmt::Result {
    let whole = 10u64.pow(decimals);
    let (integer, fraction) = (count / whole, count % whole);
    if fraction == 0 {
        return write!(formatter, "{integer}{unit}");
    }
    let digits = format!("{fraction:0width$}", width = decimals as usize);
    write!(formatter, "{integer}.{}{unit}", digits.trim_end_matches('0'))
}

/// The unit with the most decimals of which `count` has at least one, else the last resort `10^0`.
fn largest(units: &[(&'static str, u32)], count: u64) -> (&'static str, u32) {
    let fits = |&&(_, decimals): &&(&'static str, u32)| count >= 10u64.pow(decimals);
    let smallest = units.iter().find(|(_, decimals)| *decimals == 0);
    let best = units.iter().filter(fits).max_by_key(|(_, decimals)| *decimals);
    *best.or(smallest).expect("both tables have a unit without decimals")
}

impl fmt::Display for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_decimal(formatter, u64::from(self.0), 4, "%")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Beyond 584 years a span prints as 584 years; no link may be that long.
        let nanoseconds = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
        let (unit, decimals) = largest(&TIMES, nanoseconds);
        print_decimal(formatter, nanoseconds, decimals, unit)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, decimals) = largest(&RATES, self.0);
        print_decimal(formatter, self.0, decimals, unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_exactly_or_not_at_all() {
        assert_eq!(parts("0.0001%"), Some(1));
        assert_eq!(parts("33.3333%"), Some(333_333));
        assert_eq!(parts("1.0%"), Some(10_000));
        assert_eq!(span("1.000000001s"), Some(Duration::from_nanos(1_000_000_001)));
        assert_eq!(span("0.5ns"), None);
        assert_eq!(span("0ns"), Some(Duration::ZERO));
        assert_eq!(rate("2.5Gb/s"), Some(2_500_000_000));
        assert_eq!(rate("9600b/s"), Some(9600));
        for text in ["", "%", ".5%", "1.%", "+1%", "1e3%", "1..2%", "1.-2%", "0x1%", "1 %", "%1"] {
            assert_eq!(parts(text), None, "`{text}`");
        }
        assert_eq!(whole::<u8>("256"), None);
        assert_eq!(whole::<u64>(""), None);
    }

    #[test]
    fn values_are_printed_in_their_largest_unit() {
        assert_eq!(Span(Duration::from_micros(1500)).to_string(), "1.5ms");
        assert_eq!(Span(Duration::from_nanos(7)).to_string(), "7ns");
        assert_eq!(Span(Duration::ZERO).to_string(), "0ns");
        assert_eq!(Rate(100_000_000).to_string(), "100Mb/s");
        assert_eq!(Rate(0).to_string(), "0b/s");
        assert_eq!(Parts(1).to_string(), "0.0001%");
        assert_eq!(Parts(10_000).to_string(), "1%");
    }
}
