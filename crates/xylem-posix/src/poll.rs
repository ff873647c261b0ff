//! poll(2) over the descriptors of a table.

use crate::bell::Bell;
use crate::errno::Errno;
use crate::table::{DESCRIPTORS_MAX, Descriptors, Open};
use std::sync::Arc;
use std::time::Duration;

/// One descriptor to look at, as `struct pollfd` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollEntry {
    /// Which; a negative one is skipped.
    pub descriptor: i32,
    /// What is asked for, in the bits of poll(2).
    pub events: i16,
    /// What was found.
    pub found: i16,
}

/// What is said whether it was asked for or not.
pub(crate) const ALWAYS: i16 = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;

/// A timeout in milliseconds as C gives it: negative is for ever.
pub(crate) fn span(timeout_ms: i32) -> Option<Duration> {
    u64::try_from(timeout_ms).ok().map(Duration::from_millis)
}

impl Descriptors {
    /// Waits until something that is asked for is so, for at most `timeout_ms` milliseconds (negative: for ever). How many
    /// entries have found something.
    ///
    /// # Errors
    /// EINVAL for more entries than there can be descriptors.
    pub fn poll(&self, entries: &mut [PollEntry], timeout_ms: i32) -> Result<usize, Errno> {
        if entries.len() > DESCRIPTORS_MAX {
            return Err(Errno(libc::EINVAL));
        }
        let opened: Vec<Option<Arc<Open>>> = entries.iter().map(|entry| self.find(entry.descriptor).ok()).collect();
        let bells: Vec<&Bell> = opened.iter().flatten().map(|open| &*open.bell).collect();
        let mut look = || {
            let mut count = 0;
            for (entry, open) in entries.iter_mut().zip(&opened) {
                entry.found = match open {
                    Some(open) => Descriptors::readiness_of(open) & (entry.events | ALWAYS),
                    None if entry.descriptor < 0 => 0,
                    None => libc::POLLNVAL,
                };
                count += usize::from(entry.found != 0);
            }
            (count > 0).then_some(Ok(count))
        };
        let may_not_wait = timeout_ms == 0;
        match self.wait_for_any(&bells, may_not_wait, self.deadline(span(timeout_ms)), &mut look) {
            Err(Errno(libc::EAGAIN)) => Ok(0),
            answer => answer,
        }
    }
}
