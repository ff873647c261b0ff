//! getsockopt and setsockopt (socket(7), tcp(7), ip(7), ipv6(7)). What a connection can be told while it is open is told at
//! once; all of it is kept, so that it can be asked for, and so that a listener's connections inherit it.

use crate::errno::Errno;
use crate::info;
use crate::lock;
use crate::settings::{KEEP_ALIVE_IDLE, Settings};
use crate::stream::{Role, StreamSocket};
use crate::table::{Descriptors, File, Open};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use xylem_core::{Setting, ShortName};

const NO_OPTION: Errno = Errno(libc::ENOPROTOOPT);
const WRONG: Errno = Errno(libc::EINVAL);

/// What Linux calls the bits of congestion marks in the field of the service.
const MARK_BITS: i32 = 3;
/// What the retransmission of SYNs is if nobody says otherwise (tcp_syn_retries), for those who ask.
const OPEN_TRIES: i32 = 6;
/// Idle seconds, probes and tries have these limits (MAX_TCP_KEEPIDLE and its like).
const KEEP_ALIVE_SECONDS: std::ops::RangeInclusive<i32> = 1..=32_767;
const COUNTS: std::ops::RangeInclusive<i32> = 1..=127;
/// The sizes TCP_MAXSEG may have (tcp(7)): what a segment needs at least, and a window without scaling.
const SEGMENT_SIZES: std::ops::RangeInclusive<i32> = 88..=32_767;

impl Descriptors {
    /// setsockopt(2).
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, EINVAL for a value that is too short or cannot be, ENOPROTOOPT, ENOENT for a congestion control
    /// that nobody knows.
    pub fn setsockopt(&self, descriptor: i32, level: i32, name: i32, value: &[u8]) -> Result<(), Errno> {
        let open = self.find(descriptor)?;
        let settings = settings_of(&open)?;
        let stream = if let File::Stream(stream) = &open.file { Some(stream) } else { None };
        match level {
            libc::SOL_SOCKET => set_socket(stream, settings, name, value),
            libc::IPPROTO_TCP => set_tcp(stream.ok_or(NO_OPTION)?, name, value),
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => set_ip(stream, settings, level, name, value),
            _ => Err(NO_OPTION),
        }
    }

    /// getsockopt(2): as much of the value as fits into `into`; how much that is.
    ///
    /// # Errors
    /// EBADF, ENOTSOCK, ENOPROTOOPT.
    pub fn getsockopt(&self, descriptor: i32, level: i32, name: i32, into: &mut [u8]) -> Result<usize, Errno> {
        let open = self.find(descriptor)?;
        let settings = lock(settings_of(&open)?).clone();
        let value = match level {
            libc::SOL_SOCKET => say_socket(&open, &settings, name)?,
            libc::IPPROTO_TCP => say_tcp(open.stream().map_err(|_| NO_OPTION)?, &settings, name)?,
            libc::IPPROTO_IP | libc::IPPROTO_IPV6 => say_ip(&open, &settings, level, name)?,
            _ => return Err(NO_OPTION),
        };
        let count = value.len().min(into.len());
        into[..count].copy_from_slice(&value[..count]);
        Ok(count)
    }
}

fn settings_of(open: &Open) -> Result<&Mutex<Settings>, Errno> {
    match &open.file {
        File::Stream(stream) => Ok(&stream.settings),
        File::Datagram(socket) => Ok(&socket.settings),
        File::Epoll(_) | File::Pipe(_) => Err(Errno(libc::ENOTSOCK)),
    }
}

/// The int at the front of a value.
fn int(value: &[u8]) -> Result<i32, Errno> {
    value.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or(WRONG)
}

/// An int within limits.
fn int_within(value: &[u8], limits: std::ops::RangeInclusive<i32>) -> Result<i32, Errno> {
    int(value).and_then(|value| if limits.contains(&value) { Ok(value) } else { Err(WRONG) })
}

fn said(value: i32) -> Vec<u8> {
    value.to_ne_bytes().to_vec()
}

fn seconds(value: i32) -> Duration {
    Duration::from_secs(u64::try_from(value).unwrap_or(0))
}

fn in_seconds(span: Duration) -> i32 {
    i32::try_from(span.as_secs()).unwrap_or(i32::MAX)
}

/// A `struct timeval` of a timeout; zero is none.
fn timeout(value: &[u8]) -> Result<Option<Duration>, Errno> {
    let long =
        |at: usize| value.get(at..at + 8).and_then(|bytes| bytes.first_chunk()).map(|it| i64::from_ne_bytes(*it));
    let (Some(whole), Some(micros)) = (long(0), long(8)) else { return Err(WRONG) };
    if !(0..1_000_000).contains(&micros) {
        return Err(Errno(libc::EDOM));
    }
    // A negative time is none at all, as on Linux.
    let span = Duration::from_secs(u64::try_from(whole).unwrap_or(0)) + Duration::from_micros(micros as u64);
    Ok(Some(span).filter(|span| !span.is_zero()))
}

fn said_timeout(span: Option<Duration>) -> Vec<u8> {
    let span = span.unwrap_or_default();
    let mut value = (span.as_secs() as i64).to_ne_bytes().to_vec();
    value.extend(i64::from(span.subsec_micros()).to_ne_bytes());
    value
}

/// Tells an open connection.
fn tell(stream: Option<&StreamSocket>, wish: Setting) {
    if let Some(connection) = stream.and_then(StreamSocket::connection) {
        connection.wish(wish);
    }
}

fn set_socket(stream: Option<&StreamSocket>, settings: &Mutex<Settings>, name: i32, value: &[u8]) -> Result<(), Errno> {
    if matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        let span = timeout(value)?;
        let mut settings = lock(settings);
        let place = if name == libc::SO_RCVTIMEO { &mut settings.receive_timeout } else { &mut settings.send_timeout };
        *place = span;
        return Ok(());
    }
    let number = int(value)?;
    let is_on = number != 0;
    let mut settings: MutexGuard<'_, Settings> = lock(settings);
    match name {
        libc::SO_REUSEADDR => settings.reuse_address = is_on,
        libc::SO_REUSEPORT => settings.reuse_port = is_on,
        libc::SO_BROADCAST => settings.broadcast = is_on,
        libc::SO_OOBINLINE => settings.out_of_band_inline = is_on,
        libc::SO_PRIORITY => settings.priority = number,
        libc::SO_LINGER => {
            let span = int(value.get(4..).ok_or(WRONG)?)?;
            settings.linger = is_on.then(|| seconds(span));
        }
        libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => {
            let bytes = usize::try_from(number).unwrap_or(0);
            settings.receive_buffer = Some(bytes);
            drop(settings);
            tell(stream, Setting::ReceiveBuffer(bytes));
        }
        libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => {
            let bytes = usize::try_from(number).unwrap_or(0);
            settings.send_buffer = Some(bytes);
            drop(settings);
            tell(stream, Setting::SendBuffer(bytes));
        }
        libc::SO_KEEPALIVE => {
            settings.keep_alive = is_on;
            let idle = settings.probing();
            drop(settings);
            tell(stream, Setting::KeepAlive(idle));
        }
        _ => return Err(NO_OPTION),
    }
    Ok(())
}

fn say_socket(open: &Open, settings: &Settings, name: i32) -> Result<Vec<u8>, Errno> {
    let (domain, kind, protocol) = match &open.file {
        File::Stream(stream) => (stream.domain, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        File::Datagram(socket) => (socket.domain, libc::SOCK_DGRAM, libc::IPPROTO_UDP),
        File::Epoll(_) | File::Pipe(_) => return Err(Errno(libc::ENOTSOCK)),
    };
    let status = || if let File::Stream(stream) = &open.file { stream.status() } else { None };
    // Linux reckons with twice of what was asked for, and says so.
    let buffer = |asked: Option<usize>, has: Option<usize>| {
        let bytes = asked.map(|bytes| bytes.saturating_mul(2)).or(has).unwrap_or(0);
        said(i32::try_from(bytes).unwrap_or(i32::MAX))
    };
    Ok(match name {
        libc::SO_TYPE => said(kind),
        libc::SO_DOMAIN => said(domain),
        libc::SO_PROTOCOL => said(protocol),
        libc::SO_ERROR => said(match &open.file {
            File::Stream(stream) => stream.take_error().map_or(0, |error| error.0),
            File::Datagram(socket) => {
                let error = socket.socket().and_then(|socket| socket.take_error().ok().flatten());
                error.map_or(0, |error| Errno::from(error).0)
            }
            File::Epoll(_) | File::Pipe(_) => 0,
        }),
        libc::SO_ACCEPTCONN => {
            let listens = |stream: &StreamSocket| matches!(lock(&stream.state).role, Role::Listening(_));
            said(i32::from(open.stream().is_ok_and(listens)))
        }
        libc::SO_REUSEADDR => said(i32::from(settings.reuse_address)),
        libc::SO_REUSEPORT => said(i32::from(settings.reuse_port)),
        libc::SO_BROADCAST => said(i32::from(settings.broadcast)),
        libc::SO_OOBINLINE => said(i32::from(settings.out_of_band_inline)),
        libc::SO_KEEPALIVE => said(i32::from(settings.keep_alive)),
        libc::SO_PRIORITY => said(settings.priority),
        libc::SO_LINGER => {
            let mut value = said(i32::from(settings.linger.is_some()));
            value.extend(said(in_seconds(settings.linger.unwrap_or_default())));
            value
        }
        libc::SO_RCVBUF => buffer(settings.receive_buffer, status().map(|status| status.receive_buffer)),
        libc::SO_SNDBUF => buffer(settings.send_buffer, status().map(|status| status.send_buffer)),
        libc::SO_RCVTIMEO => said_timeout(settings.receive_timeout),
        libc::SO_SNDTIMEO => said_timeout(settings.send_timeout),
        _ => return Err(NO_OPTION),
    })
}

fn set_tcp(stream: &StreamSocket, name: i32, value: &[u8]) -> Result<(), Errno> {
    if name == libc::TCP_CONGESTION {
        let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
        let name = std::str::from_utf8(text).ok().and_then(ShortName::new).ok_or(Errno(libc::ENOENT))?;
        return set_congestion(stream, name);
    }
    let number = int(value)?;
    let mut settings = lock(&stream.settings);
    let wish = match name {
        libc::TCP_NODELAY => {
            settings.no_delay = number != 0;
            Setting::NoDelay(number != 0)
        }
        libc::TCP_CORK => {
            settings.cork = number != 0;
            Setting::Cork(number != 0)
        }
        libc::TCP_MAXSEG => {
            let size = int_within(value, SEGMENT_SIZES)? as u16;
            settings.segment_size = Some(size);
            Setting::SegmentSize(size)
        }
        libc::TCP_KEEPIDLE => {
            settings.keep_alive_idle = Some(seconds(int_within(value, KEEP_ALIVE_SECONDS)?));
            Setting::KeepAlive(settings.probing())
        }
        libc::TCP_KEEPINTVL => {
            let span = seconds(int_within(value, KEEP_ALIVE_SECONDS)?);
            settings.keep_alive_interval = Some(span);
            Setting::KeepAliveInterval(span)
        }
        libc::TCP_KEEPCNT => {
            let count = int_within(value, COUNTS)? as u8;
            settings.keep_alive_probes = Some(count);
            Setting::KeepAliveProbes(count)
        }
        libc::TCP_SYNCNT => {
            let count = int_within(value, COUNTS)? as u8;
            settings.open_tries = Some(count);
            Setting::OpenTries(count)
        }
        libc::TCP_USER_TIMEOUT => {
            let millis = u64::try_from(number).map_err(|_| WRONG)?;
            settings.user_timeout = Some(Duration::from_millis(millis)).filter(|span| !span.is_zero());
            Setting::UserTimeout(settings.user_timeout)
        }
        libc::TCP_DEFER_ACCEPT => {
            settings.defer_accept = Some(seconds(number)).filter(|span| !span.is_zero());
            return Ok(());
        }
        libc::TCP_LINGER2 => {
            settings.linger_in_fin_wait = number;
            return Ok(());
        }
        libc::TCP_QUICKACK => {
            settings.quick_acknowledgment = number != 0;
            return Ok(());
        }
        libc::TCP_NOTSENT_LOWAT => {
            settings.unsent_low_water = Some(usize::try_from(number).unwrap_or(usize::MAX));
            return Ok(());
        }
        libc::TCP_FASTOPEN => {
            settings.fast_open = usize::try_from(number).map_err(|_| WRONG)?;
            return Ok(());
        }
        _ => return Err(NO_OPTION),
    };
    drop(settings);
    tell(Some(stream), wish);
    Ok(())
}

/// A connection says whether it knows the name by changing over to it; a socket without one is asked later.
fn set_congestion(stream: &StreamSocket, name: ShortName) -> Result<(), Errno> {
    if let Some(connection) = stream.connection() {
        connection.wish(Setting::Congestion(name));
        if stream.status().is_some_and(|status| status.congestion_control != name.as_str()) {
            return Err(Errno(libc::ENOENT));
        }
    }
    lock(&stream.settings).congestion = Some(name);
    Ok(())
}

fn say_tcp(stream: &StreamSocket, settings: &Settings, name: i32) -> Result<Vec<u8>, Errno> {
    let status = || stream.status().unwrap_or_default();
    Ok(match name {
        libc::TCP_INFO => match (stream.status(), &lock(&stream.state).role) {
            (Some(status), _) => info::layout(&status),
            (None, Role::Listening(_)) => info::without_connection(info::LISTENS),
            (None, Role::Fresh | Role::Connection { .. }) => info::without_connection(info::CLOSED),
        },
        libc::TCP_NODELAY => said(i32::from(settings.no_delay)),
        libc::TCP_CORK => said(i32::from(settings.cork)),
        libc::TCP_MAXSEG => match stream.status() {
            Some(status) => said(i32::try_from(status.segment_size).unwrap_or(i32::MAX)),
            // RFC 9293, MUST-15.
            None => said(settings.segment_size.map_or(536, i32::from)),
        },
        libc::TCP_KEEPIDLE => said(in_seconds(settings.keep_alive_idle.unwrap_or(KEEP_ALIVE_IDLE))),
        libc::TCP_KEEPINTVL => said(settings.keep_alive_interval.map_or(75, in_seconds)),
        libc::TCP_KEEPCNT => said(settings.keep_alive_probes.map_or(9, i32::from)),
        libc::TCP_SYNCNT => said(settings.open_tries.map_or(OPEN_TRIES, i32::from)),
        libc::TCP_USER_TIMEOUT => {
            let millis = settings.user_timeout.unwrap_or_default().as_millis();
            said(i32::try_from(millis).unwrap_or(i32::MAX))
        }
        libc::TCP_DEFER_ACCEPT => said(in_seconds(settings.defer_accept.unwrap_or_default())),
        libc::TCP_LINGER2 => said(settings.linger_in_fin_wait),
        libc::TCP_QUICKACK => said(i32::from(settings.quick_acknowledgment)),
        libc::TCP_NOTSENT_LOWAT => said(settings.unsent_low_water.map_or(-1, |it| i32::try_from(it).unwrap_or(-1))),
        libc::TCP_FASTOPEN => said(i32::try_from(settings.fast_open).unwrap_or(i32::MAX)),
        libc::TCP_CONGESTION => {
            let own = settings.congestion.map(|name| name.as_str().to_owned());
            let name = own.unwrap_or_else(|| status().congestion_control.to_owned());
            let mut value = name.into_bytes();
            // As long as the kernel's names are at most, zeros behind it.
            value.resize(ShortName::LENGTH_MAX + 1, 0);
            value
        }
        _ => return Err(NO_OPTION),
    })
}

fn set_ip(
    stream: Option<&StreamSocket>,
    settings: &Mutex<Settings>,
    level: i32,
    name: i32,
    value: &[u8],
) -> Result<(), Errno> {
    // Options of IPv4 may be a byte alone.
    let number = match value {
        [byte] => i32::from(*byte),
        value => int(value)?,
    };
    let mut settings = lock(settings);
    let wish = match (level, name) {
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            let class = (number & 0xff & !MARK_BITS) as u8;
            settings.traffic_class = Some(class);
            Setting::TrafficClass(class)
        }
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
            let hops = match number {
                -1 => 64,
                number => u8::try_from(number).ok().filter(|hops| *hops > 0).ok_or(WRONG)?,
            };
            settings.hop_limit = Some(hops);
            Setting::HopLimit(hops)
        }
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
            if !(0..=5).contains(&number) {
                return Err(WRONG);
            }
            settings.path_mtu_discovery = Some(number);
            return Ok(());
        }
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            settings.receive_errors = number != 0;
            return Ok(());
        }
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
            settings.only_ipv6 = number != 0;
            return Ok(());
        }
        _ => return Err(NO_OPTION),
    };
    drop(settings);
    tell(stream, wish);
    Ok(())
}

fn say_ip(open: &Open, settings: &Settings, level: i32, name: i32) -> Result<Vec<u8>, Errno> {
    Ok(match (level, name) {
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            said(settings.traffic_class.map_or(0, i32::from))
        }
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => {
            said(settings.hop_limit.map_or(64, i32::from))
        }
        (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER) | (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER) => {
            said(settings.path_mtu_discovery.unwrap_or(libc::IP_PMTUDISC_WANT))
        }
        (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
            said(i32::from(settings.receive_errors))
        }
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => said(i32::from(settings.only_ipv6)),
        (libc::IPPROTO_IP, libc::IP_MTU) => {
            let status = open.stream().ok().and_then(StreamSocket::status).ok_or(Errno(libc::ENOTCONN))?;
            said(i32::try_from(status.mtu + 20).unwrap_or(i32::MAX))
        }
        _ => return Err(NO_OPTION),
    })
}
