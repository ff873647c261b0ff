#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| xylem_fuzz::run("script", bytes));
