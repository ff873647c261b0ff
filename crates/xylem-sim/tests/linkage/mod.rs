//! What the test of law 1 is made of: chatty sessions that do everything the interface allows, the shapes in which they
//! can be linked, a driver that does the same to each shape and writes down all that comes of it, and linkages that are
//! deliberately wrong.

pub mod chatty;
pub mod driver;
pub mod shapes;
pub mod streams;
pub mod tamper;
