//! Echoes between Xylem and the kernel, in both directions: all sizes up to 2048 bytes, every border of fragments, and five
//! hundred other sizes up to the largest there is; on other than the usual cables all borders, and a sample of the rest. What
//! was sent meanwhile is judged by an independent program.

#[allow(dead_code)]
mod kernel {
    pub mod capture;
    pub mod ping;
    pub mod place;
}

use kernel::capture::{Capture, Checksums, frames_of, is_full, judge};
use kernel::ping::{Pinger, XylemPinger, sizes};
use kernel::place::{Cable, KERNEL, Plan, XYLEM, has, run, skipped};

/// Pings Xylem with every size, and fails with what was wrong.
fn the_kernel_pings(test: &str, plan: Plan) {
    let Some(cable) = Cable::lay(test, plan) else { return };
    let (namespace, _stack) = cable.stack();
    let capture = Capture::all(&namespace);
    let mut pinger = Pinger::open(&namespace);
    let sizes = sizes(plan, plan.mtu as u64);
    let wrong: Vec<String> = sizes.iter().filter_map(|size| pinger.ping(*size).err()).take(5).collect();
    assert!(wrong.is_empty(), "{plan:?}: {wrong:#?}");
    // A request and an answer each.
    capture.end_well(test, 2 * sizes.len(), Checksums::Right);
}

/// The cables to ping on: an echo's checksum is never left to a device, so that offloads change nothing.
fn plans() -> impl Iterator<Item = Plan> {
    Plan::all().filter(|plan| plan.offloads || is_full())
}

fn xylem_pings(test: &str, plan: Plan) {
    let Some(cable) = Cable::lay(test, plan) else { return };
    let (namespace, device) = cable.into_device();
    let capture = Capture::all(&namespace);
    let sizes = sizes(plan, 1 + plan.mtu as u64);
    let expected = sizes.len();
    let count = XylemPinger::new(device, plan.mtu).ping(KERNEL, sizes.into_iter());
    assert_eq!(count, Ok(expected), "{plan:?}");
    capture.end_well(test, 2 * expected, Checksums::Right);
}

#[test]
fn the_kernel_pings_xylem_at_every_size() {
    for plan in plans() {
        the_kernel_pings("the_kernel_pings_xylem_at_every_size", plan);
    }
}

#[test]
fn xylem_pings_the_kernel_at_every_size() {
    for plan in plans() {
        xylem_pings("xylem_pings_the_kernel_at_every_size", plan);
    }
}

#[test]
fn the_program_ping_gets_every_answer_with_options_and_marks_too() {
    let test = "the_program_ping_gets_every_answer_with_options_and_marks_too";
    let Some(cable) = Cable::lay(test, Plan::default()) else { return };
    if !has(test, "ping") {
        return;
    }
    let (namespace, _stack) = cable.stack();
    let capture = Capture::all(&namespace);
    let ours = XYLEM.to_string();
    let rows: [&[&str]; 6] = [
        &["-c", "20", "-i", "0.002"],
        &["-c", "5", "-i", "0.002", "-s", "1472", "-M", "do"],
        &["-c", "5", "-i", "0.002", "-s", "65507"],
        &["-c", "5", "-i", "0.002", "-p", "ff00", "-s", "3000"],
        // Type of service, and the option that records the route (RFC 791, section 3.1), which hosts pass over.
        &["-c", "5", "-i", "0.002", "-Q", "0x10"],
        &["-c", "5", "-i", "0.002", "-R"],
    ];
    for row in rows {
        let said = run(&namespace, "ping", &[row, &["-W", "5", &ours]].concat());
        assert!(said.contains(" 0% packet loss"), "{row:?}: {said}");
        assert!(!said.contains("wrong data") && !said.contains("DUP!"), "{row:?}: {said}");
    }
    // As fast as answers come: nothing is lost, doubled or out of order.
    let said = run(&namespace, "ping", &["-A", "-q", "-c", "2000", "-s", "1000", "-W", "5", &ours]);
    assert!(said.contains("2000 packets transmitted, 2000 received, 0% packet loss"), "{said}");
    capture.end_well(test, 4090, Checksums::Right);
}

#[test]
fn the_judge_sees_a_wrong_frame() {
    let test = "the_judge_sees_a_wrong_frame";
    let Some(cable) = Cable::lay(test, Plan::default().whole()) else { return };
    let (namespace, _stack) = cable.stack();
    let capture = Capture::all(&namespace);
    Pinger::open(&namespace).ping(100).expect("an answer");
    let (frames, file, _folder) = capture.end();
    assert!(frames >= 2, "{frames}");
    let right = std::fs::read(&file).expect("it is there");
    let wrong_with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = right.clone();
        change(&mut bytes);
        std::fs::write(&file, bytes).expect("the disk has room");
        judge(&file, Checksums::Right).map(|wrong| wrong.len())
    };
    let Some(none) = wrong_with(&|_| {}) else {
        return skipped(test, "neither tshark nor tcpdump is installed (apt install tshark)");
    };
    assert_eq!(none, 0, "a right capture is held to be wrong");
    // The answer, among whatever else the kernel says: 14 bytes of Ethernet, 20 of IPv4, 8 of echo, 100 of content.
    let is_answer = |frame: &&(usize, usize)| frame.1 == 142 && right[frame.0 + 23] == 1 && right[frame.0 + 34] == 0;
    let answer = frames_of(&right).iter().find(is_answer).expect("it was captured").0;
    assert_eq!(wrong_with(&|bytes| bytes[answer + 60] ^= 4), Some(1), "a changed byte of content");
    assert_eq!(wrong_with(&|bytes| bytes[answer + 22] ^= 4), Some(1), "a changed time to live");
    // A total length beyond the frame, with a right sum: the length grows by 0x0100, so the sum shrinks by as much.
    let long = |bytes: &mut Vec<u8>| {
        bytes[answer + 16] += 1;
        let sum = u16::from_be_bytes([bytes[answer + 24], bytes[answer + 25]]);
        let sum = sum.checked_sub(0x0100).unwrap_or(sum.wrapping_sub(0x0101));
        bytes[answer + 24..answer + 26].copy_from_slice(&sum.to_be_bytes());
    };
    assert_eq!(wrong_with(&long), Some(1), "a packet longer than its frame");
}
