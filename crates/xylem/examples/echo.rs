//! An echo server on Xylem's TCP/IP, in the manner of the standard library's sockets: a listener, and a thread for each
//! connection.
//!
//! ```text
//! cargo run --example echo                        two hosts in this process, joined by a wire; says hello to itself
//! cargo run --example echo -- xylem0 10.0.0.2/24  one host on a TAP; then, as root, in another terminal:
//!                                                   ip address add 10.0.0.1/24 dev xylem0; ip link set xylem0 up
//!                                                   nc 10.0.0.2 7
//! ```

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::thread;
use xylem::catalogue;
use xylem::net::{TcpListener, TcpStream};
use xylem_host::device::{Device, TapDevice, WireDevice};
use xylem_host::stack::Stack;
use xylem_host::tap::{Tap, TapOptions};

const PORT: u16 = 7;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => wire(),
        [tap, address] => {
            let device = TapDevice::new(Tap::open(tap, TapOptions::default())?)?;
            serve(&host(address, device)?)
        }
        _ => Err("expected no arguments, or a TAP's name and an address such as 10.0.0.2/24".into()),
    }
}

/// A host: the protocols of a graph, over a device.
fn host(address: &str, device: impl Device + 'static) -> Result<Stack, Box<dyn Error>> {
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
    Ok(Stack::builder().graph(graph).catalogue(catalogue::builtin()).device(device).build()?)
}

/// Accepts connections for ever.
fn serve(stack: &Stack) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind_on(stack, ("0.0.0.0", PORT))?;
    for stream in listener.incoming() {
        let stream = stream?;
        thread::spawn(move || {
            if let Err(error) = echo(stream) {
                eprintln!("a connection ended: {error}");
            }
        });
    }
    Ok(())
}

/// Sends back what comes, until the other side has said everything.
fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}

/// Two hosts in this process: one serves, the other says hello.
fn wire() -> Result<(), Box<dyn Error>> {
    let (left, right) = WireDevice::pair();
    let (client, server) = (host("10.0.0.1/24", left)?, host("10.0.0.2/24", right)?);
    let listener = TcpListener::bind_on(&server, ("10.0.0.2", PORT))?;
    let echoing = thread::spawn(move || echo(listener.accept()?.0));

    let mut stream = TcpStream::connect_on(&client, ("10.0.0.2", PORT))?;
    stream.write_all(b"hello, xylem\n")?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    print!("{answer}");
    echoing.join().map_err(|_| "the server panicked")??;
    Ok(())
}
