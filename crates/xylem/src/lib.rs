//! A user-level network protocol framework and TCP/IP stack: protocols as objects, composed by a graph. This page is the
//! tour; it walks through the crates from the bytes up to the program, one idea at each stop.
//!
//! # Bytes
//!
//! A header is declared once. From the declaration come parsing, building, the demultiplexing key, the field table and the
//! tests: see [`UdpHeader`](xylem_wire::UdpHeader), whose whole source fits on a screen, and
//! [`Header`](xylem_wire::Header) for what every declaration offers. Past the parser there are values, not slices.
//!
//! # Sessions
//!
//! A [`Session`](xylem_core::Session) is one end of one connection at one layer. It never calls its neighbour: it looks at a
//! [`Message`](xylem_core::Message), returns a [`Verdict`](xylem_core::Verdict) and fills an
//! [`Outbox`](xylem_core::Outbox); the linker carries on. So two sessions stacked are a session, whether they are chained
//! when a graph is composed ([`Chain`](xylem_core::Chain)) or typed when the program is compiled
//! ([`Stack`](xylem_core::Stack)). The sessions of one conversation are a [`Path`](xylem_core::Path): a value that owns
//! them, without locks.
//!
//! # Protocols
//!
//! A [`Protocol`](xylem_core::Protocol) opens sessions and finds the path of a message that arrives. A folder of
//! [`xylem_protocols`] is a protocol with its manual page: Ethernet, ARP, IPv4, ICMP, UDP and TCP, and toys and virtual
//! protocols to study and to test with. None imports another.
//!
//! # Graphs
//!
//! A text file says which protocol stands over which; [`xylem_graph::file`] reads it, says everything that is wrong with
//! it at once, prints it back and draws it. A running graph is an [`Instance`](xylem_graph::instance::Instance): whoever
//! runs it calls its [`turn`](xylem_graph::instance::Instance::turn) in a [`World`](xylem_graph::instance::World) with a
//! clock and devices. There are two kinds of worlds: real hosts, and the simulator ([`xylem_sim`]), which runs any number
//! of hosts in virtual time over seeded links.
//!
//! # Hosts
//!
//! [`xylem_host`] has the devices (TAP, packet sockets, an in-process wire, any of them behind an impaired link), the
//! [`Shell`](xylem_host::shell::Shell)s that give an instance its turns, and sockets shaped like the standard library's in
//! [`xylem_host::net`]:
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use xylem_host::{device::TapDevice, net::TcpStream, shell::Shell, stack::Stack, tap::{Tap, TapOptions}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tap = TapDevice::new(Tap::open("xylem0", TapOptions::default())?)?;
//! let graph = xylem::graphs::builtin("host").expect("it comes with Xylem");
//! let stack = Stack::builder().graph(graph).catalogue(xylem::catalogue::builtin()).device(tap).shell(Shell::Inline).build()?;
//! let mut stream = TcpStream::connect_on(&stack, ("10.0.0.1", 80))?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
//! stream.read_to_end(&mut Vec::new())?;
//! # Ok(())
//! # }
//! ```
//!
//! # The program
//!
//! This crate adds the [`catalogue`] of the protocols that come with Xylem, the [`graphs`] that come with it, and the
//! commands over both. A program of its own does what `xylem` does: it takes the catalogue, registers its own protocols
//! beside the built-in ones, reads a graph, and builds an instance; `examples/own-protocol` is one.
//!
//! Where to go on: `docs/map.md` follows a frame and a send through the functions, `docs/own-protocol.md` makes a protocol,
//! `docs/words.md` is the dictionary, and `docs/decisions/` says why things are as they are.

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
