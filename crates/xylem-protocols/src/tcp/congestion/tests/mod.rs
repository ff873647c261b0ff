//! The algorithms on a link that is only as real as they can notice: see `link`. What is asserted here is what each is
//! for; what the parts compute stands beside the parts.

mod flows;
mod link;

use super::after_idle;
use xylem_core::Duration;

#[test]
fn a_pause_halves_for_each_timeout_down_to_the_initial_window() {
    let after = |idle| {
        let (mut window, mut threshold) = (100_000, 50_000);
        after_idle(&mut window, &mut threshold, 10_000, Duration::from_millis(idle), Duration::from_millis(200));
        (window, threshold)
    };
    assert_eq!(after(199), (100_000, 50_000));
    assert_eq!(after(200), (50_000, 75_000));
    assert_eq!(after(599), (25_000, 75_000));
    assert_eq!(after(3_600_000), (10_000, 75_000));
}
