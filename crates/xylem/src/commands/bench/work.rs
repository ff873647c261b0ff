//! What a row really did, in words, and whether two rows did the same: only then may one be divided by the other. Peer and
//! wire may differ, for a TAP has no case of kernel to kernel; the ratio then names both.

use serde::Serialize;

/// The largest IP packet of every device here, in bytes.
pub const MTU: usize = 1500;

/// The work of one row. What is compared stands first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Work {
    /// Bytes of a request and of a response, of a write of the stream, or of what a connection carried before it idled.
    pub bytes: usize,
    /// The largest IP packet in bytes.
    pub mtu: usize,
    /// What the device does for the stack.
    pub offloads: String,
    /// How often the application's bytes are copied at the sockets' face; what a stack copies below is its own cost.
    pub copies: String,
    /// What is compared, and where checksums are computed.
    pub checks: String,
    /// Who closes when.
    pub close_order: String,
    /// How both ends wait.
    pub waiting: String,
    /// Whose sockets the peer uses.
    pub peer: String,
    /// What joins the two ends.
    pub wire: String,
    /// How Xylem's stack gets its turns.
    pub shell: Option<String>,
    /// Which processors the ends run on.
    pub pinning: String,
    /// The congestion control of both ends.
    pub congestion: String,
    /// What was set alike for all contestants.
    pub tuning: String,
    /// What says how much a connection may buffer.
    pub buffers: String,
    /// The most connections of a repetition, where there are several.
    pub connections: Option<usize>,
    /// How long a repetition was measured, warm-up included, in seconds.
    pub seconds: f64,
}

impl Work {
    /// The name of a ratio of this row to `base`: the wires, as `tap/veth`.
    ///
    /// # Errors
    /// The two did not do the same work: what differs, both sides of it.
    pub fn ratio_to(&self, base: &Work) -> Result<String, String> {
        let same = [
            ("bytes", self.bytes.to_string(), base.bytes.to_string()),
            ("MTU", self.mtu.to_string(), base.mtu.to_string()),
            ("offloads", self.offloads.clone(), base.offloads.clone()),
            ("copies", self.copies.clone(), base.copies.clone()),
            ("checks", self.checks.clone(), base.checks.clone()),
            ("close order", self.close_order.clone(), base.close_order.clone()),
            ("waiting", self.waiting.clone(), base.waiting.clone()),
        ];
        match same.into_iter().find(|(_, own, other)| own != other) {
            Some((what, own, other)) => Err(format!("{what} differ: `{own}` here, `{other}` there")),
            None => Ok(format!("{}/{}", self.wire, base.wire)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work() -> Work {
        let word = |text: &str| text.to_owned();
        Work {
            bytes: 1,
            mtu: 1500,
            offloads: word("all"),
            copies: word("one"),
            checks: word("each"),
            close_order: word("client"),
            waiting: word("spin"),
            peer: word("linux"),
            wire: word("veth"),
            ..Work::default()
        }
    }

    #[test]
    fn equal_work_is_divided_and_the_ratio_names_both_wires() {
        let other = Work { wire: "tap".into(), peer: "xylem".into(), congestion: "reno".into(), ..work() };
        assert_eq!(other.ratio_to(&work()), Ok("tap/veth".into()));
    }

    #[test]
    fn whatever_differs_of_the_seven_forbids_it_and_is_said() {
        type Change = fn(&mut Work);
        let differs: [(&str, Change); 7] = [
            ("bytes", |work| work.bytes = 2),
            ("MTU", |work| work.mtu = 9000),
            ("offloads", |work| work.offloads = "none".into()),
            ("copies", |work| work.copies = "two".into()),
            ("checks", |work| work.checks = "none".into()),
            ("close order", |work| work.close_order = "server".into()),
            ("waiting", |work| work.waiting = "block".into()),
        ];
        for (what, change) in differs {
            let mut other = work();
            change(&mut other);
            let refusal = other.ratio_to(&work()).expect_err(what);
            assert!(refusal.starts_with(what), "{refusal}");
            assert!(work().ratio_to(&other).is_err(), "{what}");
        }
    }
}
