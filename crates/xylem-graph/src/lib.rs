//! (in the making)
pub mod build;
pub mod file;
pub mod instance;
pub mod link;
