//! What TCP does, seen from outside: two of them over a link that does what links do, and one against a script of exact
//! segments. Nothing here knows IP: a tiny linker offers facts and carries segments with their addresses.

mod autotune;
mod blind;
mod closing;
mod congestion;
mod cookies;
mod ecn;
mod fast_open;
mod handshake;
mod host;
mod hostile;
mod link;
mod losses;
mod moving;
mod options;
mod own;
mod path_mtu;
mod recovering;
mod script;
mod selective;
mod streams;
mod supersegments;
mod timers;
mod windows;
