//! Enables: the standing passive opens, by port, for one address of this host or for all of them. An enable owns its
//! half-open connections, and they go with it.

use super::embryo::Embryos;
use super::fast_open::Pending;
use super::protocol::{TcpProtocol, lock};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use xylem_core::{BindError, Binding, EnableError, EnableId, Enabling, Endpoint, Part, Side};
use xylem_wire::Port;

/// Of those enables whose connections may bring data with their SYNs: how many have.
pub(super) type EarlyLimits = BTreeMap<EnableId, Arc<Pending>>;

/// A standing passive open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pub id: EnableId,
    pub backlog: usize,
}

/// Lets go of an enable's embryos with the enable.
struct Nursery {
    embryos: Arc<Mutex<Embryos>>,
    early: Arc<Mutex<EarlyLimits>>,
    enable: EnableId,
}

impl Drop for Nursery {
    fn drop(&mut self) {
        lock(&self.embryos).remove_all(self.enable);
        lock(&self.early).remove(&self.enable);
    }
}

impl TcpProtocol {
    /// Makes a passive open stand at the port asked for, or at any free one, whatever connections there are with that port
    /// (RFC 9293, MUST-41, MUST-42), for one local address or for all (RFC 9293, MUST-43).
    pub(super) fn enable(&self, enabling: &mut Enabling<'_>) -> Result<(), EnableError> {
        let wished = enabling.participants.local.port().filter(|port| port.0 != 0);
        enabling.participants.remote = Side::default();
        enabling.below(0)?;
        let address = enabling.participants.local.find_host().filter(|host| !host.is_unspecified());
        let listener = Listener { id: enabling.id, backlog: enabling.backlog };
        let port = match wished {
            Some(port) => {
                enabling.bind(self.bind_listener(address, port, listener)?);
                port
            }
            None => {
                let ports = self.config.ports;
                let first = enabling.random.below(u64::from(ports.count())) as u32;
                let mut bound = None;
                for port in ports.beginning_at(first) {
                    match self.bind_listener(address, port, listener) {
                        Err(EnableError::InUse) => {}
                        other => {
                            bound = Some((port, other?));
                            break;
                        }
                    }
                }
                let (port, binding) = bound.ok_or(EnableError::NoFreePort)?;
                enabling.bind(binding);
                port
            }
        };
        enabling.participants.local.push(Part::Port(port));
        if enabling.early_max > 0 {
            lock(&self.early).insert(enabling.id, Pending::new(enabling.early_max));
        }
        let (embryos, early) = (self.embryos.clone(), self.early.clone());
        enabling.bind(Box::new(Nursery { embryos, early, enable: enabling.id }));
        Ok(())
    }

    fn bind_listener(&self, address: Option<IpAddr>, port: Port, listener: Listener) -> Result<Binding, EnableError> {
        self.enables.bind((address, port), listener).map_err(|error| match error {
            BindError::InUse => EnableError::InUse,
            BindError::Full => EnableError::Full("enables_max"),
        })
    }

    /// The enable at `local`, if there is one: the one for this address before the one for all.
    pub(super) fn listener(&self, local: &Endpoint) -> Option<Listener> {
        self.enables.find(&(Some(local.address), local.port)).or_else(|| self.enables.find(&(None, local.port)))
    }
}
