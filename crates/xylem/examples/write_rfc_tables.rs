//! Writes the pages of `docs/rfc` anew, which say for each rule of TCP's RFCs where it is met and tested:
//! `cargo run -p xylem --example write_rfc_tables`, after a rule was named, moved or listed.

use std::io;

#[path = "../tests/rfc_tables/mod.rs"]
mod rfc_tables;

use rfc_tables::{page, places, root, rules};

fn main() -> io::Result<()> {
    let (all, places) = (rules::all(), places::all());
    let pages = all.iter().map(|rules| page::page(rules, &places)).chain([page::contents(&all, &places)]);
    for (name, text) in pages {
        std::fs::write(root().join("docs/rfc").join(name), text)?;
    }
    for problem in page::problems(&all, &places) {
        println!("{problem}");
    }
    Ok(())
}
