//! Records: what a session exports so that another instance can go on from there, perhaps in another process. A record
//! that comes from a process is hostile until it has been read.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest record in bytes: a path's headers and counters, never its queued data.
pub const RECORD_MAX: usize = 64 * 1024;

/// A sequence of values written by `export` and read back by `import` in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    bytes: Vec<u8>,
    read: usize,
}

/// A record does not hold what its reader expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Where reading stopped, in bytes from the front.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl std::fmt::Display for BadRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bad record: expected {} at byte {}", self.expected, self.at)
    }
}

impl std::error::Error for BadRecord {}

impl Record {
    /// A record of bytes from elsewhere.
    pub fn from_bytes(bytes: Vec<u8>) -> Record {
        Record { bytes, read: 0 }
    }

    /// All its bytes, read or not.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes a value behind the others.
    pub fn put<T: Serialize>(&mut self, value: &T) {
        self.bytes = postcard::to_extend(value, std::mem::take(&mut self.bytes))
            .expect("a session's state is plain data, which always serialises");
        assert!(self.bytes.len() <= RECORD_MAX, "a record of {} bytes; the limit is {RECORD_MAX}", self.bytes.len());
    }

    /// Reads the next value; `expected` names it in the error.
    pub fn take<T: DeserializeOwned>(&mut self, expected: &'static str) -> Result<T, BadRecord> {
        let error = BadRecord { at: self.read, expected };
        let rest = self.bytes.get(self.read..).ok_or(error)?;
        let (value, left) = postcard::take_from_bytes(rest).map_err(|_| error)?;
        self.read = self.bytes.len() - left.len();
        Ok(value)
    }

    /// Whether everything has been read.
    pub fn is_exhausted(&self) -> bool {
        self.read == self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_order_and_garbage_is_an_error() {
        let mut record = Record::default();
        record.put(&7u32);
        record.put(&Some(String::from("seven")));
        assert_eq!(record.take::<u32>("a number"), Ok(7));
        assert_eq!(record.take::<Option<String>>("a word"), Ok(Some("seven".into())));
        assert!(record.is_exhausted());
        let error = record.take::<u32>("one more").unwrap_err();
        assert_eq!(error.to_string(), format!("bad record: expected one more at byte {}", record.as_bytes().len()));
        assert!(Record::from_bytes(vec![0xff; 40]).take::<String>("text").is_err());
    }
}
