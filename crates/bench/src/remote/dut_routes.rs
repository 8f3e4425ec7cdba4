//! Routes in the kernel of the device under test, on the machine of an agent.

use std::env;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use fullview_router::netlink::route_writer::RouteWriter;
use fullview_router::netlink::socket::SocketError;
use serde_json::Value;

use super::counter::{CounterError, index};
use super::machine::{MachineError, ip_json};
use super::protocol::{LoadedRoutes, RoutesRequest};
use super::undo::Changes;
use crate::rates::{MadeChanges, RatesError, RouteChanges, RouteTable, RouteTableError, WidePrefix, wide};

/// A machine with more routes than these is a router at work.
const MOST_OTHERS: usize = 10_000;

/// Why routes are not loaded or changed.
#[derive(Debug, thiserror::Error)]
pub enum RoutesError {
    #[error("{0}")]
    Machine(#[from] MachineError),
    #[error("{0}")]
    Interface(#[from] CounterError),
    #[error("{0}")]
    Netlink(#[from] SocketError),
    #[error("the routes: {0}")]
    Table(#[from] RouteTableError),
    #[error("{0}")]
    Changes(#[from] RatesError),
    #[error(
        "its kernel has {found} routes, and --routes adds some only beside at most {MOST_OTHERS}: end its routing daemon first"
    )]
    Full { found: usize },
    #[error("its own routes cover all that --routes would add")]
    NoRoom,
}

/// Routes that were loaded. Dropping it removes them.
pub struct DutRoutes {
    table: Arc<RouteTable>,
    link: u32,
    changes: Option<RouteChanges>,
    _neighbors: Changes,
}

impl DutRoutes {
    /// Loads a table by two stations, except for what the machine itself has routes for.
    pub fn load(request: &RoutesRequest) -> Result<(DutRoutes, LoadedRoutes), RoutesError> {
        let RoutesRequest { interface, source, gateways } = request;
        let addresses = gateways.each_ref().map(|gateway| gateway.address);
        let table = Arc::new(RouteTable::beside(source, addresses, &others(addresses[0])?)?);
        let last = table.last().filter(|_| table.count() > 1).ok_or(RoutesError::NoRoom)?;
        let link = index(interface)
            .map_err(|error| CounterError::Interface { interface: interface.clone(), error })?;
        let mut neighbors = Changes::default();
        gateways.iter().try_for_each(|gateway| neighbors.neighbor(interface, gateway))?;
        let loaded = DutRoutes { table: Arc::clone(&table), link, changes: None, _neighbors: neighbors };
        let (mut writer, began) = (RouteWriter::open(link)?, Instant::now());
        table.load().try_for_each(|route| writer.write(route))?;
        writer.flush()?;
        let seconds = began.elapsed().as_secs_f64();
        let (routes, destinations) = (table.count(), table.destinations.clone());
        Ok((loaded, LoadedRoutes { routes, seconds, destinations, last }))
    }

    /// Begins to change so many of them a second.
    pub fn change(&mut self, rate: u32, core: Option<usize>) -> Result<(), RoutesError> {
        let writer = RouteWriter::open(self.link)?;
        self.changes = Some(RouteChanges::start(writer, Arc::clone(&self.table), rate.into(), core));
        Ok(())
    }

    pub fn end_changes(&mut self) -> Result<MadeChanges, RoutesError> {
        Ok(self.changes.take().map(RouteChanges::end).transpose()?.unwrap_or_default())
    }
}

impl Drop for DutRoutes {
    fn drop(&mut self) {
        self.changes = None;
        // A route may be withdrawn at the moment; the others are removed all the same.
        if let Ok(mut writer) = RouteWriter::open(self.link) {
            self.table.remove().for_each(|route| _ = writer.write(route));
            let _ = writer.flush();
        }
    }
}

/// What the machine needs of the family of an address: the networks that its kernel has routes for, and the host that
/// measures.
fn others(like: IpAddr) -> Result<Vec<WidePrefix>, RoutesError> {
    let (option, host) = if like.is_ipv4() { ("-4", 32) } else { ("-6", 128) };
    let shown = ip_json(&format!("{option} route show table all"))?;
    let known = shown.as_array().into_iter().flatten().filter_map(|route| network(route, host));
    let session = env::var("SSH_CONNECTION").unwrap_or_default();
    let hosts = session.split(' ').filter_map(|word| word.parse::<IpAddr>().ok());
    let hosts = hosts.filter(|ip| ip.is_ipv4() == like.is_ipv4()).filter_map(|ip| wide(ip, host));
    let found: Vec<WidePrefix> = known.chain(hosts).collect();
    if found.len() > MOST_OTHERS {
        return Err(RoutesError::Full { found: found.len() });
    }
    Ok(found)
}

/// The network of a route, as `ip` shows it; nothing of a default route, beside which all others are.
fn network(route: &Value, host: u8) -> Option<WidePrefix> {
    let text = route["dst"].as_str()?;
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, length.parse().ok()?),
        None => (text, host),
    };
    wide(address.parse().ok()?, length).filter(|_| length > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn routes_have_networks_except_for_default_ones() {
        let of = |destination: &str| network(&json!({ "dst": destination }), 32);
        let inet = |octets: [u8; 4], len| wide(IpAddr::from(octets), len);
        assert_eq!(of("10.99.1.0/24"), inet([10, 99, 1, 0], 24));
        assert_eq!(of("10.99.1.1"), inet([10, 99, 1, 1], 32));
        assert_eq!(network(&json!({ "dst": "2001:db8::/32" }), 128), wide("2001:db8::".parse().unwrap(), 32));
        assert_eq!((of("default"), of("0.0.0.0/0")), (None, None));
    }
}
