//! A file server that is written once and runs over two networks: the kernel's sockets and Xylem's. The function `serve`
//! below does not know which; it is compiled for both.
//!
//! ```text
//! cargo run --example http -- kernel 127.0.0.1:8080 DIR          over the kernel's sockets
//! cargo run --example http -- tap:xylem0 10.0.0.2/24 DIR         over Xylem's, port 80; then, in another terminal:
//!                                                                  ip address add 10.0.0.1/24 dev xylem0
//!                                                                  ip link set xylem0 up
//!                                                                  curl http://10.0.0.2/
//! ```

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use xylem::catalogue;
use xylem::http::Http;
use xylem::http::site::Directory;
use xylem::net::Net;
use xylem::net::kernel::Kernel;
use xylem::net::xylem::{Idle, Xylem};
use xylem::services::{Limits, Server};
use xylem_host::device::TapDevice;
use xylem_host::shell::Shell;
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, address, directory] = arguments.as_slice() else {
        return Err("expected a network (kernel or tap:NAME), an address and a directory".into());
    };
    match network.strip_prefix("tap:") {
        Some(tap) => {
            let stack = host(tap, address)?;
            serve(Xylem::new(&stack, Idle::Sleep)?, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 80)), directory)
        }
        None => serve(Kernel::new()?, address.parse()?, directory),
    }
}

/// Serves a directory over any network, in this thread, to as many clients as come.
fn serve(net: impl Net, at: SocketAddr, directory: &str) -> Result<(), Box<dyn Error>> {
    println!("serving {directory} at {at} over the sockets of {}", net.name());
    let mut server = Server::new(net, Limits::default());
    server.offer(at, Arc::new(Http::new(Arc::new(Directory::open(directory, false)?))))?;
    server.run()?;
    Ok(())
}

/// A host with Xylem's TCP/IP on a TAP. With the inline shell the server's thread takes the stack's turns itself.
fn host(tap: &str, address: &str) -> Result<Stack, Box<dyn Error>> {
    let graph = format!(
        r#"
        link = ethernet over auto
        arp             over link
        ip   = ipv4     over link, arp {{ address = "{address}" }}
        icmp            over ip
        tcp             over ip
        sockets         over tcp
        "#
    );
    let device = TapDevice::new(Tap::open(tap, TapOptions::default())?)?;
    Ok(Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).shell(Shell::Inline).build()?)
}
