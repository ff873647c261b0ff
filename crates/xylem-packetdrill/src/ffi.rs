//! The C interface. Every function here does the same three things: it makes slices and values of what it was handed,
//! calls the safe code, and turns the answer into a return value and `errno`. A panic goes no further than here.

use crate::interface::{Interface, Userdata};
use crate::{instance::Instance, registry};
use libc::{
    c_char, c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t,
    sockaddr, socklen_t, ssize_t, timeval, useconds_t,
};
use std::io::{IoSlice, IoSliceMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use xylem_posix::{Descriptors, EpollEvent, Errno, Name, PollEntry, Received};

/// The most pieces of one vector (IOV_MAX).
const PIECES_MAX: usize = 1024;
/// The most bytes of one address, name or option that are looked at.
const NAME_BYTES_MAX: usize = 4096;
/// The largest packet: what the length of IPv4 can say.
const PACKET_BYTES_MAX: usize = 65_535;

type Result<T> = std::result::Result<T, Errno>;

const BAD_ADDRESS: Errno = Errno(libc::EFAULT);
const WRONG: Errno = Errno(libc::EINVAL);

/// What C sees of a count; -1 and `errno` for an error.
trait Returned: Copy {
    const FAILED: Self;
}

impl Returned for c_int {
    const FAILED: c_int = -1;
}

impl Returned for ssize_t {
    const FAILED: ssize_t = -1;
}

fn set_errno(errno: Errno) {
    // SAFETY: the C library's own place for this thread's errno, which is there for as long as the thread is.
    unsafe { *libc::__errno_location() = errno.0 };
}

/// Runs a call on the run that `userdata` names.
fn entered<T: Returned>(userdata: Userdata, work: impl FnOnce(&Instance) -> Result<T>) -> T {
    let attempt = || work(&*registry::find(userdata.addr())?);
    // What it could leave broken are locks, which those who come later take as they are.
    let answer = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or(Err(Errno(libc::EIO)));
    answer.unwrap_or_else(|errno| {
        set_errno(errno);
        T::FAILED
    })
}

/// Runs a call on its descriptors.
fn called<T: Returned>(userdata: Userdata, work: impl FnOnce(&Descriptors) -> Result<T>) -> T {
    entered(userdata, |instance| instance.call(work))
}

fn count(bytes: usize) -> ssize_t {
    ssize_t::try_from(bytes).unwrap_or(ssize_t::MAX)
}

/// A slice of what a caller promises to be `length` readable bytes; none are needed for a length of zero.
///
/// # Safety
/// `bytes` is null, or `length` bytes there may be read until the call of C that brought them returns.
unsafe fn readable<'a>(bytes: *const c_void, length: usize) -> Result<&'a [u8]> {
    match (bytes.is_null(), isize::try_from(length)) {
        (_, Err(_)) => Err(WRONG),
        (_, Ok(0)) => Ok(&[]),
        (true, _) => Err(BAD_ADDRESS),
        // SAFETY: not null, of a length that a slice may have, and the caller's promise for the rest.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), length) }),
    }
}

/// The same for bytes that are written.
///
/// # Safety
/// `bytes` is null, or `length` bytes there may be written, by nobody else, until the call of C that brought them returns.
unsafe fn writable<'a>(bytes: *mut c_void, length: usize) -> Result<&'a mut [u8]> {
    match (bytes.is_null(), isize::try_from(length)) {
        (_, Err(_)) => Err(WRONG),
        (_, Ok(0)) => Ok(&mut []),
        (true, _) => Err(BAD_ADDRESS),
        // SAFETY: not null, of a length that a slice may have, and the caller's promise for the rest.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(bytes.cast(), length) }),
    }
}

/// The pieces of a vector.
///
/// # Safety
/// `pieces` is null or points to `length` values of C's.
unsafe fn pieces<'a>(pieces: *const iovec, length: usize, too_many: Errno) -> Result<&'a [iovec]> {
    match (length, pieces.is_null()) {
        (0, _) => Ok(&[]),
        (length, _) if length > PIECES_MAX => Err(too_many),
        (_, true) => Err(BAD_ADDRESS),
        // SAFETY: not null, not too many, and the caller's promise for the rest.
        (length, false) => Ok(unsafe { std::slice::from_raw_parts(pieces, length) }),
    }
}

/// # Safety
/// As [`readable`], for each piece.
unsafe fn gathered<'a>(pieces: &[iovec]) -> Result<Vec<IoSlice<'a>>> {
    // SAFETY: the caller's promise.
    pieces.iter().map(|piece| unsafe { readable(piece.iov_base, piece.iov_len) }.map(IoSlice::new)).collect()
}

/// # Safety
/// As [`writable`], for each piece.
unsafe fn scattered<'a>(pieces: &[iovec]) -> Result<Vec<IoSliceMut<'a>>> {
    // SAFETY: the caller's promise.
    pieces.iter().map(|piece| unsafe { writable(piece.iov_base, piece.iov_len) }.map(IoSliceMut::new)).collect()
}

/// An address that a caller hands over.
///
/// # Safety
/// As [`readable`].
unsafe fn address<'a>(bytes: *const sockaddr, length: socklen_t) -> Result<&'a [u8]> {
    if length as usize > NAME_BYTES_MAX {
        return Err(WRONG);
    }
    // SAFETY: the caller's promise.
    unsafe { readable(bytes.cast(), length as usize) }
}

/// Writes a name where the caller wants it, as far as there is room, and says how long it is.
///
/// # Safety
/// `into` is null, or `length` may be read and written and says how many bytes may be written at `into`.
unsafe fn tell_name(name: Option<Name>, into: *mut sockaddr, length: *mut socklen_t) -> Result<()> {
    if into.is_null() {
        return Ok(());
    }
    if length.is_null() {
        return Err(BAD_ADDRESS);
    }
    let bytes = name.as_ref().map_or(&[][..], Name::as_bytes);
    // SAFETY: not null, and the caller's promise.
    let room = unsafe { length.read() } as usize;
    // SAFETY: the caller's promise.
    let place = unsafe { writable(into.cast(), room.min(bytes.len())) }?;
    place.copy_from_slice(&bytes[..place.len()]);
    // SAFETY: as the read above. A name is a few bytes long.
    unsafe { length.write(bytes.len() as socklen_t) };
    Ok(())
}

/// Begins a run: fills `interface` with its functions. Without an interface to fill there is nothing to do.
///
/// # Safety
/// `flags` is null or a string of C's; `interface` is null or points to a place for an [`Interface`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    if interface.is_null() {
        return;
    }
    let flags = if flags.is_null() {
        String::new()
    } else {
        // SAFETY: not null, and the caller's promise that it ends in a zero.
        unsafe { std::ffi::CStr::from_ptr(flags) }.to_string_lossy().into_owned()
    };
    // Zero is the number of no run.
    let number = catch_unwind(|| registry::begin(&flags)).unwrap_or(0);
    let functions = Interface {
        userdata: std::ptr::without_provenance_mut(number),
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    };
    // SAFETY: not null, and the caller's promise that an interface has its place there.
    unsafe { interface.write(functions) };
}

extern "C" fn free(userdata: Userdata) {
    // A run whose end panics has ended all the same.
    let _ended = catch_unwind(|| registry::end(userdata.addr()));
}

extern "C" fn socket(userdata: Userdata, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    entered(userdata, |instance| instance.socket(domain, kind, protocol))
}

unsafe extern "C" fn bind(userdata: Userdata, descriptor: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise (bind(2)).
    called(userdata, |table| table.bind(descriptor, unsafe { address(to, length) }?).map(|()| 0))
}

extern "C" fn listen(userdata: Userdata, descriptor: c_int, backlog: c_int) -> c_int {
    called(userdata, |table| table.listen(descriptor, backlog).map(|()| 0))
}

unsafe extern "C" fn accept(
    userdata: Userdata,
    descriptor: c_int,
    peer: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    called(userdata, |table| {
        let (accepted, name) = table.accept(descriptor, 0)?;
        // SAFETY: the caller's promise (accept(2)).
        unsafe { tell_name(Some(name), peer, length) }?;
        Ok(accepted)
    })
}

unsafe extern "C" fn connect(userdata: Userdata, descriptor: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise (connect(2)).
    called(userdata, |table| table.connect(descriptor, unsafe { address(to, length) }?).map(|()| 0))
}

unsafe extern "C" fn read(userdata: Userdata, descriptor: c_int, into: *mut c_void, length: size_t) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: the caller's promise (read(2)).
        let into = unsafe { writable(into, length) }?;
        table.read(descriptor, &mut [IoSliceMut::new(into)]).map(count)
    })
}

unsafe extern "C" fn readv(userdata: Userdata, descriptor: c_int, vector: *const iovec, length: c_int) -> ssize_t {
    called(userdata, |table| {
        let length = usize::try_from(length).map_err(|_| WRONG)?;
        // SAFETY: the caller's promise (readv(2)).
        let mut into = unsafe { scattered(pieces(vector, length, WRONG)?) }?;
        table.read(descriptor, &mut into).map(count)
    })
}

unsafe extern "C" fn recv(
    userdata: Userdata,
    descriptor: c_int,
    into: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: the caller's promise (recv(2)).
        let into = unsafe { writable(into, length) }?;
        table.receive(descriptor, &mut [IoSliceMut::new(into)], flags).map(|received| count(received.count))
    })
}

/// The name of who sent what was received, as a socket of this family says it.
fn sender(table: &Descriptors, descriptor: c_int, received: &Received) -> Option<Name> {
    let mut domain = [0; size_of::<c_int>()];
    table.getsockopt(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN, &mut domain).ok()?;
    received.from.map(|from| Name::new(from, c_int::from_ne_bytes(domain)))
}

unsafe extern "C" fn recvfrom(
    userdata: Userdata,
    descriptor: c_int,
    into: *mut c_void,
    length: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: the caller's promise (recvfrom(2)).
        let into = unsafe { writable(into, length) }?;
        let received = table.receive(descriptor, &mut [IoSliceMut::new(into)], flags)?;
        // SAFETY: the caller's promise.
        unsafe { tell_name(sender(table, descriptor, &received), from, from_length) }?;
        Ok(count(received.count))
    })
}

unsafe extern "C" fn recvmsg(userdata: Userdata, descriptor: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: null is refused, and else it is the caller's promise (recvmsg(2)) that nobody else uses it meanwhile.
        let message = unsafe { message.as_mut() }.ok_or(BAD_ADDRESS)?;
        // SAFETY: the caller's promise for its vector.
        let vector = unsafe { pieces(message.msg_iov, message.msg_iovlen, Errno(libc::EMSGSIZE)) }?;
        // SAFETY: the caller's promise for each piece.
        let mut into = unsafe { scattered(vector) }?;
        let received = table.receive(descriptor, &mut into, flags)?;
        let name = sender(table, descriptor, &received);
        // SAFETY: the caller's promise for its name, whose length stands beside it.
        unsafe { tell_name(name, message.msg_name.cast(), &mut message.msg_namelen) }?;
        message.msg_controllen = 0;
        message.msg_flags = if received.is_cut { libc::MSG_TRUNC } else { 0 };
        Ok(count(received.count))
    })
}

unsafe extern "C" fn write(userdata: Userdata, descriptor: c_int, from: *const c_void, length: size_t) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: the caller's promise (write(2)).
        let from = unsafe { readable(from, length) }?;
        table.write(descriptor, &[IoSlice::new(from)]).map(count)
    })
}

unsafe extern "C" fn writev(userdata: Userdata, descriptor: c_int, vector: *const iovec, length: c_int) -> ssize_t {
    called(userdata, |table| {
        let length = usize::try_from(length).map_err(|_| WRONG)?;
        // SAFETY: the caller's promise (writev(2)).
        let from = unsafe { gathered(pieces(vector, length, WRONG)?) }?;
        table.write(descriptor, &from).map(count)
    })
}

unsafe extern "C" fn send(
    userdata: Userdata,
    descriptor: c_int,
    from: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise (send(2)).
    unsafe { sendto(userdata, descriptor, from, length, flags, std::ptr::null(), 0) }
}

unsafe extern "C" fn sendto(
    userdata: Userdata,
    descriptor: c_int,
    from: *const c_void,
    length: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: the caller's promise (sendto(2)).
        let from = unsafe { readable(from, length) }?;
        // SAFETY: the caller's promise; without an address there is none.
        let to = if to.is_null() { None } else { Some(unsafe { address(to, to_length) }?) };
        table.send(descriptor, &[IoSlice::new(from)], flags, to).map(count)
    })
}

unsafe extern "C" fn sendmsg(userdata: Userdata, descriptor: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    called(userdata, |table| {
        // SAFETY: null is refused, and else it is the caller's promise (sendmsg(2)).
        let message = unsafe { message.as_ref() }.ok_or(BAD_ADDRESS)?;
        // SAFETY: the caller's promise for its vector.
        let vector = unsafe { pieces(message.msg_iov, message.msg_iovlen, Errno(libc::EMSGSIZE)) }?;
        // SAFETY: the caller's promise for each piece.
        let from = unsafe { gathered(vector) }?;
        let named = !message.msg_name.is_null() && message.msg_namelen > 0;
        // SAFETY: the caller's promise for its name.
        let to = if named { Some(unsafe { address(message.msg_name.cast(), message.msg_namelen) }?) } else { None };
        table.send(descriptor, &from, flags, to).map(count)
    })
}

/// In C the last argument is a variable one. On Linux a variable argument of this size comes in the register where the
/// fixed one would, for every machine whose C this is built with; who hands over none leaves there what nobody looks at.
extern "C" fn fcntl(userdata: Userdata, descriptor: c_int, command: c_int, argument: c_ulong) -> c_int {
    // The low half is the int that was handed over.
    called(userdata, |table| table.fcntl(descriptor, command, argument as c_int))
}

/// As [`fcntl`], for its last argument.
unsafe extern "C" fn ioctl(userdata: Userdata, descriptor: c_int, request: c_ulong, argument: *mut c_int) -> c_int {
    called(userdata, |table| {
        if argument.is_null() && request == libc::FIONBIO {
            return Err(BAD_ADDRESS);
        }
        // SAFETY: not null, and the caller's promise that an int is there for requests that look at one.
        let before = if request == libc::FIONBIO { unsafe { argument.read() } } else { 0 };
        if let Some(after) = table.ioctl(descriptor, request, before)? {
            if argument.is_null() {
                return Err(BAD_ADDRESS);
            }
            // SAFETY: not null, and the caller's promise.
            unsafe { argument.write(after) };
        }
        Ok(0)
    })
}

extern "C" fn close(userdata: Userdata, descriptor: c_int) -> c_int {
    called(userdata, |table| table.close(descriptor).map(|()| 0))
}

extern "C" fn shutdown(userdata: Userdata, descriptor: c_int, how: c_int) -> c_int {
    called(userdata, |table| table.shutdown(descriptor, how).map(|()| 0))
}

unsafe extern "C" fn getsockopt(
    userdata: Userdata,
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    called(userdata, |table| {
        // SAFETY: null is refused, and else it is the caller's promise (getsockopt(2)).
        let length = unsafe { length.as_mut() }.ok_or(BAD_ADDRESS)?;
        // C's lengths are unsigned, and what was meant to be negative is too long for anybody.
        let room = usize::try_from(*length as c_int).map_err(|_| WRONG)?.min(NAME_BYTES_MAX);
        // SAFETY: the caller's promise.
        let value = unsafe { writable(value, room) }?;
        *length = table.getsockopt(descriptor, level, name, value)? as socklen_t;
        Ok(0)
    })
}

unsafe extern "C" fn setsockopt(
    userdata: Userdata,
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    called(userdata, |table| {
        let length = usize::try_from(length as c_int).map_err(|_| WRONG)?.min(NAME_BYTES_MAX);
        // SAFETY: the caller's promise (setsockopt(2)).
        let value = unsafe { readable(value, length) }?;
        table.setsockopt(descriptor, level, name, value).map(|()| 0)
    })
}

unsafe extern "C" fn poll(userdata: Userdata, entries: *mut pollfd, length: nfds_t, timeout_ms: c_int) -> c_int {
    called(userdata, |table| {
        let length = usize::try_from(length).ok().filter(|length| *length <= PIECES_MAX).ok_or(WRONG)?;
        let entries: &mut [pollfd] = match (length, entries.is_null()) {
            (0, _) => &mut [],
            (_, true) => return Err(BAD_ADDRESS),
            // SAFETY: not null, not too many, and the caller's promise (poll(2)).
            (length, false) => unsafe { std::slice::from_raw_parts_mut(entries, length) },
        };
        let entry = |entry: &pollfd| PollEntry { descriptor: entry.fd, events: entry.events, found: 0 };
        let mut looked: Vec<PollEntry> = entries.iter().map(entry).collect();
        let found = table.poll(&mut looked, timeout_ms)?;
        entries.iter_mut().zip(&looked).for_each(|(entry, looked)| entry.revents = looked.found);
        Ok(found as c_int)
    })
}

unsafe extern "C" fn netdev_send(userdata: Userdata, packet: *const c_void, length: size_t) -> c_int {
    entered(userdata, |instance| {
        if length > PACKET_BYTES_MAX {
            return Err(Errno(libc::EMSGSIZE));
        }
        // SAFETY: the caller's promise: a packet of that length.
        instance.send(unsafe { readable(packet, length) }?).map(|()| 0)
    })
}

unsafe extern "C" fn netdev_receive(
    userdata: Userdata,
    into: *mut c_void,
    length: *mut size_t,
    left: *mut c_longlong,
) -> c_int {
    entered(userdata, |instance| {
        // SAFETY: null is refused, and else it is the caller's promise.
        let (length, left) = unsafe { (length.as_mut().ok_or(BAD_ADDRESS)?, left.as_mut().ok_or(BAD_ADDRESS)?) };
        // SAFETY: the caller's promise: room for so many bytes.
        let into = unsafe { writable(into, (*length).min(PACKET_BYTES_MAX)) }?;
        let Some((time, packet)) = instance.receive() else {
            *length = 0;
            return Ok(0);
        };
        // What does not fit is lost, as a packet socket would have it.
        let count = packet.len().min(into.len());
        into[..count].copy_from_slice(&packet[..count]);
        (*length, *left) = (count, time);
        Ok(0)
    })
}

extern "C" fn usleep(userdata: Userdata, micros: useconds_t) -> c_int {
    entered(userdata, |instance| {
        instance.sleep(Duration::from_micros(micros.into()));
        Ok(0)
    })
}

unsafe extern "C" fn gettimeofday(userdata: Userdata, time: *mut timeval, _zone: *mut c_void) -> c_int {
    entered(userdata, |instance| {
        let micros = instance.look();
        // SAFETY: null is left alone, and else it is the caller's promise (gettimeofday(2)).
        if let Some(time) = unsafe { time.as_mut() } {
            (time.tv_sec, time.tv_usec) = (micros / 1_000_000, micros % 1_000_000);
        }
        Ok(0)
    })
}

extern "C" fn epoll_create(userdata: Userdata, size: c_int) -> c_int {
    called(userdata, |table| table.epoll_create(size))
}

unsafe extern "C" fn epoll_ctl(
    userdata: Userdata,
    epoll: c_int,
    operation: c_int,
    descriptor: c_int,
    event: *mut epoll_event,
) -> c_int {
    called(userdata, |table| {
        let event = if event.is_null() {
            None
        } else {
            // SAFETY: not null, and the caller's promise (epoll_ctl(2)); the struct may stand anywhere.
            let event = unsafe { event.read_unaligned() };
            Some(EpollEvent { events: event.events, data: event.u64 })
        };
        table.epoll_control(epoll, operation, descriptor, event).map(|()| 0)
    })
}

unsafe extern "C" fn epoll_wait(
    userdata: Userdata,
    epoll: c_int,
    into: *mut epoll_event,
    most: c_int,
    timeout_ms: c_int,
) -> c_int {
    called(userdata, |table| {
        let most = usize::try_from(most).ok().filter(|most| *most > 0).ok_or(WRONG)?.min(PIECES_MAX);
        if into.is_null() {
            return Err(BAD_ADDRESS);
        }
        let found = table.epoll_wait(epoll, most, timeout_ms)?;
        for (place, event) in found.iter().enumerate() {
            let event = epoll_event { events: event.events, u64: event.data };
            // SAFETY: no more are found than the caller promises room for (epoll_wait(2)).
            unsafe { into.add(place).write_unaligned(event) };
        }
        Ok(found.len() as c_int)
    })
}

unsafe extern "C" fn pipe(userdata: Userdata, into: *mut c_int) -> c_int {
    called(userdata, |table| {
        if into.is_null() {
            return Err(BAD_ADDRESS);
        }
        let [reader, writer] = table.pipe(0)?;
        // SAFETY: not null, and the caller's promise of room for two (pipe(2)).
        unsafe {
            into.write(reader);
            into.add(1).write(writer);
        }
        Ok(0)
    })
}

unsafe extern "C" fn splice(
    userdata: Userdata,
    from: c_int,
    from_offset: *mut loff_t,
    to: c_int,
    to_offset: *mut loff_t,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    called(userdata, |table| {
        if !from_offset.is_null() || !to_offset.is_null() {
            // Neither sockets nor pipes have places.
            return Err(Errno(libc::ESPIPE));
        }
        table.splice(from, to, length, flags).map(count)
    })
}
