//! The cookie by which a server knows a client again and takes data with its SYN.

use core::fmt;

/// A TCP Fast Open cookie (RFC 7413, section 4.1.1): an even number of bytes from 4 to 16, or none, which asks for one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FastOpenCookie {
    // Places beyond the count are zero, so that equal cookies are equal values.
    bytes: [u8; FastOpenCookie::MAX],
    count: u8,
}

impl FastOpenCookie {
    /// Fewest bytes of a cookie that is no request.
    pub const MIN: usize = 4;
    /// Most bytes of a cookie.
    pub const MAX: usize = 16;
    /// Asks the server for a cookie.
    pub const REQUEST: FastOpenCookie = FastOpenCookie { bytes: [0; FastOpenCookie::MAX], count: 0 };

    /// A cookie of these bytes; `None` if no cookie has so many.
    pub fn new(cookie: &[u8]) -> Option<FastOpenCookie> {
        let possible =
            (FastOpenCookie::MIN..=FastOpenCookie::MAX).contains(&cookie.len()) && cookie.len().is_multiple_of(2);
        if !cookie.is_empty() && !possible {
            return None;
        }
        let mut bytes = [0; FastOpenCookie::MAX];
        bytes[..cookie.len()].copy_from_slice(cookie);
        // At most sixteen bytes, as was just checked.
        Some(FastOpenCookie { bytes, count: cookie.len() as u8 })
    }

    /// The cookie's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.count)]
    }

    /// How many bytes there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none: this asks for a cookie.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A random cookie or request, for tests.
    pub(crate) fn generate(next: &mut dyn FnMut() -> u64) -> FastOpenCookie {
        const LENGTHS: [usize; 8] = [0, 4, 6, 8, 10, 12, 14, 16];
        let length = LENGTHS[(next() % LENGTHS.len() as u64) as usize];
        let bytes = (u128::from(next()) << 64 | u128::from(next())).to_be_bytes();
        FastOpenCookie::new(&bytes[..length]).expect("all the lengths above are possible")
    }
}

impl fmt::Debug for FastOpenCookie {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "FastOpenCookie(")?;
        for byte in self.as_bytes() {
            write!(out, "{byte:02x}")?;
        }
        write!(out, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_even_lengths_from_four_to_sixteen_and_none_are_cookies() {
        let lengths = (0..20).filter(|length| FastOpenCookie::new(&[7; 20][..*length]).is_some());
        assert_eq!(lengths.collect::<Vec<_>>(), [0, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(FastOpenCookie::new(&[]), Some(FastOpenCookie::REQUEST));
        assert_eq!(FastOpenCookie::new(&[1, 2, 3, 4]).map(|cookie| cookie.as_bytes().to_vec()), Some(vec![1, 2, 3, 4]));
    }
}
