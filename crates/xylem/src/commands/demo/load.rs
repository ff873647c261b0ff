//! What the processors did meanwhile, from /proc/stat: the measured half of a sentence about why something was slow.

use std::ops::Sub;

/// The time one processor has spent so far, in ticks of the kernel's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// In programs.
    pub user: u64,
    /// In the kernel, on behalf of programs.
    pub system: u64,
    /// In the kernel, on behalf of devices: here is where frames are received.
    pub interrupt: u64,
    /// With nothing to do, or taken by the machine's other guests.
    pub idle: u64,
}

impl Load {
    /// What `cpu` has spent so far; `None` where /proc/stat does not say.
    pub fn of(cpu: usize) -> Option<Load> {
        let text = std::fs::read_to_string("/proc/stat").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
        Load::parse(line)
    }

    /// The fields of proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(fields: &str) -> Option<Load> {
        let mut fields = fields.split_whitespace().map(str::parse::<u64>);
        let mut next = || fields.next()?.ok();
        let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
        let (waiting, hard, soft, stolen) = (next()?, next()?, next()?, next()?);
        Some(Load { user: user + nice, system, interrupt: hard + soft, idle: idle + waiting + stolen })
    }

    fn total(self) -> u64 {
        self.user + self.system + self.interrupt + self.idle
    }

    /// Of a span: the per cent in programs, in the kernel for programs, and in the kernel for devices.
    pub fn per_cent(self) -> (u64, u64, u64) {
        let total = self.total().max(1);
        let part = |ticks: u64| (100 * ticks + total / 2) / total;
        (part(self.user), part(self.system), part(self.interrupt))
    }

    /// Of a span: the per cent that was not idle.
    pub fn busy_per_cent(self) -> u64 {
        let total = self.total().max(1);
        (100 * (total - self.idle) + total / 2) / total
    }
}

impl Sub for Load {
    type Output = Load;
    fn sub(self, earlier: Load) -> Load {
        Load {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_the_difference_and_its_parts_add_up() {
        let before = Load::parse("10 1 20 100 5 1 2 0 0 0").expect("eight fields");
        let after = Load::parse("70 1 45 110 5 1 7 0 0 0").expect("eight fields");
        let span = after - before;
        assert_eq!(span, Load { user: 60, system: 25, interrupt: 5, idle: 10 });
        assert_eq!((span.per_cent(), span.busy_per_cent()), ((60, 25, 5), 90));
        assert_eq!(Load::parse("1 2 3"), None);
    }
}
