//! The packet scripts of `tests/packetdrill`, played through the library by a program in C that calls it as packetdrill
//! does; and by packetdrill itself where that is installed.

mod player;

use std::path::{Path, PathBuf};
use std::process::Command;

fn scripts() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packetdrill");
    let entries = std::fs::read_dir(folder).expect("the scripts are in the tree");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    files.sort();
    files
}

#[test]
fn every_script_comes_out_as_it_is_written() {
    if player::driver::is_unable("every_script_comes_out_as_it_is_written") {
        return;
    }
    let scripts = scripts();
    assert!(scripts.len() >= 10, "the scripts were not found");
    let failures: Vec<String> = scripts.iter().filter_map(|script| player::play::play(script).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The player sees what is planted: another time, another result, another packet, another look.
#[test]
fn a_script_that_is_wrong_fails() {
    if player::driver::is_unable("a_script_that_is_wrong_fails") {
        return;
    }
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/packetdrill/timeout.pkt");
    let text = std::fs::read_to_string(good).expect("it is in the tree");
    let folder = tempfile::tempdir().expect("a folder of our own");
    let planted = [
        ("+.3 > P. 1001:", "+.32 > P. 1001:", "expected to leave at"),
        ("write(4, ..., 1000) = 1000", "write(4, ..., 1000) = 999", "expected 999, got 1000"),
        ("+.3 > P. 1001:2001(", "+.3 > P. 1002:2002(", "another packet left (numbers)"),
        ("tcpi_snd_cwnd == 1;", "tcpi_snd_cwnd == 2;", "expected tcpi_snd_cwnd == 2, got 1"),
    ];
    for (right, wrong, complaint) in planted {
        assert!(text.contains(right), "the script has no `{right}`");
        let path = folder.path().join("planted.pkt");
        std::fs::write(&path, text.replacen(right, wrong, 1)).expect("it can be written");
        let answer = player::play::play(&path);
        assert!(answer.as_ref().is_err_and(|error| error.contains(complaint)), "{wrong}: {answer:?}");
    }
}

/// packetdrill is no package everywhere, so a machine without it is no failure: the player above has the same scripts.
#[test]
fn packetdrill_agrees_where_it_is_installed() {
    let Ok(version) = Command::new("packetdrill").arg("--help").output() else { return };
    assert!(String::from_utf8_lossy(&version.stderr).contains("so_filename") || version.stdout.len() > 1);
    let folder = tempfile::tempdir().expect("a folder of our own");
    for script in scripts() {
        let text = std::fs::read_to_string(&script).expect("it is in the tree");
        let settings = folder.path().join("settings");
        let lines = text.lines().filter_map(|line| line.strip_prefix("// sysctl "));
        std::fs::write(&settings, lines.collect::<Vec<_>>().join("\n")).expect("it can be written");
        let output = Command::new("packetdrill")
            .arg(format!("--so_filename={}", player::driver::library().display()))
            .arg("--so_flags=v4")
            .arg(&script)
            .env("PD_SYSCTL", &settings)
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&output.stderr));
    }
}
