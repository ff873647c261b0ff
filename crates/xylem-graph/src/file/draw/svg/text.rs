//! How wide text is in a picture. Nobody here can ask a font, and the reader's may be another one: the table has the advance
//! widths of a wide sans-serif face, so that text in any usual face fits the box that was made for it.

/// The first character of the tables; what is not in them counts as the widest.
const FIRST: char = ' ';

/// Thousandths of the font's size, from `' '` to `'~'`.
const REGULAR: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
];
const BOLD: [u16; 95] = [
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696,
    696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995,
    837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716,
    678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712,
    365, 712, 838,
];
const WIDEST: u16 = 1103;

/// How a piece of text is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Face {
    /// A node's name.
    Name,
    /// A node's protocol, when it has another name.
    Protocol,
    /// An option.
    Option,
    /// A device.
    Device,
    /// A region's label.
    Region,
    /// The choices below the picture.
    Caption,
}

impl Face {
    /// All of them: each is a class in the picture's style.
    pub const ALL: [Face; 6] = [Face::Name, Face::Protocol, Face::Option, Face::Device, Face::Region, Face::Caption];

    /// Its class in the picture.
    pub const fn class(self) -> &'static str {
        match self {
            Face::Name => "name",
            Face::Protocol => "protocol",
            Face::Option => "option",
            Face::Device => "device",
            Face::Region => "region",
            Face::Caption => "caption",
        }
    }

    /// The font's size in pixels.
    pub const fn size(self) -> usize {
        match self {
            Face::Name => 14,
            Face::Protocol | Face::Device | Face::Caption => 12,
            Face::Option | Face::Region => 11,
        }
    }

    /// Pixels from one line's baseline to the next.
    pub const fn line(self) -> usize {
        self.size() + 4
    }

    pub(super) const fn is_bold(self) -> bool {
        matches!(self, Face::Name | Face::Region | Face::Device)
    }

    /// The width of a text in pixels, rounded up.
    pub fn width(self, text: &str) -> usize {
        let table = if self.is_bold() { &BOLD } else { &REGULAR };
        let width = |c: char| {
            let index = (c as usize).checked_sub(FIRST as usize);
            usize::from(index.and_then(|index| table.get(index)).copied().unwrap_or(WIDEST))
        };
        (text.chars().map(width).sum::<usize>() * self.size()).div_ceil(1000)
    }
}

/// Text as XML has it. Control characters, which XML cannot say, do not get here: values are escaped before.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_letters_and_large_faces_are_wide() {
        assert_eq!(Face::Option.width(""), 0);
        assert_eq!(Face::Option.width("000000000 "), 67);
        assert!(Face::Option.width("iii") < Face::Option.width("mmm"));
        assert!(Face::Protocol.width("ethernet") > Face::Option.width("ethernet"));
        assert!(Face::Name.width("ü") >= Face::Name.width("W"), "what is not in the table counts as the widest");
    }

    #[test]
    fn what_means_something_in_xml_is_escaped() {
        assert_eq!(escaped("a<b & \"c\">\u{7}"), "a&lt;b &amp; &quot;c&quot;&gt; ");
    }
}
