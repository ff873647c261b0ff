//! What the kernel says of its own TCP connections: the numbers a comparison with ours needs beside what arrives.

use crate::system::socket;
use std::io;
use std::net::TcpStream;

/// The state of one of the kernel's connections, as far as it is compared with ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelStatus {
    /// Segments sent again so far.
    pub retransmitted: u64,
    /// Payload bytes of a full segment.
    pub segment_size: usize,
    /// The congestion window in segments.
    pub congestion_window: usize,
}

/// How `stream` is doing (tcp(7), TCP_INFO).
///
/// # Errors
/// The kernel does not know the option.
pub fn status(stream: &TcpStream) -> io::Result<KernelStatus> {
    use std::os::fd::AsFd;
    let info = socket::tcp_info(stream.as_fd())?;
    Ok(KernelStatus {
        retransmitted: info.tcpi_total_retrans.into(),
        segment_size: info.tcpi_snd_mss as usize,
        congestion_window: info.tcpi_snd_cwnd as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_fresh_connection_has_sent_nothing_again_and_has_a_segment_size() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("its address")).expect("somebody listens");
        let status = status(&stream).expect("a kernel of this century");
        assert!(status.retransmitted == 0 && status.segment_size >= 536, "{status:?}");
        // RFC 6928: ten segments, which every kernel has had for long.
        assert!((2..=100).contains(&status.congestion_window), "{status:?}");
    }
}
