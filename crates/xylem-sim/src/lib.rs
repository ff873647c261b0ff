//! The simulator: any number of hosts, each running a real graph, joined by seeded links in virtual time. The protocols,
//! the instance and its turn are the very code that runs on real hosts; only the world below them differs. The same seed
//! gives the same events, and the same hash over them, on every run and machine.

pub mod content;
pub mod end;
pub mod event;
pub mod host;
pub mod scenario;
pub mod script;
pub mod sim;
pub mod traffic;

pub use end::{End, Listener};
pub use event::EventHash;
pub use host::Host;
pub use sim::{HostId, Outcome, Sight, Sim};
pub use traffic::{Datagrams, Outline, Ping, Progress, Traffic, Transfer};
