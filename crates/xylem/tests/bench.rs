//! `xylem bench` from a user's view: every measurement runs, says what it did in JSON that a program can read, and divides
//! only what may be divided. How fast anything was is not tested. `bench_ends.rs` has what goes wrong, and less.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}
mod bench_shared;

use bench_shared::*;
use kernel::place::cable;

#[test]
fn round_trips_of_every_contestant() {
    if cable("round_trips_of_every_contestant", true).is_none() {
        return;
    }
    let result = measured(&["rr", "--quick", "--seconds", "0.1"]);
    every_row(&result, "rr");
    every_ratio(&result, "p50_us");
    rows(&result).iter().for_each(percentiles);
    let who = who(&result);
    for expected in [
        "linux-spin veth - spin -",
        "linux-block veth - block -",
        "xylem tap inline spin client",
        "xylem tap inline spin server",
        "xylem tap thread block server",
        "xylem tap spin block client",
        "xylem packet inline spin client",
        "xylem packet inline spin server",
        "xylem packet thread block server",
        "xylem packet spin block client",
        "xylem wire inline spin -",
    ] {
        assert!(who.contains(expected), "{expected} is missing in {who:?}");
    }
}

#[test]
fn a_stream_in_both_directions() {
    if cable("a_stream_in_both_directions", true).is_none() {
        return;
    }
    let result = measured(&["stream", "--quick", "--seconds", "0.1", "--shell", "inline"]);
    every_row(&result, "stream");
    every_ratio(&result, "gbps");
    let directions: Vec<&str> = rows(&result).iter().filter_map(|row| row["direction"].as_str()).collect();
    assert_eq!(directions, ["to", "from", "to", "from"].repeat(2), "{result}");
    for row in rows(&result) {
        assert!(figure(row, "gbps") > 0.01 && row["p50_us"].is_null(), "{row}");
        assert_eq!(row["stack"] == "xylem", row["bytes_per_frame"].as_f64().is_some_and(|it| it > 500.0), "{row}");
        assert!(figure(row, "cpu_ns_per_byte_client") > 0.0 && figure(row, "cpu_ns_per_byte_server") > 0.0, "{row}");
    }
}

#[test]
fn connections_one_after_the_other() {
    if cable("connections_one_after_the_other", true).is_none() {
        return;
    }
    let arguments =
        ["crr", "--quick", "--seconds", "0.1", "--connections", "400", "--bytes", "100", "--waiting", "spin"];
    let result = measured(&arguments);
    every_row(&result, "crr");
    every_ratio(&result, "per_second");
    rows(&result).iter().for_each(percentiles);
    for row in rows(&result) {
        assert_eq!((&row["bytes"], &row["work"]["connections"]), (&100.into(), &400.into()), "{row}");
        assert!(row["operations"].as_u64().expect("a number") <= 3 * 400, "{row}");
        assert!(row["waiting"] == "spin" && row["shell"] != "thread", "{row}");
    }
}

#[test]
fn idle_connections_and_the_memory_of_each_end() {
    if cable("idle_connections_and_the_memory_of_each_end", true).is_none() {
        return;
    }
    let result = measured(&["idle", "--repetitions", "1", "--connections", "1000"]);
    every_row(&result, "idle");
    for row in rows(&result) {
        let (client, server) =
            (number(row, "resident_bytes_per_connection_client"), number(row, "resident_bytes_per_connection_server"));
        assert_eq!(row["operations"], 1000, "{row}");
        assert!(row["ratio_to_linux"].is_null(), "{row}");
        // The end that is Xylem's has its connections in its own process, the kernel's has not.
        match row["role"].as_str() {
            Some("client") => assert!(client > 500.0 && server < 200.0, "{row}"),
            Some(_) => assert!(server > 500.0 && client < 200.0, "{row}"),
            None => assert!(client < 200.0 && server < 200.0, "{row}"),
        }
    }
}
