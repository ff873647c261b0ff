//! `xylem shake` from a user's view: a few seconds of rubbish at full rate disturb nobody.

use std::process::Command;

#[test]
fn seconds_of_rubbish_disturb_nobody() {
    let output = Command::new(env!("CARGO_BIN_EXE_xylem"))
        .args(["shake", "--seconds", "3", "--seed", "5", "--json"])
        .output()
        .expect("the program of this crate runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    for sort in ["random", "made", "replayed", "changed"] {
        assert!(report["frames"][sort].as_u64() > Some(100), "few {sort} frames: {said}");
    }
    assert!(report["bytes"].as_u64() > Some(1 << 20), "little was carried: {said}");
    assert!(report["drops"].as_array().is_some_and(|drops| drops.len() > 10), "few reasons: {said}");
    assert_eq!(report["wrong"], serde_json::json!([]), "{said}");
}
