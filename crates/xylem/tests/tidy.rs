//! The tree guards its own architecture: the floors, the purity of protocols, the size of files, the ledger of unsafe
//! code and of dependencies. Each rule is shown to see a planted breach.

use cargo_metadata::MetadataCommand;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The floor of each crate (DESIGN: dependencies point down only).
const FLOORS: &[(&str, u8)] = &[
    ("xylem-wire", 0),
    ("xylem-core", 1),
    ("xylem-protocols", 2),
    ("xylem-graph", 3),
    ("xylem-host", 4),
    ("xylem-sim", 4),
    ("xylem-posix", 5),
    ("xylem", 6),
    ("xylem-packetdrill", 7),
];

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, floor)| *floor)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Dependencies that do not point down, development ones included.
fn upward<'a>(dependencies: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut found = Vec::new();
    for (from, to) in dependencies {
        let Some(above) = floor(from) else {
            found.push(format!("{from} has no floor"));
            continue;
        };
        match floor(to) {
            Some(below) if below >= above => {
                found.push(format!("{from} (floor {above}) depends on {to} (floor {below})"))
            }
            Some(_) => {}
            None if to.starts_with("xylem") => found.push(format!("{to} has no floor")),
            None => {}
        }
    }
    found
}

#[test]
fn dependencies_point_down() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let edges: Vec<(&str, &str)> = metadata
        .packages
        .iter()
        .flat_map(|package| package.dependencies.iter().map(move |it| (package.name.as_str(), it.name.as_str())))
        .collect();
    assert!(edges.contains(&("xylem-core", "xylem-wire")), "the metadata was not read");
    assert_eq!(upward(edges.into_iter()), [""; 0]);
}

#[test]
fn an_upward_dependency_is_seen() {
    let planted = [("xylem-core", "xylem-graph"), ("xylem-sim", "xylem-host"), ("xylem-new", "libc")];
    assert_eq!(upward(planted.into_iter()).len(), 3);
}

#[test]
fn every_dependency_has_its_reason() {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let page = std::fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let names = metadata.packages.iter().flat_map(|package| package.dependencies.iter().map(|it| it.name.as_str()));
    let used: BTreeSet<&str> = names.filter(|name| !name.starts_with("xylem")).collect();
    let missing: Vec<_> = used.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/dependencies.md has no reason for {missing:?}");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<&str> = rows.flat_map(|row| row.split('|').nth(1).unwrap_or("").split('`')).collect();
    let unused: Vec<_> =
        listed.iter().filter(|name| name.chars().any(char::is_alphabetic) && !used.contains(**name)).collect();
    assert!(unused.is_empty(), "docs/dependencies.md gives reasons for {unused:?}, which nothing depends on");
}

/// All Rust files of the workspace below `folder`, with their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    let text = |path: PathBuf| (path.display().to_string(), std::fs::read_to_string(&path).unwrap());
    found.into_iter().map(text).collect()
}

/// The code of a file without comments and without its test module.
fn code(text: &str) -> String {
    let body = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
    body.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Words that ask the machine for something a pure floor may not ask for.
const IMPURE: &[&str] =
    &["Instant::now", "SystemTime", "std::thread", "thread::spawn", "std::fs", "std::io::", "UdpSocket", "TcpStream"];

fn impurities(text: &str) -> Vec<&'static str> {
    IMPURE.iter().copied().filter(|word| code(text).contains(word)).collect()
}

#[test]
fn floors_below_the_hosts_ask_the_machine_for_nothing() {
    let pure = ["xylem-wire", "xylem-core", "xylem-protocols", "xylem-graph", "xylem-sim"];
    for (path, text) in pure.iter().flat_map(|name| sources(&format!("crates/{name}/src"))) {
        if path.contains("/tests") || path.ends_with("tests.rs") || path.contains("/testing") {
            continue;
        }
        assert_eq!(impurities(&text), [""; 0], "{path}");
    }
    assert_eq!(impurities("let now = std::time::Instant::now();"), ["Instant::now"]);
}

#[test]
fn protocols_do_not_know_each_other() {
    let folder = root().join("crates/xylem-protocols/src");
    let names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir() && entry.file_name() != "testing")
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name == "udp"), "the protocols were not found");
    let siblings = |own: &str, text: &str| -> Vec<String> {
        let others = names.iter().filter(|name| *name != own);
        others.filter(|name| code(text).contains(&format!("crate::{name}::"))).cloned().collect()
    };
    for name in &names {
        for (path, text) in sources(&format!("crates/xylem-protocols/src/{name}")) {
            if !path.contains("/tests") {
                assert_eq!(siblings(name, &text), [""; 0], "{path}");
            }
        }
    }
    assert_eq!(siblings("tcp", "use crate::udp::UdpSession;"), ["udp"]);
}

#[test]
fn every_protocol_has_its_manual_page() {
    let headings =
        ["NAME", "SPECIFICATION", "SYNOPSIS", "PARTICIPANTS", "CONTROL", "LIMITS", "DROPS", "CONFIGURATION", "EXAMPLE"];
    for entry in std::fs::read_dir(root().join("crates/xylem-protocols/src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "testing") {
            let page = std::fs::read_to_string(path.join("README.md")).unwrap_or_default();
            let missing: Vec<_> = headings.iter().filter(|heading| !page.contains(**heading)).collect();
            assert!(missing.is_empty(), "{}: the manual page lacks {missing:?}", path.display());
        }
    }
}

#[test]
fn files_stay_small() {
    let crates = sources("crates");
    assert!(crates.len() > 50, "the sources were not found");
    let long: Vec<_> = crates.iter().filter(|(_, text)| text.lines().count() > 800).map(|(path, _)| path).collect();
    assert!(long.is_empty(), "over 800 lines: {long:?}");
}

#[test]
fn unsafe_code_stays_where_the_system_forces_it() {
    for (path, text) in sources("crates") {
        // The second and third are counting allocators of tests, which the trait makes unsafe, the last a C interface.
        let places = [
            "xylem-host/src/system",
            "xylem/tests/host_allocations.rs",
            "xylem/tests/churn_memory.rs",
            "xylem-packetdrill/src/ffi.rs",
        ];
        let allowed = places.iter().any(|place| path.contains(place));
        let word = ["unsafe", " {"].concat();
        assert!(allowed || !code(&text).contains(&word), "{path} has unsafe code");
    }
}
