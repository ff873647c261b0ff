//! TCP's options as one value. Each option's layout is a header declaration of its own; the walk takes them in any
//! order at any byte, passes over what it does not know, and refuses lengths that cannot be.
//!
//! Nearly every segment of a running connection carries timestamps and nothing else, always laid out in the same twelve
//! bytes (RFC 7323, appendix A). That layout is a declaration too, tried first on the way in and on the way out.

use crate::{FastOpenCookie, Header, Malformed, SackBlock, SackBlocks, SequenceNumber, TcpHeader, header};

/// What the options of one segment say (RFC 9293, section 3.2). An option that came twice counts as it came last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpOptions {
    /// Most payload bytes the sender wants in a segment; only with SYN (RFC 9293, section 3.7.1).
    pub mss: Option<u16>,
    /// How far windows are shifted, at most [`TcpOptions::WINDOW_SCALE_MAX`]; only with SYN (RFC 7323, section 2).
    pub window_scale: Option<u8>,
    /// The sender understands selective acknowledgments; only with SYN (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323, section 3).
    pub timestamps: Option<Timestamps>,
    /// What arrived out of order (RFC 2018, section 3).
    pub sack: SackBlocks,
    /// A cookie, or with no bytes the request for one; only with SYN (RFC 7413, section 4.1.1).
    pub fast_open: Option<FastOpenCookie>,
}

/// A clock value of the sender and the last one it had from us (RFC 7323, section 3.2). Both go round like sequence
/// numbers and are compared like them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: SequenceNumber,
    /// Our clock, as the sender last saw it; means something only with ACK.
    pub echo: SequenceNumber,
}

impl TcpOptions {
    /// No options.
    pub const NONE: TcpOptions = TcpOptions {
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::NONE,
        fast_open: None,
    };
    /// Most that a window is shifted; a peer that asks for more gets this (RFC 7323 2.3-2).
    pub const WINDOW_SCALE_MAX: u8 = 14;

    /// Reads the options between the fixed part and the payload (RFC 9293 MUST-4).
    ///
    /// Unknown options are passed over by their length (RFC 9293 MUST-6), and so are known ones with a length that is
    /// not theirs. Options begin at any byte (MUST-64); what follows the end of the list is padding (MUST-69).
    ///
    /// # Errors
    /// [`Malformed::Length`] or [`Malformed::Short`] if a length is below two or beyond the bytes (MUST-7).
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<TcpOptions, Malformed> {
        if bytes.len() == AlignedTimestamps::LEN
            && let Ok(AlignedTimestamps { value, echo }) = AlignedTimestamps::parse(bytes)
        {
            return Ok(TcpOptions { timestamps: Some(Timestamps { value, echo }), ..TcpOptions::NONE });
        }
        TcpOptions::walk(bytes)
    }

    /// Writes the options at the front of `bytes`, padded to whole words, and says how many bytes they take: the same
    /// as [`TcpOptions::length`].
    ///
    /// # Panics
    /// If they take more than `bytes` or than [`TcpHeader::OPTIONS_MAX`], or the window scale is beyond
    /// [`TcpOptions::WINDOW_SCALE_MAX`]: all are our bugs.
    #[inline]
    pub fn build(&self, bytes: &mut [u8]) -> usize {
        match self.timestamps {
            Some(Timestamps { value, echo }) if self.has_nothing_but_timestamps() => {
                AlignedTimestamps { value, echo }.build(bytes);
                AlignedTimestamps::LEN
            }
            _ => self.lay_out(bytes),
        }
    }

    /// Bytes the options take, padding included: always whole words.
    pub fn length(&self) -> usize {
        self.length_without_sack() + sack_length(&self.sack)
    }

    /// How many selective acknowledgments have room beside the other options.
    pub fn sack_blocks_max(&self) -> usize {
        let room = TcpHeader::OPTIONS_MAX.saturating_sub(self.length_without_sack() + WORD);
        (room / SackBlock::LEN).min(SackBlocks::MAX)
    }

    /// Random options that fit a segment, for tests; `next` gives random bits.
    pub fn generate(next: &mut dyn FnMut() -> u64) -> TcpOptions {
        let choices = next();
        let chosen = |bit: u32| choices >> bit & 1 == 1;
        let mut options = TcpOptions {
            mss: chosen(0).then(|| next() as u16),
            window_scale: chosen(1).then(|| (next() % (u64::from(TcpOptions::WINDOW_SCALE_MAX) + 1)) as u8),
            sack_permitted: chosen(2),
            timestamps: chosen(3)
                .then(|| Timestamps { value: SequenceNumber(next() as u32), echo: SequenceNumber(next() as u32) }),
            // Beside a long cookie there is no room for blocks, so a segment has one or the other.
            fast_open: (chosen(4) && chosen(5)).then(|| FastOpenCookie::generate(next)),
            sack: SackBlocks::NONE,
        };
        if chosen(6) {
            for _ in 0..next() % (options.sack_blocks_max() as u64 + 1) {
                options.sack.push(SackBlock::generate(next));
            }
        }
        options
    }

    #[inline]
    fn has_nothing_but_timestamps(&self) -> bool {
        self.sack.is_empty()
            && !self.sack_permitted
            && self.mss.is_none()
            && self.window_scale.is_none()
            && self.fast_open.is_none()
    }

    fn length_without_sack(&self) -> usize {
        let mss = if self.mss.is_some() { MssOption::LEN } else { 0 };
        let timestamps = match (self.timestamps, self.sack_permitted) {
            (Some(_), _) => AlignedTimestamps::LEN,
            (None, true) => WORD,
            (None, false) => 0,
        };
        let window_scale = if self.window_scale.is_some() { WORD } else { 0 };
        let fast_open = self.fast_open.map_or(0, |cookie| (OptionHeader::LEN + cookie.len()).next_multiple_of(WORD));
        mss + timestamps + window_scale + fast_open
    }

    /// Takes one option after the other.
    fn walk(bytes: &[u8]) -> Result<TcpOptions, Malformed> {
        let mut options = TcpOptions::NONE;
        let mut rest = bytes;
        loop {
            match rest {
                [] | [kind::END, ..] => return Ok(options),
                [kind::NO_OPERATION, behind @ ..] => rest = behind,
                _ => {
                    // Parse holds the option's length against the bytes that are left.
                    let option = OptionHeader::parse(rest)?;
                    let (whole, behind) = rest.split_at(option.header_length());
                    options.take(option.kind, whole);
                    rest = behind;
                }
            }
        }
    }

    /// Takes one whole option. Its declaration refuses a length that is not its own, and then nothing is taken.
    fn take(&mut self, kind: u8, whole: &[u8]) {
        match kind {
            kind::MSS => {
                if let Ok(MssOption { mss }) = MssOption::parse(whole) {
                    self.mss = Some(mss);
                }
            }
            kind::WINDOW_SCALE => {
                if let Ok(WindowScaleOption { shift }) = WindowScaleOption::parse(whole) {
                    self.window_scale = Some(shift.min(TcpOptions::WINDOW_SCALE_MAX));
                }
            }
            kind::SACK_PERMITTED => self.sack_permitted |= SackPermittedOption::parse(whole).is_ok(),
            kind::TIMESTAMPS => {
                if let Ok(TimestampsOption { value, echo }) = TimestampsOption::parse(whole) {
                    self.timestamps = Some(Timestamps { value, echo });
                }
            }
            kind::SACK => {
                if let Some(blocks) = SackBlocks::parse(&whole[OptionHeader::LEN..]) {
                    self.sack = blocks;
                }
            }
            kind::FAST_OPEN => {
                if let Some(cookie) = FastOpenCookie::new(&whole[OptionHeader::LEN..]) {
                    self.fast_open = Some(cookie);
                }
            }
            _ => {}
        }
    }

    /// Writes option after option, each with its padding in front, so that numbers of four bytes stand at words' borders
    /// as receivers like them.
    fn lay_out(&self, bytes: &mut [u8]) -> usize {
        let length = self.length();
        assert!(length <= TcpHeader::OPTIONS_MAX, "options fit {} bytes, got {length}", TcpHeader::OPTIONS_MAX);
        assert!(length <= bytes.len(), "options were built into too few bytes: expected {length}, got {}", bytes.len());
        let mut layout = Layout { bytes, length: 0 };
        if let Some(mss) = self.mss {
            layout.put(&MssOption { mss });
        }
        // On a SYN with timestamps the permission stands where their padding would.
        match (self.sack_permitted, self.timestamps) {
            (true, Some(_)) => layout.put(&SackPermittedOption {}),
            (true, None) => {
                layout.pad(2);
                layout.put(&SackPermittedOption {});
            }
            (false, Some(_)) => layout.pad(2),
            (false, None) => {}
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            layout.put(&TimestampsOption { value, echo });
        }
        if let Some(shift) = self.window_scale {
            assert!(shift <= TcpOptions::WINDOW_SCALE_MAX, "windows are shifted by at most 14, got {shift}");
            layout.pad(1);
            layout.put(&WindowScaleOption { shift });
        }
        if let Some(cookie) = self.fast_open {
            layout.put_with(kind::FAST_OPEN, cookie.as_bytes());
            layout.pad(length - layout.length - sack_length(&self.sack));
        }
        if !self.sack.is_empty() {
            layout.pad(2);
            layout.put(&OptionHeader::around(kind::SACK, self.sack.len() * SackBlock::LEN));
            for block in &self.sack {
                layout.put(block);
            }
        }
        assert_eq!(layout.length, length, "the length that was promised is the length that was laid out");
        length
    }
}

/// Bytes of a word, to which the options are padded (RFC 9293, section 3.1).
const WORD: usize = 4;

/// Bytes that selective acknowledgments take, with the padding in front.
fn sack_length(sack: &SackBlocks) -> usize {
    if sack.is_empty() { 0 } else { WORD + sack.len() * SackBlock::LEN }
}

/// Options being written.
struct Layout<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Layout<'_> {
    fn put<H: Header>(&mut self, option: &H) {
        option.build(&mut self.bytes[self.length..]);
        self.length += H::LEN;
    }

    fn put_with(&mut self, kind: u8, data: &[u8]) {
        self.put(&OptionHeader::around(kind, data.len()));
        self.bytes[self.length..][..data.len()].copy_from_slice(data);
        self.length += data.len();
    }

    fn pad(&mut self, bytes: usize) {
        self.bytes[self.length..][..bytes].fill(kind::NO_OPERATION);
        self.length += bytes;
    }
}

impl OptionHeader {
    /// In front of that many bytes of data.
    fn around(kind: u8, data: usize) -> OptionHeader {
        // An option fits the forty bytes that all options have, so its length fits a byte.
        OptionHeader { kind, octets: (OptionHeader::LEN + data) as u8 }
    }
}

/// The kinds of option that are known here (IANA's "TCP Option Kind Numbers").
mod kind {
    pub const END: u8 = 0;
    pub const NO_OPERATION: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const FAST_OPEN: u8 = 34;
}

header! {
    /// What every option but the two single bytes begins with (RFC 9293 MUST-68).
    struct OptionHeader {
        /// Which option.
        kind: u8 = Data,
        /// Bytes of the option, these two included.
        octets: u8 = Data,
    }
    length = octets;
}

header! {
    /// The option of [`TcpOptions::mss`].
    struct MssOption {
        kind: u8 = Data == kind::MSS,
        octets: u8 = Data == 4,
        mss: u16 = Data,
    }
}

header! {
    /// The option of [`TcpOptions::window_scale`].
    struct WindowScaleOption {
        kind: u8 = Data == kind::WINDOW_SCALE,
        octets: u8 = Data == 3,
        shift: u8 = Data,
    }
}

header! {
    /// The option of [`TcpOptions::sack_permitted`].
    struct SackPermittedOption {
        kind: u8 = Data == kind::SACK_PERMITTED,
        octets: u8 = Data == 2,
    }
}

header! {
    /// The option of [`TcpOptions::timestamps`].
    struct TimestampsOption {
        kind: u8 = Data == kind::TIMESTAMPS,
        octets: u8 = Data == 10,
        value: SequenceNumber = Data,
        echo: SequenceNumber = Data,
    }
}

header! {
    /// All the options of most segments (RFC 7323, appendix A): padding, so that the clocks stand at words' borders.
    struct AlignedTimestamps {
        padding: u16 = Data == u16::from_be_bytes([kind::NO_OPERATION; 2]),
        kind: u8 = Data == kind::TIMESTAMPS,
        octets: u8 = Data == 10,
        value: SequenceNumber = Data,
        echo: SequenceNumber = Data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CLOCKS: Timestamps = Timestamps { value: SequenceNumber(0x0102_0304), echo: SequenceNumber(0x0506_0708) };
    const ALIGNED: [u8; 12] = [1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];

    fn built(options: &TcpOptions) -> Vec<u8> {
        let mut bytes = [0xee; TcpHeader::OPTIONS_MAX];
        let length = options.build(&mut bytes);
        assert!(bytes[length..].iter().all(|byte| *byte == 0xee), "nothing is written behind the options");
        bytes[..length].to_vec()
    }

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: SequenceNumber(left), right: SequenceNumber(right) }
    }

    #[test]
    fn the_running_connections_options_have_their_known_layout() {
        let options = TcpOptions { timestamps: Some(CLOCKS), ..TcpOptions::NONE };
        assert_eq!(built(&options), ALIGNED);
        assert_eq!(TcpOptions::parse(&ALIGNED), Ok(options));
    }

    #[test]
    fn the_fast_layout_is_what_the_slow_way_says() {
        let options = TcpOptions { timestamps: Some(CLOCKS), ..TcpOptions::NONE };
        let mut bytes = [0; 12];
        assert_eq!((options.lay_out(&mut bytes), bytes), (12, ALIGNED));
        assert_eq!(TcpOptions::walk(&ALIGNED), Ok(options));
        let bytes: Vec<u8> = [&ALIGNED[..], &[2, 4, 5, 180]].concat();
        assert_eq!(TcpOptions::parse(&bytes), Ok(TcpOptions { mss: Some(1460), ..options }), "more may follow");
    }

    #[test]
    fn a_syn_has_the_layout_receivers_know() {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(CLOCKS),
            ..TcpOptions::NONE
        };
        let expected = [2, 4, 5, 180, 4, 2, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 3, 3, 7];
        assert_eq!(built(&options), expected);
        assert_eq!(TcpOptions::parse(&expected), Ok(options));
    }

    #[test]
    fn everything_a_syn_can_say_fits_together_with_the_longest_cookie() {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(14),
            sack_permitted: true,
            timestamps: Some(CLOCKS),
            fast_open: FastOpenCookie::new(&[7; 16]),
            sack: SackBlocks::NONE,
        };
        assert_eq!(built(&options).len(), 40);
        assert_eq!(TcpOptions::parse(&built(&options)), Ok(options));
        assert_eq!(options.sack_blocks_max(), 0);
    }

    #[test]
    fn three_blocks_have_room_beside_timestamps_and_four_without() {
        let mut options = TcpOptions { timestamps: Some(CLOCKS), ..TcpOptions::NONE };
        assert_eq!((TcpOptions::NONE.sack_blocks_max(), options.sack_blocks_max()), (4, 3));
        for number in 0..3 {
            options.sack.push(block(number * 100, number * 100 + 50));
        }
        assert_eq!(built(&options).len(), 40);
        assert_eq!(TcpOptions::parse(&built(&options)), Ok(options));
    }

    // RFC 9293 MUST-6, MUST-68.
    #[test]
    fn unknown_options_are_passed_over_by_their_length() {
        let bytes = [253, 4, 2, 4, 200, 2, 2, 4, 5, 180];
        assert_eq!(TcpOptions::parse(&bytes), Ok(TcpOptions { mss: Some(1460), ..TcpOptions::NONE }));
    }

    // RFC 9293 MUST-4, MUST-64.
    #[test]
    fn options_begin_at_any_byte() {
        for front in 0..8 {
            let bytes = [&vec![1; front][..], &[2, 4, 5, 180], &[1], &[8, 10, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
            let expected = TcpOptions { mss: Some(1460), timestamps: Some(CLOCKS), ..TcpOptions::NONE };
            assert_eq!(TcpOptions::parse(&bytes), Ok(expected));
        }
    }

    // RFC 9293 MUST-69.
    #[test]
    fn what_follows_the_end_is_not_looked_at() {
        let bytes = [2, 4, 5, 180, 0, 8, 0, 99];
        assert_eq!(TcpOptions::parse(&bytes), Ok(TcpOptions { mss: Some(1460), ..TcpOptions::NONE }));
    }

    // RFC 9293 MUST-7.
    #[test]
    fn impossible_lengths_are_refused() {
        for (bytes, malformed) in [
            (&[2, 0, 5, 180][..], Malformed::Length { minimum: 2, maximum: 4, got: 0 }),
            (&[99, 1, 1, 1][..], Malformed::Length { minimum: 2, maximum: 4, got: 1 }),
            (&[2, 5, 5, 180][..], Malformed::Length { minimum: 2, maximum: 4, got: 5 }),
            (&[1, 1, 1, 2][..], Malformed::Short { expected: 2, got: 1 }),
        ] {
            assert_eq!(TcpOptions::parse(bytes), Err(malformed));
        }
    }

    #[test]
    fn a_known_option_with_a_length_that_is_not_its_own_says_nothing() {
        for bytes in [
            &[2, 3, 5][..],
            &[2, 5, 5, 180, 0][..],
            &[3, 2][..],
            &[4, 3, 1][..],
            &[8, 9, 1, 2, 3, 4, 5, 6, 7][..],
            &[5, 2][..],
            &[5, 9, 1, 2, 3, 4, 5, 6, 7][..],
            &[34, 5, 1, 2, 3][..],
        ] {
            assert_eq!(TcpOptions::parse(bytes), Ok(TcpOptions::NONE), "{bytes:?}");
        }
    }

    #[test]
    fn a_window_scale_beyond_the_largest_is_the_largest() {
        assert_eq!(TcpOptions::parse(&[3, 3, 255]).unwrap().window_scale, Some(14));
    }

    #[test]
    #[should_panic(expected = "options fit 40 bytes, got 48")]
    fn more_blocks_than_have_room_are_our_bug() {
        let mut options = TcpOptions { timestamps: Some(CLOCKS), ..TcpOptions::NONE };
        (0..4).for_each(|number| assert!(options.sack.push(block(number, number + 1))));
        built(&options);
    }

    proptest! {
        // Law 5.
        #[test]
        fn built_options_parse_to_themselves(numbers in prop::collection::vec(any::<u64>(), 32)) {
            let mut numbers = numbers.into_iter().cycle();
            let options = TcpOptions::generate(&mut || numbers.next().expect("the numbers go round"));
            let bytes = built(&options);
            prop_assert_eq!(bytes.len(), options.length());
            prop_assert_eq!(bytes.len() % 4, 0);
            prop_assert_eq!(TcpOptions::parse(&bytes), Ok(options));
            prop_assert_eq!(TcpOptions::walk(&bytes), Ok(options));
        }

        // Law 5: what was taken from a peer, written as we would, says the same.
        #[test]
        fn any_bytes_are_refused_or_say_the_same_when_built_again(
            bytes in prop::collection::vec(prop_oneof![0..12_u8, Just(34), any::<u8>()], 0..=40)
        ) {
            if let Ok(options) = TcpOptions::parse(&bytes) {
                // A peer may say more in forty bytes than our padding leaves room for.
                if options.length() <= TcpHeader::OPTIONS_MAX {
                    prop_assert_eq!(TcpOptions::parse(&built(&options)), Ok(options));
                }
            }
        }
    }
}
