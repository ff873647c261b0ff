//! (in the making)
pub mod random;
pub mod time;
