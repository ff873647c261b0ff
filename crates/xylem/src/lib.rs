//! Floor 5 of Xylem: the program. What it adds to the crates below is a [`catalogue`] of the protocols that come with
//! Xylem, the [`graphs`] that come with it, and a command line over both.
//!
//! A program of its own does what `xylem` does: it takes the catalogue, registers its own protocols beside the built-in
//! ones, reads a graph, and builds an instance.

pub mod catalogue;
pub mod cli;
pub mod commands;
#[doc(hidden)]
pub mod fuzz;
pub mod graphs;
pub mod http;
pub mod net;
pub mod place;
pub mod services;

/// The README's example is compiled with the tests, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
