//! The commands, a file each. A new one is a module here and a line in [`Command`]. What several of them share stands
//! beside them: how they are interrupted, and how they tell their progress.

pub mod bench;
pub mod demo;
pub mod graph;
pub mod interruption;
pub mod progress;
pub mod script;
pub mod serve;
pub mod shake;
pub mod sim;
pub mod wire;

use crate::cli::Ending;
use clap::Subcommand;

/// What the program can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure Xylem and the kernel's sockets on the same work, interleaved
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Serve a file over Xylem's own TCP/IP, fetch it with the kernel's, and compare both stacks
    Demo(demo::DemoCommand),
    /// Check, show and list what graphs can say
    #[command(subcommand)]
    Graph(graph::GraphCommand),
    /// Run packet scripts against our TCP in virtual time, or against the kernel's
    Script(script::ScriptCommand),
    /// Serve echo, files and other small services on Xylem's own TCP/IP
    Serve(serve::ServeCommand),
    /// Send rubbish at full rate to a running host, and see that nobody is disturbed
    Shake(shake::ShakeCommand),
    /// Run scenarios in the simulator, in virtual time
    Sim(sim::SimCommand),
    /// Join two interfaces by a cable that may be slow, long, lossy or out of order
    Wire(wire::WireCommand),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Ending {
        match self {
            Command::Bench(command) => command.run(),
            Command::Demo(command) => command.run(),
            Command::Graph(command) => command.run(),
            Command::Script(command) => command.run(),
            Command::Serve(command) => command.run(),
            Command::Shake(command) => command.run(),
            Command::Sim(command) => command.run(),
            Command::Wire(command) => command.run(),
        }
    }
}
