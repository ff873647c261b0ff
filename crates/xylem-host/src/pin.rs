//! Where a polling thread runs and how urgently. A thread that spins wants a CPU of its own and the kernel's patience;
//! both are requests that may be refused, so what took effect is said, for people and for benchmark reports.

use crate::system::scheduling;
use std::fmt;
use std::io;
use std::time::Duration;

/// The most urgent nice value.
const NICE_MOST_URGENT: i32 = -20;

/// The CPUs the calling thread may run on, in ascending order.
///
/// # Errors
/// The machine has more CPUs than the C library's mask can name (1024).
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    scheduling::cpus()
}

/// Lets the calling thread run on `cpu` only, and threads it starts from now on as well.
///
/// # Errors
/// The CPU does not exist, or this process may not use it; the error says which it may.
pub fn pin(cpu: usize) -> Result<(), PinError> {
    let answer = if cpu < scheduling::CPUS_MAX {
        scheduling::set_cpu(cpu)
    } else {
        Err(io::Error::from_raw_os_error(libc::EINVAL))
    };
    answer.map_err(|source| PinError { cpu, allowed: allowed_cpus().unwrap_or_default(), source })
}

/// A thread that could not be pinned.
#[derive(Debug)]
pub struct PinError {
    /// The CPU asked for.
    pub cpu: usize,
    /// The CPUs this thread may have.
    pub allowed: Vec<usize>,
    /// The system call's error.
    pub source: io::Error,
}

impl fmt::Display for PinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "pin to a CPU: expected one of {:?}, got {} ({})", self.allowed, self.cpu, self.source)
    }
}

impl std::error::Error for PinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// What [`raise_priority`] achieved; prints as one line.
#[derive(Debug)]
pub struct Raised {
    /// Nice -20 for the thread: nothing, or why not.
    pub nice: Result<(), String>,
    /// Nice -20 for the session's group of processes: nothing, or why not. With automatic groups on, a thread's nice
    /// value weighs only against threads of the same session (sched(7)), so this is what counts against others.
    pub group: Result<(), String>,
    /// Waits that end on time (timer slack one nanosecond): nothing, or why not.
    pub timer: Result<(), String>,
}

/// Asks for the most the kernel gives the calling thread short of real-time scheduling, which a spinning thread would
/// use to lock up its CPU. Best effort: whatever is refused stays as it was.
///
/// The session's group is raised only by the process that leads the session (setsid(2)): in another's session it would
/// raise programs that did not ask.
pub fn raise_priority() -> Raised {
    Raised {
        nice: scheduling::set_nice(NICE_MOST_URGENT).map_err(|error| error.to_string()),
        group: raise_group(),
        timer: scheduling::set_timer_slack(1).map_err(|error| error.to_string()),
    }
}

/// Asks that the calling thread's waits end on time: the timer slack becomes a nanosecond in place of fifty
/// microseconds.
///
/// # Errors
/// The kernel's refusal.
pub fn wait_exactly() -> io::Result<()> {
    scheduling::set_timer_slack(1)
}

/// What the calling thread has had of the processors so far.
pub fn thread_share() -> ThreadShare {
    // Two numbers of nanoseconds and one of slices (the kernel's Documentation/scheduler/sched-stats.rst).
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let mut fields = text.split_whitespace().map(|field| field.parse().map_or(Duration::ZERO, Duration::from_nanos));
    let _ran = fields.next();
    ThreadShare { ran: scheduling::thread_time().unwrap_or_default(), waited: fields.next().unwrap_or_default() }
}

/// What a thread has had of the processors; zero where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadShare {
    /// It ran, in user and kernel mode.
    pub ran: Duration,
    /// It could have run, but others had the processors.
    pub waited: Duration,
}

fn raise_group() -> Result<(), String> {
    if !scheduling::leads_session() {
        return Err("the session belongs to another process: start with setsid".into());
    }
    std::fs::write("/proc/self/autogroup", NICE_MOST_URGENT.to_string()).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => "this kernel has no automatic groups".into(),
        _ => error.to_string(),
    })
}

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |outcome: &Result<(), String>| match outcome {
            Ok(()) => "yes".into(),
            Err(reason) => format!("no ({reason})"),
        };
        let (nice, group, timer) = (say(&self.nice), say(&self.group), say(&self.timer));
        write!(formatter, "thread nice -20: {nice}; session nice -20: {group}; timers on time: {timer}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::scheduling::tests::before_start;
    use crate::testing;
    use std::process::Command;
    use std::thread;

    #[test]
    fn a_pinned_thread_stays_and_its_neighbours_do_not_follow() {
        let before = allowed_cpus().expect("a small machine");
        let last = *before.last().expect("a thread runs somewhere");
        let pinned = thread::spawn(move || {
            pin(last).expect("the CPU is allowed");
            allowed_cpus().expect("a small machine")
        });
        assert_eq!(pinned.join().expect("pinning does not panic"), [last]);
        assert_eq!(allowed_cpus().expect("a small machine"), before);
    }

    #[test]
    fn a_missing_cpu_is_said_with_those_that_are_there() {
        for missing in [1023, 1024, usize::MAX] {
            let error = pin(missing).expect_err("no such CPU").to_string();
            let allowed = format!("{:?}", allowed_cpus().expect("a small machine"));
            assert!(error.contains(&allowed) && error.contains(&missing.to_string()), "{error}");
        }
    }

    #[test]
    fn priority_is_raised_for_the_thread_and_for_the_session_it_leads() {
        let mut command = Command::new("cat");
        command.args(["/proc/self/autogroup", "/proc/self/stat"]);
        before_start(&mut command, || {
            scheduling::tests::start_session()?;
            let raised = raise_priority();
            let all = [raised.nice, raised.group, raised.timer];
            if all.iter().all(Result::is_ok) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
        });
        let output = match command.output() {
            Ok(output) => output,
            Err(error) => {
                let test = "priority_is_raised_for_the_thread_and_for_the_session_it_leads";
                return testing::skipped(test, &format!("needs CAP_SYS_NICE and automatic groups: {error}"));
            }
        };
        let text = String::from_utf8(output.stdout).expect("both files are ASCII");
        let (group, stat) = text.split_once('\n').expect("two lines");
        assert!(group.ends_with("nice -20"), "{group}");
        // Field 19 of proc_pid_stat(5), counted from the one after the name's closing parenthesis, which is field 3.
        let nice = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(16));
        assert_eq!(nice, Some("-20"), "{stat}");
    }

    #[test]
    fn another_processes_session_is_left_alone() {
        // A child of this process leads no session unless it starts one.
        let mut command = Command::new("true");
        before_start(&mut command, || match raise_group() {
            Err(reason) if reason.contains("setsid") => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        });
        assert!(command.status().expect("the group was left alone").success());
    }
}
