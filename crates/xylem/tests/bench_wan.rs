//! `xylem bench wan` and `churn` from a user's view: a short run of each says what happened in JSON, and in words. How fast
//! anything was is not tested.

#[allow(dead_code)]
mod kernel {
    pub mod place;
}
mod bench_shared;

use bench_shared::*;
use kernel::place::cable;

#[test]
fn a_cell_over_the_long_link_with_both_contestants() {
    if cable("a_cell_over_the_long_link_with_both_contestants", true).is_none() {
        return;
    }
    for direction in [&[][..], &["--from"]] {
        let arguments = ["wan", "--full", "--cells", "20ms-10M-0%-deep-ordered", "--seeds", "2", "--seconds", "0.5"];
        let result = measured(&[&arguments, direction].concat());
        assert_eq!(result["bench"], "wan");
        assert_eq!(result["direction"], if direction.is_empty() { "to" } else { "from" });
        assert_eq!(result["seeds"], serde_json::json!([1, 2]));
        let [row] = &rows(&result)[..] else { panic!("expected a row: {result}") };
        assert_eq!(row["cell"], "20ms-10M-0%-deep-ordered");
        assert_eq!(row["link"], "rate=10Mb/s delay=10ms queue=100");
        for stack in ["kernel", "xylem"] {
            let each = row[stack].as_array().expect("figures of every seed");
            assert_eq!(each.len(), 2, "{row}");
            for figures in each {
                // A link of 10 Mb/s carries no more, and some of it arrives.
                assert!((0.1..10.0).contains(&number(figures, "goodput_mbps")), "{figures}");
                assert_eq!((&figures["strays"], &figures["objects_failed"]), (&0.into(), &0.into()), "{figures}");
                let objects = figures["objects_ms"].as_array().expect("times");
                // Connecting, asking and an initial window take two round trips at least.
                assert!(objects.len() == 40 && objects.iter().all(|ms| ms.as_f64() >= Some(40.0)), "{figures}");
                assert!((0.0..0.5).contains(&number(figures, "retransmitted_share")), "{figures}");
            }
        }
        let spread = row["goodput_ratio_spread"].as_array().expect("a spread");
        assert!(
            spread[0].as_f64() <= row["goodput_ratio"].as_f64() && row["goodput_ratio"].as_f64() <= spread[1].as_f64()
        );
    }
}

#[test]
fn what_is_no_cell_is_refused_before_anything_runs() {
    let output = bench(&["wan", "--cells", "20ms-7%"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("got `7%`"));
    let output = bench(&["wan", "--cells", "20ms-10M-3%-shallow"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && (said.contains("--full") || said.contains("namespace")), "{said}");
}

#[test]
fn a_short_churn_against_both_peers_leaves_nothing_and_loses_nothing() {
    if cable("a_short_churn_against_both_peers_leaves_nothing_and_loses_nothing", true).is_none() {
        return;
    }
    let result = measured(&["churn", "--established", "1000", "--rate", "500", "--seconds", "3"]);
    assert_eq!(result["bench"], "churn");
    let peers: Vec<_> = rows(&result).iter().map(|row| row["peer"].clone()).collect();
    assert_eq!(peers, ["xylem", "kernel"]);
    for row in rows(&result) {
        assert_eq!(row["faults"], serde_json::json!([]), "{row}");
        let answer = &row["answer"];
        let churned = &answer["churned"];
        assert_eq!((&answer["standing"]["made"], &answer["answered"]), (&1000.into(), &1000.into()), "{row}");
        let (begun, made) = (number(churned, "begun"), number(churned, "made"));
        assert!(begun == made && made + number(churned, "held_back") == 1500.0 && made > 0.0, "{row}");
        let samples = answer["samples"].as_array().expect("looks");
        // TIME-WAIT is two seconds here: each of the connections of the last two stands in it, and in no path.
        assert!(samples.len() >= 3 && samples.iter().any(|it| number(it, "time_waits") > 0.0), "{row}");
        assert_eq!(answer["left"]["paths"], 0, "{row}");
    }
}
