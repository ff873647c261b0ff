//! Linux's settings by name, as a script's player writes them into a file (`net.ipv4.tcp_sack 0`, a line each): which
//! options of the graph and which defaults of sockets they become. Names that mean nothing here are passed over.

use std::time::Duration;
use xylem_graph::file::Value;
use xylem_posix::Defaults;

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Choices {
    /// Options of the graph's TCP.
    pub options: Vec<(&'static str, Value)>,
    /// What sockets begin with.
    pub defaults: Defaults,
}

/// The smallest and the largest buffer a graph takes.
const BUFFER: (u64, u64) = (2048, 0x3fff_c000);
/// What a graph knows for congestion control.
const ALGORITHMS: [&str; 3] = ["cubic", "reno", "bbr"];

impl Choices {
    /// Reads the text of such a file. A name that is said twice counts as it was said last.
    pub fn read(text: &str) -> Choices {
        let mut choices = Choices::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words =
                line.split(|byte: char| byte.is_whitespace() || byte == '=').filter(|word| !word.is_empty());
            let Some(name) = words.next() else { continue };
            let values: Vec<&str> = words.collect();
            choices.take(name.rsplit(['.', '/']).next().unwrap_or(name), &values);
        }
        choices
    }

    fn take(&mut self, name: &str, values: &[&str]) {
        let number = values.first().and_then(|value| parse_number(value));
        let Some(first) = values.first() else { return };
        match name {
            "tcp_timestamps" => self.truth("timestamps", number),
            "tcp_sack" => self.truth("sack", number),
            "tcp_dsack" => self.truth("duplicate_reports", number),
            "tcp_window_scaling" => self.truth("window_scaling", number),
            "tcp_slow_start_after_idle" => self.truth("restart_after_idle", number),
            "tcp_early_retrans" => self.truth("tail_probes", number),
            "tcp_ecn" => self.word("ecn", number, &["off", "on", "passive"]),
            "tcp_syncookies" => self.word("syn_cookies", number, &["off", "overflow", "always"]),
            "tcp_mtu_probing" => self.word("mtu_probing", number, &["off", "black_hole", "on"]),
            "tcp_fastopen" => self.word("fast_open", number.map(|bits| bits & 3), &["off", "client", "server", "both"]),
            "tcp_congestion_control" if ALGORITHMS.contains(first) => {
                self.option("congestion", Value::Text((*first).to_owned()));
            }
            "tcp_synack_retries" => self.count("syn_ack_tries", number),
            "tcp_rmem" => self.buffers("receive_buffer", "receive_buffer_max", values),
            "tcp_wmem" => self.buffers("send_buffer", "send_buffer_max", values),
            "tcp_fin_timeout" => {
                if let Some(seconds) = number.filter(|seconds| (1..=3600).contains(seconds)) {
                    self.option("orphan_wait", Value::Duration(Duration::from_secs(seconds)));
                }
            }
            "tcp_syn_retries" => self.defaults.open_tries = number.and_then(|tries| u8::try_from(tries).ok()),
            "tcp_keepalive_time" => self.defaults.keep_alive_idle = number.map(Duration::from_secs),
            "tcp_keepalive_intvl" => self.defaults.keep_alive_interval = number.map(Duration::from_secs),
            "tcp_keepalive_probes" => {
                self.defaults.keep_alive_probes = number.and_then(|count| u8::try_from(count).ok());
            }
            "tcp_notsent_lowat" => {
                // Linux's default says that there is no limit.
                let limit = number.filter(|bytes| *bytes < u64::from(u32::MAX));
                self.defaults.unsent_low_water = limit.and_then(|bytes| usize::try_from(bytes).ok());
            }
            _ => {}
        }
    }

    fn option(&mut self, option: &'static str, value: Value) {
        self.options.retain(|(known, _)| *known != option);
        self.options.push((option, value));
    }

    fn truth(&mut self, option: &'static str, number: Option<u64>) {
        if let Some(number) = number {
            self.option(option, Value::Bool(number != 0));
        }
    }

    fn count(&mut self, option: &'static str, number: Option<u64>) {
        if let Some(number) = number.filter(|number| *number <= 255) {
            self.option(option, Value::Integer(number as i64));
        }
    }

    /// The word of this number; what is beyond the list means the last but one: more of the same.
    fn word(&mut self, option: &'static str, number: Option<u64>, words: &[&str]) {
        let Some(word) = number.and_then(|number| words.get(number as usize).copied()) else { return };
        self.option(option, Value::Text(word.to_owned()));
    }

    /// The least, the usual and the most bytes of a buffer. Linux counts what its bookkeeping takes: half of the usual size
    /// is what a window can be to begin with.
    fn buffers(&mut self, usual: &'static str, most: &'static str, values: &[&str]) {
        let size = |index: usize| values.get(index).and_then(|value| parse_number(value));
        let (Some(begins), Some(grows)) = (size(1), size(2)) else { return };
        let within = |bytes: u64| bytes.clamp(BUFFER.0, BUFFER.1);
        let begins = if usual == "receive_buffer" { begins / 2 } else { begins };
        self.option(usual, Value::Size(within(begins)));
        self.option(most, Value::Size(within(grows).max(within(begins))));
    }
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_options_and_defaults() {
        let text = "net.ipv4.tcp_sack 0\nnet.ipv4.tcp_ecn=1 # asked for\n/proc/sys/net/ipv4/tcp_fastopen 0x3\n\
                    net.ipv4.tcp_rmem 4096 131072 6291456\nnet.ipv4.tcp_syn_retries 2\nnet.ipv4.tcp_sack 1\n\
                    net.core.somaxconn 5\nnet.ipv4.tcp_congestion_control dctcp\nnet.ipv4.tcp_dsack\nrubbish\n";
        let choices = Choices::read(text);
        let text = |word: &str| Value::Text(word.to_owned());
        assert_eq!(
            choices.options,
            [
                ("ecn", text("on")),
                ("fast_open", text("both")),
                ("receive_buffer", Value::Size(65_536)),
                ("receive_buffer_max", Value::Size(6_291_456)),
                ("sack", Value::Bool(true)),
            ]
        );
        assert_eq!(choices.defaults, Defaults { open_tries: Some(2), ..Defaults::default() });
        assert_eq!(Choices::read(""), Choices::default());
    }
}
