//! The program `xylem`. Everything it does stands in the library, where tests reach it.

fn main() -> std::process::ExitCode {
    xylem::cli::run()
}
