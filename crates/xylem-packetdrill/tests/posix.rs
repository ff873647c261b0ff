//! The POSIX layer between two stacks on a wire inside the process, each with a table of descriptors and a thread of its
//! own. It stands here because a stack takes the catalogue of built-in protocols, which the layer's own crate must not
//! know.

#[path = "posix/calls.rs"]
mod calls;
#[path = "posix/host.rs"]
mod host;
#[path = "posix/misuse.rs"]
mod misuse;
#[path = "posix/options.rs"]
mod options;
#[path = "posix/readiness.rs"]
mod readiness;
