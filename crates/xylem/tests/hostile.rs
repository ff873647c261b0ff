//! Peers that mean harm, in virtual time: floods, half-open connections, readers that never read, windows that never open,
//! segments and fragments as bad as they come. After each: tables at their limits and no further, drops named and counted, an
//! honest client served meanwhile within a stated time, and after the end nothing left.

mod hostile {
    mod connects;
    mod pieces;
    mod readers;
    mod shop;
    mod station;
    mod town;
}
