//! Randomness from the operating system (getrandom(2)).
#![allow(unsafe_code)]

use std::io;

/// Eight random bytes of the kernel's; waits only in the first moments after boot.
pub(crate) fn random_bytes() -> io::Result<[u8; 8]> {
    let mut bytes = [0u8; 8];
    loop {
        // SAFETY: the pointer and the length are those of `bytes`, which nobody else uses during the call.
        let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        if count == bytes.len() as isize {
            return Ok(bytes);
        }
        // A request of at most 256 bytes is never answered in part, so anything else is an error (getrandom(2)).
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
