//! The four free choices of a graph (DESIGN.md section 1) as closed sets of words.
//!
//! Placement says where a protocol runs, demux how a frame finds its path, data how payload bytes are touched, and device
//! what carries the frames. Which of them go together is said in one other place, [`combination`](super::combination()).

use std::fmt;

/// Writes an enum whose values are words of the graph file, with the table that reads and prints them.
macro_rules! words {
    ($(#[$about:meta])* $type:ident { $($(#[$each:meta])* $value:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $type { $($(#[$each])* $value,)* }

        impl $type {
            /// Every value, in the order of the design's table.
            pub const ALL: &'static [$type] = &[$($type::$value,)*];

            /// The word a graph file uses for it.
            pub const fn word(self) -> &'static str {
                match self { $($type::$value => $word,)* }
            }

            /// The value a word stands for, if any.
            pub fn from_word(word: &str) -> Option<$type> {
                match word { $($word => Some($type::$value),)* _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words! {
    /// Where a protocol runs.
    Placement {
        /// A library in the application's process.
        App = "app",
        /// A trusted process.
        Server = "server",
        /// A dedicated core, off-host style.
        Processor = "processor",
    }
}

words! {
    /// How an arriving frame finds its path.
    Demux {
        /// Each layer looks at its own header in turn.
        Layered = "layered",
        /// One demux phase over all headers, then one state-change phase.
        Integrated = "integrated",
        /// A generated eBPF program names the path before user space sees the frame.
        Kernel = "kernel",
        /// An application identifier in the link header names the path.
        Direct = "direct",
    }
}

words! {
    /// How payload bytes are touched.
    Data {
        /// A pass over the bytes for each function.
        Layered = "layered",
        /// One pass for all functions (integrated layer processing).
        Integrated = "integrated",
    }
}

words! {
    /// What carries the frames at the bottom of a graph.
    Device {
        /// AF_XDP sockets.
        Xdp = "xdp",
        /// A TAP interface.
        Tap = "tap",
        /// AF_PACKET sockets.
        Packet = "packet",
        /// Rings in shared memory.
        Ring = "ring",
        /// The in-process link with impairments; the simulator's device is this one.
        Wire = "wire",
        /// A capture file.
        Pcap = "pcap",
    }
}

/// What a graph file says about a device: a kind, or that the program chooses at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DeviceName {
    /// The program chooses (it may measure first). On an edge, `auto` first means what the graph's `device =` line says.
    #[default]
    Auto,
    /// This kind and no other.
    Kind(Device),
}

impl DeviceName {
    /// The word a graph file uses for it.
    pub const fn word(self) -> &'static str {
        match self {
            DeviceName::Auto => "auto",
            DeviceName::Kind(device) => device.word(),
        }
    }

    /// The name a word stands for, if any.
    pub fn from_word(word: &str) -> Option<DeviceName> {
        if word == "auto" {
            return Some(DeviceName::Auto);
        }
        Device::from_word(word).map(DeviceName::Kind)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// True for the words that a node of a graph cannot be named, because a line or an edge would then say two things.
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "place" | "over" | "demux" | "data" | "device") || DeviceName::from_word(word).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for &placement in Placement::ALL {
            assert_eq!(Placement::from_word(placement.word()), Some(placement));
        }
        for &demux in Demux::ALL {
            assert_eq!(Demux::from_word(demux.word()), Some(demux));
        }
        for &data in Data::ALL {
            assert_eq!(Data::from_word(data.word()), Some(data));
        }
        for &device in Device::ALL {
            assert_eq!(DeviceName::from_word(device.word()), Some(DeviceName::Kind(device)));
            assert!(is_reserved(device.word()));
        }
        assert_eq!(DeviceName::from_word("auto"), Some(DeviceName::Auto));
        assert_eq!(Demux::from_word("Layered"), None);
        assert!(is_reserved("auto") && is_reserved("over") && !is_reserved("ethernet"));
    }
}
