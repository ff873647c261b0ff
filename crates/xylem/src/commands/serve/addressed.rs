//! A graph with the addresses of this run: what the command line says takes the place of what the file says, in the one
//! node that it can mean. The graph is checked afterwards as if the file had said it.

use std::net::Ipv4Addr;
use xylem_graph::file::{Graph, Value};
use xylem_wire::Cidr;

/// What a run says about its host; what it leaves out stays as the graph has it.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    /// The host's address and the bits of its network.
    pub address: Option<Cidr>,
    /// The router for everything else. A new address without one means no router: the file's belongs to the file's
    /// address.
    pub gateway: Option<Ipv4Addr>,
    /// The largest IP packet in bytes.
    pub mtu: Option<usize>,
    /// The name of the device, for the drawing.
    pub interface: Option<String>,
    /// The congestion control of TCP.
    pub congestion: Option<&'static str>,
}

/// Says `addresses` in the graph.
///
/// # Errors
/// The graph has not exactly one node for what is said: what was expected, what it has, and the mend.
pub fn say(graph: &mut Graph, addresses: &Addresses) -> Result<(), String> {
    if let Some(address) = addresses.address {
        let ip = only(graph, "ipv4", "--address")?;
        set(graph, &ip, "address", Value::Text(address.to_string()))?;
        if let Some(node) = graph.nodes.iter_mut().find(|node| *node.name.value == *ip) {
            node.options.retain(|option| &*option.name.value != "gateway");
        }
    }
    if let Some(gateway) = addresses.gateway {
        let ip = only(graph, "ipv4", "--gateway")?;
        set(graph, &ip, "gateway", Value::Text(gateway.to_string()))?;
    }
    if let Some(mtu) = addresses.mtu {
        let link = only(graph, "ethernet", "--mtu")?;
        // At most 65 535: the command line and the device have seen to that.
        set(graph, &link, "mtu", Value::Integer(mtu as i64))?;
    }
    if let Some(interface) = &addresses.interface {
        let link = only(graph, "ethernet", "--device")?;
        set(graph, &link, "interface", Value::Text(interface.clone()))?;
    }
    if let Some(congestion) = addresses.congestion {
        let tcp = only(graph, "tcp", "the congestion control")?;
        set(graph, &tcp, "congestion", Value::Text(congestion.into()))?;
    }
    Ok(())
}

/// Says an option of the graph's only TCP.
///
/// # Errors
/// The graph has not exactly one: what was expected, what it has, and the mend.
pub fn say_of_tcp(graph: &mut Graph, option: &str, value: Value) -> Result<(), String> {
    let tcp = only(graph, "tcp", option)?;
    set(graph, &tcp, option, value)
}

/// The address the graph gives its only host, if it says one.
pub fn address_of(graph: &Graph) -> Option<Cidr> {
    let name = only(graph, "ipv4", "").ok()?;
    let option = graph.node(&name)?.options.iter().find(|option| &*option.name.value == "address")?;
    match &option.value.value {
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// The name of the only node of a protocol.
fn only(graph: &Graph, protocol: &str, wish: &str) -> Result<String, String> {
    let mut nodes = graph.nodes.iter().filter(|node| &*node.protocol.value == protocol);
    match (nodes.next(), nodes.count()) {
        (Some(node), 0) => Ok(node.name.value.to_string()),
        (first, more) => {
            let count = usize::from(first.is_some()) + more;
            Err(format!(
                "{wish}: expected a graph with one {protocol} node, got {count}; say it in the graph file instead"
            ))
        }
    }
}

fn set(graph: &mut Graph, node: &str, option: &str, value: Value) -> Result<(), String> {
    graph.set(node, option, value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogue, graphs};
    use xylem_graph::file::check;

    #[test]
    fn what_is_said_replaces_what_the_file_says_and_the_old_gateway_goes_with_the_old_address() {
        let mut graph = graphs::builtin("host").expect("it comes with the program");
        let addresses = Addresses {
            address: Some("192.0.2.7/26".parse().expect("a network")),
            mtu: Some(9000),
            interface: Some("mine".into()),
            congestion: Some("reno"),
            ..Addresses::default()
        };
        say(&mut graph, &addresses).expect("one node of each");
        let text = graph.to_string();
        assert!(text.contains("192.0.2.7/26") && !text.contains("gateway") && text.contains("9000"), "{text}");
        assert_eq!(address_of(&graph).map(|address| address.to_string()).as_deref(), Some("192.0.2.7/26"));
        assert!(check(&graph, &catalogue::builtin()).is_empty(), "{text}");
        let mut router = graphs::builtin("router").expect("it comes with the program");
        let error = say(&mut router, &Addresses { mtu: Some(1400), ..Addresses::default() }).expect_err("two links");
        assert!(error.contains("--mtu") && error.contains("got 2"), "{error}");
    }
}
