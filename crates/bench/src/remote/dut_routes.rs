//! Routes in the kernel of the device under test, on the machine of an agent.

use std::env;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use fullview_router::netlink::route_writer::RouteWriter;
use fullview_router::netlink::socket::SocketError;
use fullview_table::Prefix;
use serde_json::Value;

use super::counter::{CounterError, index};
use super::machine::{MachineError, ip_json};
use super::protocol::{LoadedRoutes, RoutesRequest};
use super::undo::Changes;
use crate::rates::{MadeChanges, RatesError, RouteChanges, RouteTable, RouteTableError};

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
    #[error("routes are of IPv4, and a gateway is not")]
    Inet6,
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
        let [first, second] = gateways.each_ref().map(|gateway| match gateway.address {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(_) => Err(RoutesError::Inet6),
        });
        let addresses = [first?, second?];
        let table = Arc::new(RouteTable::beside(source, addresses, &others()?)?);
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

/// What the machine needs: the networks that its kernel has routes for, and the host that measures.
fn others() -> Result<Vec<Prefix<u32>>, RoutesError> {
    let shown = ip_json("-4 route show table all")?;
    let known = shown.as_array().into_iter().flatten().filter_map(network);
    let session = env::var("SSH_CONNECTION").unwrap_or_default();
    let hosts =
        session.split(' ').filter_map(|word| Some(Prefix::host(word.parse::<Ipv4Addr>().ok()?.to_bits())));
    let found: Vec<Prefix<u32>> = known.chain(hosts).collect();
    if found.len() > MOST_OTHERS {
        return Err(RoutesError::Full { found: found.len() });
    }
    Ok(found)
}

/// The network of a route, as `ip` shows it; nothing of a default route, beside which all others are.
fn network(route: &Value) -> Option<Prefix<u32>> {
    let text = route["dst"].as_str()?;
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let length = length.parse().ok().filter(|length| *length > 0)?;
    Prefix::new(address.parse::<Ipv4Addr>().ok()?.to_bits(), length)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn routes_have_networks_except_for_default_ones() {
        let of = |destination: &str| network(&json!({ "dst": destination }));
        assert_eq!(of("10.99.1.0/24"), Prefix::new(0x0a63_0100, 24));
        assert_eq!(of("10.99.1.1"), Prefix::new(0x0a63_0101, 32));
        assert_eq!((of("default"), of("0.0.0.0/0")), (None, None));
    }
}
