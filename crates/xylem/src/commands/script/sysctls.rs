//! The kernel's settings for a script, in the calling thread's namespace: each of the script's, and those of the kernel's
//! own habits that are no part of any rule, such as remembering a peer from one connection to the next.

use std::fs;
use xylem_sim::script::{Setting, Settings};

/// Says a script's settings to the kernel.
///
/// # Errors
/// One that the kernel does not take.
pub fn apply(settings: &Settings) -> Result<(), String> {
    let truth = |on: bool| u8::from(on).to_string();
    let mut values = vec![
        ("ipv4/tcp_timestamps", truth(settings.timestamps)),
        ("ipv4/tcp_sack", truth(settings.sack)),
        ("ipv4/tcp_dsack", truth(settings.sack)),
        ("ipv4/tcp_window_scaling", truth(settings.scaling)),
        ("ipv4/tcp_ecn", ecn(settings.ecn).to_owned()),
        ("ipv4/tcp_syncookies", cookies(settings.cookies).to_owned()),
        ("ipv4/tcp_fastopen", if settings.fast_open { "3" } else { "0" }.to_owned()),
        ("ipv4/tcp_congestion_control", settings.congestion.clone()),
        ("ipv4/tcp_no_metrics_save", "1".to_owned()),
        // Answers to what may come from others are limited over all connections, or in time; ours are by their count.
        ("ipv4/tcp_invalid_ratelimit", "0".to_owned()),
        ("ipv4/tcp_rfc1337", "1".to_owned()),
        ("ipv4/tcp_autocorking", "0".to_owned()),
        ("ipv4/tcp_syn_linear_timeouts", "0".to_owned()),
        ("ipv6/conf/all/disable_ipv6", "1".to_owned()),
    ];
    if let Some(bytes) = settings.receive_buffer {
        // Half of the kernel's buffer is for its own keeping of books, as long as it has not seen better.
        values.push(("ipv4/tcp_rmem", format!("4096 {0} {0}", 2 * bytes)));
    }
    for (name, value) in values {
        let path = format!("/proc/sys/net/{name}");
        fs::write(&path, &value).map_err(|error| format!("{value} into {path}: {error}"))?;
    }
    Ok(())
}

fn ecn(setting: Setting) -> &'static str {
    match setting {
        Setting::Off => "0",
        Setting::On => "1",
        Setting::Passive => "2",
    }
}

fn cookies(setting: Setting) -> &'static str {
    match setting {
        Setting::Off => "0",
        Setting::Passive => "1",
        Setting::On => "2",
    }
}
