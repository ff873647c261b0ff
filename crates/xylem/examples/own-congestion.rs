//! A congestion control of one's own, named in the graph, and run in the simulator: `cargo run --example own-congestion`.
//! It is a toy: a window that grows by a segment a round and loses a quarter at each loss.

use xylem::{catalogue, commands::sim};
use xylem_protocols::tcp::congestion::{Algorithm, CongestionControl, Loss, Progress, Start};

#[derive(Debug)]
struct Gentle {
    window: u32,
    segment: u32,
}

impl CongestionControl for Gentle {
    fn window(&self) -> u32 {
        self.window
    }

    fn threshold(&self) -> u32 {
        self.window // There is no slow start.
    }

    fn acknowledged(&mut self, progress: &Progress) {
        if progress.round_start && progress.limited && !progress.in_recovery {
            self.window += self.segment;
        }
    }

    fn lost(&mut self, _loss: &Loss) {
        self.window = (self.window - self.window / 4).max(self.segment);
    }

    fn timed_out(&mut self, loss: &Loss, _again: bool) {
        self.lost(loss);
    }

    fn resize(&mut self, bytes: u32) {
        (self.segment, self.window) = (bytes, self.window.max(bytes));
    }
}

static GENTLE: Algorithm =
    Algorithm::new("gentle", |start: &Start| Box::new(Gentle { window: start.window, segment: start.segment }));

fn main() {
    let mut catalogue = catalogue::builtin();
    catalogue::add_congestion(&mut catalogue, &GENTLE);
    let plan = sim::plan("gentle.sim", include_str!("own-congestion.sim"), &catalogue).expect("a sound scenario");
    println!("{}", plan.run(plan.scenario.seed));
}
