//! Which placements, demultiplexings, data passes and devices go together: the table of DESIGN.md section 1.
//!
//! [`combination`] is the one place that knows. `xylem graph combinations` prints the table and the check refuses in its words
//! what is not built yet or cannot be.

use std::fmt;

use super::choice::{Data, Demux, Device, Placement};

/// Whether a combination can be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It runs, has a test and a row in the benchmark.
    Works,
    /// It is possible and not built.
    NotYet,
    /// It cannot be; the reason.
    Illegal(&'static str),
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Status::Works => f.write_str("works"),
            Status::NotYet => f.write_str("not yet"),
            Status::Illegal(reason) => write!(f, "illegal: {reason}"),
        }
    }
}

/// What the four choices come to together.
pub fn combination(placement: Placement, demux: Demux, data: Data, device: Device) -> Status {
    if demux == Demux::Kernel {
        match device {
            Device::Wire => {
                return Status::Illegal("a wire's frames stay in the process, where no kernel program sees them");
            }
            Device::Ring => {
                return Status::Illegal("a ring's frames stay in shared memory, where no kernel program sees them");
            }
            Device::Pcap => {
                return Status::Illegal(
                    "a capture file's frames pass no interface, where a kernel program could see them",
                );
            }
            Device::Xdp | Device::Tap | Device::Packet => {}
        }
        match placement {
            Placement::Server => return Status::Illegal("every frame crosses the server, which demultiplexes itself"),
            Placement::Processor => {
                return Status::Illegal("every frame crosses the processor, which demultiplexes itself");
            }
            Placement::App => {}
        }
    }
    match (placement, demux, data, device) {
        (Placement::App, Demux::Layered, Data::Layered, Device::Wire | Device::Tap | Device::Packet) => Status::Works,
        _ => Status::NotYet,
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// Where the protocols of a path run.
    pub placement: Placement,
    /// How frames find their path.
    pub demux: Demux,
    /// How payload bytes are touched.
    pub data: Data,
    /// What carries the frames.
    pub device: Device,
    /// What they come to together.
    pub status: Status,
}

/// The whole table, every combination once, what varies fastest last. Displays as aligned text; see also
/// [`json`](Combinations::json).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Combinations {
    /// The rows.
    pub rows: Vec<Combination>,
}

/// Every combination with its status.
pub fn combinations() -> Combinations {
    let mut rows = Vec::new();
    for &placement in Placement::ALL {
        for &demux in Demux::ALL {
            for &data in Data::ALL {
                for &device in Device::ALL {
                    let status = combination(placement, demux, data, device);
                    rows.push(Combination { placement, demux, data, device, status });
                }
            }
        }
    }
    Combinations { rows }
}

impl fmt::Display for Combinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:9}  {:10}  {:10}  {:6}  status", "placement", "demux", "data", "device")?;
        for row in &self.rows {
            let Combination { placement, demux, data, device, status } = row;
            writeln!(f, "{placement:9}  {demux:10}  {data:10}  {device:6}  {status}")?;
        }
        Ok(())
    }
}

impl Combinations {
    /// The table as a JSON array of objects with the keys `placement`, `demux`, `data`, `device`, `status` (`works`, `not yet`
    /// or `illegal`) and, where it is illegal, `reason`. No word or reason has a character that JSON would escape.
    pub fn json(&self) -> String {
        let rows: Vec<String> = self.rows.iter().map(json_row).collect();
        format!("[\n  {}\n]\n", rows.join(",\n  "))
    }
}

fn json_row(row: &Combination) -> String {
    let Combination { placement, demux, data, device, status } = row;
    let status = match status {
        Status::Works | Status::NotYet => format!("\"status\": \"{status}\""),
        Status::Illegal(reason) => {
            assert!(!reason.contains(['"', '\\']), "reasons are written without characters that JSON escapes");
            format!("\"status\": \"illegal\", \"reason\": \"{reason}\"")
        }
    };
    format!(
        "{{\"placement\": \"{placement}\", \"demux\": \"{demux}\", \"data\": \"{data}\", \"device\": \"{device}\", {status}}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_table_has_every_combination_once() {
        let table = combinations();
        let distinct: HashSet<_> =
            table.rows.iter().map(|row| (row.placement, row.demux, row.data, row.device)).collect();
        assert_eq!((table.rows.len(), distinct.len()), (3 * 4 * 2 * 6, 144));
    }

    #[test]
    fn what_works_is_what_is_built() {
        let works: Vec<String> = combinations()
            .rows
            .iter()
            .filter(|row| row.status == Status::Works)
            .map(|row| format!("{} {} {} {}", row.placement, row.demux, row.data, row.device))
            .collect();
        assert_eq!(works, ["app layered layered tap", "app layered layered packet", "app layered layered wire"]);
    }

    #[test]
    fn a_kernel_cannot_name_paths_where_it_sees_no_frames() {
        for &device in Device::ALL {
            let status = combination(Placement::App, Demux::Kernel, Data::Layered, device);
            let blind = matches!(device, Device::Wire | Device::Ring | Device::Pcap);
            assert_eq!(matches!(status, Status::Illegal(_)), blind, "{device}");
        }
    }

    #[test]
    fn text_and_json_have_a_row_for_each() {
        let table = combinations();
        let text = table.to_string();
        assert_eq!(text.lines().count(), 145);
        assert!(text.contains("app        layered     layered     wire    works\n"));
        assert!(
            text.contains("app        kernel      layered     wire    illegal: a wire's frames stay in the process")
        );
        let json = table.json();
        assert_eq!(json.matches("\"placement\"").count(), 144);
        assert!(json.starts_with("[\n  {\"placement\": \"app\", \"demux\": \"layered\", "));
        assert!(json.ends_with("}\n]\n") && !json.contains(",\n]"));
    }
}
