//! The table of functions as C lays it out: the order is the interface. Each function gets the run first and returns like
//! the system call of its name. Pointers are as C has them; which may be null, and what they must point to, is said in
//! the manual page of each call.

use libc::{
    c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, loff_t, msghdr, nfds_t, pollfd, size_t, sockaddr,
    socklen_t, ssize_t, timeval, useconds_t,
};

/// What a run is known by.
pub type Userdata = *mut c_void;

/// The table that `packetdrill_interface_init` fills.
#[repr(C)]
#[allow(missing_docs)] // Each is the system call of its name; the module's text says the rest.
pub struct Interface {
    pub userdata: Userdata,
    pub free: extern "C" fn(Userdata),
    pub socket: extern "C" fn(Userdata, c_int, c_int, c_int) -> c_int,
    pub bind: unsafe extern "C" fn(Userdata, c_int, *const sockaddr, socklen_t) -> c_int,
    pub listen: extern "C" fn(Userdata, c_int, c_int) -> c_int,
    pub accept: unsafe extern "C" fn(Userdata, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    pub connect: unsafe extern "C" fn(Userdata, c_int, *const sockaddr, socklen_t) -> c_int,
    pub read: unsafe extern "C" fn(Userdata, c_int, *mut c_void, size_t) -> ssize_t,
    pub readv: unsafe extern "C" fn(Userdata, c_int, *const iovec, c_int) -> ssize_t,
    pub recv: unsafe extern "C" fn(Userdata, c_int, *mut c_void, size_t, c_int) -> ssize_t,
    pub recvfrom:
        unsafe extern "C" fn(Userdata, c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t,
    pub recvmsg: unsafe extern "C" fn(Userdata, c_int, *mut msghdr, c_int) -> ssize_t,
    pub write: unsafe extern "C" fn(Userdata, c_int, *const c_void, size_t) -> ssize_t,
    pub writev: unsafe extern "C" fn(Userdata, c_int, *const iovec, c_int) -> ssize_t,
    pub send: unsafe extern "C" fn(Userdata, c_int, *const c_void, size_t, c_int) -> ssize_t,
    pub sendto:
        unsafe extern "C" fn(Userdata, c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t,
    pub sendmsg: unsafe extern "C" fn(Userdata, c_int, *const msghdr, c_int) -> ssize_t,
    /// In C the last argument is a variable one.
    pub fcntl: extern "C" fn(Userdata, c_int, c_int, c_ulong) -> c_int,
    /// In C the last argument is a variable one.
    pub ioctl: unsafe extern "C" fn(Userdata, c_int, c_ulong, *mut c_int) -> c_int,
    pub close: extern "C" fn(Userdata, c_int) -> c_int,
    pub shutdown: extern "C" fn(Userdata, c_int, c_int) -> c_int,
    pub getsockopt: unsafe extern "C" fn(Userdata, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    pub setsockopt: unsafe extern "C" fn(Userdata, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    pub poll: unsafe extern "C" fn(Userdata, *mut pollfd, nfds_t, c_int) -> c_int,
    pub netdev_send: unsafe extern "C" fn(Userdata, *const c_void, size_t) -> c_int,
    pub netdev_receive: unsafe extern "C" fn(Userdata, *mut c_void, *mut size_t, *mut c_longlong) -> c_int,
    pub usleep: extern "C" fn(Userdata, useconds_t) -> c_int,
    pub gettimeofday: unsafe extern "C" fn(Userdata, *mut timeval, *mut c_void) -> c_int,
    pub epoll_create: extern "C" fn(Userdata, c_int) -> c_int,
    pub epoll_ctl: unsafe extern "C" fn(Userdata, c_int, c_int, c_int, *mut epoll_event) -> c_int,
    pub epoll_wait: unsafe extern "C" fn(Userdata, c_int, *mut epoll_event, c_int, c_int) -> c_int,
    pub pipe: unsafe extern "C" fn(Userdata, *mut c_int) -> c_int,
    pub splice: unsafe extern "C" fn(Userdata, c_int, *mut loff_t, c_int, *mut loff_t, size_t, c_uint) -> ssize_t,
}

/// A run's number, and thirty-three functions.
const _: () = assert!(size_of::<Interface>() == 33 * size_of::<usize>());
