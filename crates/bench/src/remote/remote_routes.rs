//! Routes on the device under test, as the program that measures sees them.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::error::RemoteError;
use super::inventory::InterfaceNet;
use super::protocol::{AgentReply, AgentRequest, DeviceNeighbor, LoadedRoutes, RoutesRequest};
use super::remote_device::{RemoteDevice, hosts};
use crate::rates::{
    ChangeRate, ProgramMemory, RatesError, RoutesPlan, SETTLE, TableLoad, TableSource, await_route,
};

/// A table of two million routes is made and loaded within this time.
const LOAD: Duration = Duration::from_secs(240);

/// Loads the routes, waits until the device forwards by them, and begins to change them. Times are of two clocks: the kernel's
/// part of the device's, the rest of this machine's.
pub fn load_routes(device: &mut RemoteDevice<'_>, plan: &RoutesPlan) -> Result<TableLoad, RatesError> {
    let before = memory(device).map_err(hosts)?;
    device.count_all().map_err(hosts)?;
    let loaded = load(device, plan).map_err(hosts)?;
    let waited = await_route(device, loaded.last, Instant::now())?;
    thread::sleep(SETTLE);
    let after = memory(device).map_err(hosts)?;
    device.send_to(loaded.destinations).map_err(hosts)?;
    if plan.changes > 0 {
        change(device, plan.changes).map_err(hosts)?;
    }
    let seconds = [loaded.seconds, loaded.seconds + waited.as_secs_f64()];
    Ok(TableLoad::new(loaded.routes, seconds, [before, after]))
}

/// Ends the changes, and says how many were made.
pub fn end_changes(
    device: &mut RemoteDevice<'_>,
    plan: &RoutesPlan,
) -> Result<Option<ChangeRate>, RatesError> {
    if plan.changes == 0 {
        return Ok(None);
    }
    let agent = device.bed.dut_agent().map_err(hosts)?;
    match agent.ask(&AgentRequest::EndChanges).map_err(hosts)? {
        AgentReply::Changes(made) => Ok(Some(ChangeRate::new(plan, made))),
        other => Err(hosts(agent.unexpected(&other))),
    }
}

fn memory(device: &RemoteDevice<'_>) -> Result<Option<ProgramMemory>, RemoteError> {
    let agent = device.bed.dut_agent()?;
    match agent.ask(&AgentRequest::Memory)? {
        AgentReply::Memory(memory) => Ok(memory),
        other => Err(agent.unexpected(&other)),
    }
}

fn load(device: &mut RemoteDevice<'_>, plan: &RoutesPlan) -> Result<LoadedRoutes, RemoteError> {
    let (bed, wiring) = (device.bed, &device.bed.wiring);
    let agent = bed.dut_agent()?;
    let past = || RemoteError::NoRoutedPort { node: wiring.node(wiring.receiving).name.clone() };
    let port = wiring.egress(plan.spare).ok_or_else(past)?;
    let station = wiring.peer(port).ok_or_else(past)?;
    let (egress, receiver) = (wiring.interface(port), wiring.interface(station).address.address);
    let second = second_station(egress.address, receiver).ok_or_else(past)?;
    let mac = bed.mac(station)?;
    let gateways = [receiver, second].map(|address| DeviceNeighbor { address, mac: mac.clone() });
    let (interface, source) = (egress.name.clone(), TableSource::clone(&plan.source));
    device.has_agent = true;
    agent.send(&AgentRequest::LoadRoutes(RoutesRequest { interface, source, gateways }))?;
    match agent.answer(LOAD)? {
        AgentReply::Routes(loaded) => Ok(loaded),
        other => Err(agent.unexpected(&other)),
    }
}

fn change(device: &RemoteDevice<'_>, rate: u32) -> Result<(), RemoteError> {
    let wiring = &device.bed.wiring;
    let core = wiring.inventory.nodes[wiring.dut].core;
    device.bed.dut_agent()?.ask(&AgentRequest::ChangeRoutes { rate, core }).map(drop)
}

/// An address of the network that neither the device nor the receiver has.
fn second_station(device: InterfaceNet, receiver: IpAddr) -> Option<IpAddr> {
    let is_other = |address: &IpAddr| *address != device.address && *address != receiver;
    match device.address {
        IpAddr::V4(own) => {
            let hosts = u32::MAX.checked_shr(device.length.into()).unwrap_or(0);
            let network = own.to_bits() & !hosts;
            (1..hosts).map(|host| IpAddr::from((network + host).to_be_bytes())).find(is_other)
        }
        IpAddr::V6(own) => {
            let hosts = u128::MAX.checked_shr(device.length.into()).unwrap_or(0);
            let network = own.to_bits() & !hosts;
            (1..=hosts).map(|host| IpAddr::from((network + host).to_be_bytes())).find(is_other)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_second_station_is_neither_the_device_nor_the_receiver() {
        let net = |length| InterfaceNet { address: Ipv4Addr::new(198, 19, 0, 1).into(), length };
        let receiver = Ipv4Addr::new(198, 19, 0, 2).into();
        assert_eq!(second_station(net(24), receiver), Some(Ipv4Addr::new(198, 19, 0, 3).into()));
        assert_eq!(second_station(net(30), receiver), None, "3 is the broadcast address");
        let [own, receiver6] = ["2001:2:0:2::1", "2001:2:0:2::2"].map(|text| text.parse().unwrap());
        let inet6 = InterfaceNet { address: own, length: 64 };
        assert_eq!(second_station(inet6, receiver6), Some("2001:2:0:2::3".parse().unwrap()));
        assert_eq!((second_station(net(31), receiver), second_station(net(32), receiver)), (None, None));
    }
}
