//! What goes wrong with a socket, in the kinds that the standard library gives: a program's error handling stays as it
//! is. The message says more where the stack knows more.

use crate::shell::Ended;
use std::io::{Error, ErrorKind};
use xylem_core::{EnableError, OpenError};

/// Why a path did not open.
pub(crate) fn open_error(error: OpenError) -> Error {
    let kind = match &error {
        OpenError::InUse => ErrorKind::AddrInUse,
        OpenError::NoRoute(_) => ErrorKind::NetworkUnreachable,
        OpenError::NotOurAddress(_) | OpenError::NoFreePort => ErrorKind::AddrNotAvailable,
        OpenError::NotAPeer(_) | OpenError::MissingParticipant { .. } | OpenError::Record(_) => ErrorKind::InvalidInput,
        OpenError::Full(_) => ErrorKind::OutOfMemory,
        OpenError::NoEmbryo => ErrorKind::ConnectionAborted,
        OpenError::NoLower(_) => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    };
    Error::new(kind, error)
}

/// Why an enable was not made.
pub(crate) fn enable_error(error: EnableError) -> Error {
    let kind = match &error {
        EnableError::InUse => ErrorKind::AddrInUse,
        EnableError::NotOurAddress(_) | EnableError::NoFreePort => ErrorKind::AddrNotAvailable,
        EnableError::MissingParticipant { .. } => ErrorKind::InvalidInput,
        EnableError::Full(_) => ErrorKind::OutOfMemory,
        EnableError::NotHere => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    };
    Error::new(kind, error)
}

/// Why a wait ended. A timeout set on a socket is told as the standard library tells it on this system.
pub(crate) fn ended(why: Ended) -> Error {
    match why {
        Ended::TimedOut => ErrorKind::WouldBlock.into(),
        Ended::Stopped => Error::new(ErrorKind::NotConnected, "the stack was stopped"),
    }
}

/// The graph has no such protocol.
pub(crate) fn no_protocol(protocol: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("open a socket: expected a node of {protocol} in the graph, got none"))
}

/// The pool is empty.
pub(crate) fn no_buffer() -> Error {
    Error::new(ErrorKind::OutOfMemory, "the stack has no buffer left")
}
