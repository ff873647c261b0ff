//! Writes the corpora of the fuzz targets anew from their samples, beside the inputs that a fuzzer found:
//! `cargo run -p xylem --example write_corpora`, after a target was added.

use std::io;
use std::path::Path;
use xylem::fuzz::{TARGETS, samples};

fn main() -> io::Result<()> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in TARGETS {
        let folder = corpora.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (index, sample) in samples(target.name, 8, 1).into_iter().enumerate() {
            std::fs::write(folder.join(format!("sample-{index}")), sample)?;
        }
    }
    Ok(())
}
