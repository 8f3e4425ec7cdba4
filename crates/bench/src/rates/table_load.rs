//! Loads routes into the kernel of a device that runs, and measures when packets go by them.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fullview_router::netlink::route_writer::RouteWriter;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::error::RatesError;
use super::memory::ProgramMemory;
use super::route_changes::{MadeChanges, RouteChanges};
use super::route_table::{RouteTable, TableSource};

/// Packets to the last route, again and again until some are forwarded.
const PROBE_LOAD: f64 = 1000.0;
const PROBES: Duration = Duration::from_millis(10);
/// A device that does not forward by a route for so long does not read the kernel's routes.
const LONGEST: Duration = Duration::from_secs(120);
/// A program frees what it needed for loading within this time.
pub const SETTLE: Duration = Duration::from_millis(500);

/// Routes of the device's kernel, and changes of them while it is measured.
#[derive(Clone, Debug)]
pub struct RoutesPlan {
    pub table: Arc<RouteTable>,
    /// What the table was made from.
    pub source: Arc<TableSource>,
    /// A second; 0 for none.
    pub changes: u32,
    /// Whether they lead by the spare link.
    pub spare: bool,
}

impl RoutesPlan {
    /// The same routes by the spare link, of which so many change a second.
    pub fn by_spare(&self, changes: u32) -> RoutesPlan {
        let table = Arc::new(self.table.by_spare());
        RoutesPlan { table, source: Arc::clone(&self.source), changes, spare: true }
    }
}

/// What loading the routes took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableLoad {
    pub routes: usize,
    /// Until the kernel had them.
    pub load_seconds: f64,
    /// From the first route until the device forwarded packets by the last one.
    pub forwards_seconds: f64,
    /// The memory of the device's program before and after. Nothing for the kernel.
    pub program: Option<[ProgramMemory; 2]>,
    /// What the program took for each route.
    pub bytes_per_route: Option<f64>,
}

/// Changes while the device was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeRate {
    pub wanted_per_second: f64,
    /// What the kernel took.
    pub made_per_second: f64,
    pub made: u64,
    /// Whether they were those of a trace.
    #[serde(default)]
    pub traced: bool,
}

impl TableLoad {
    /// By the times until the kernel had the routes and until the device forwarded by them, and its program's memory before
    /// and after.
    pub fn new(
        routes: usize,
        [load_seconds, forwards_seconds]: [f64; 2],
        [before, after]: [Option<ProgramMemory>; 2],
    ) -> TableLoad {
        let program = before.zip(after).map(<[ProgramMemory; 2]>::from);
        let taken = |[before, after]: [ProgramMemory; 2]| after.all() as f64 - before.all() as f64;
        let bytes_per_route = program.map(|program| taken(program) / routes as f64);
        TableLoad { routes, load_seconds, forwards_seconds, program, bytes_per_route }
    }
}

impl ChangeRate {
    pub fn new(plan: &RoutesPlan, made: MadeChanges) -> ChangeRate {
        ChangeRate {
            wanted_per_second: plan.changes.into(),
            made_per_second: made.changes as f64 / made.seconds.max(f64::MIN_POSITIVE),
            made: made.changes,
            traced: plan.source.trace.is_some(),
        }
    }
}

/// Loads the routes, waits until the device forwards by them, and begins to change them. The packets of all further trials
/// go by these routes.
pub fn load_routes(device: &mut Device, plan: &RoutesPlan) -> Result<TableLoad, RatesError> {
    let RoutesPlan { table, changes, .. } = plan;
    let mut writer = writer(device)?;
    let before = device.memory();
    let began = Instant::now();
    table.load().try_for_each(|route| writer.write(route))?;
    writer.flush()?;
    let load_seconds = began.elapsed().as_secs_f64();
    let last = table.last().ok_or(RatesError::NoRoutes)?;
    let forwards_seconds = await_route(device, last, began)?.as_secs_f64();
    thread::sleep(SETTLE);
    let load = TableLoad::new(table.count(), [load_seconds, forwards_seconds], [before, device.memory()]);
    device.bed.destinations.clone_from(&table.destinations);
    if *changes > 0 {
        let core = device.bed.cores.device;
        device.changes =
            Some(RouteChanges::start(writer, Arc::clone(table), f64::from(*changes), Some(core)));
    }
    Ok(load)
}

/// Ends the changes, and says how many were made.
pub fn end_changes(device: &mut Device, plan: &RoutesPlan) -> Result<Option<ChangeRate>, RatesError> {
    let Some(changes) = device.changes.take() else { return Ok(None) };
    Ok(Some(ChangeRate::new(plan, changes.end()?)))
}

fn writer(device: &Device) -> Result<RouteWriter, RatesError> {
    let namespace = device.bed.router.as_ref().ok_or(RatesError::NoRoutes)?;
    let link = namespace.device(device.bed.routed_by())?;
    Ok(namespace.within(|| Ok(RouteWriter::open(link)))??)
}

/// A device to which packets can be sent by one route.
pub trait RoutedDevice {
    /// Packets that it has forwarded itself.
    fn forwarded(&self) -> Result<u64, RatesError>;

    /// Offers a load to one address.
    fn offer_to(&self, address: IpAddr, load: f64, duration: Duration) -> Result<(), RatesError>;
}

/// Sends packets by a route until the device itself forwards some of them.
pub fn await_route(
    device: &dyn RoutedDevice,
    address: IpAddr,
    began: Instant,
) -> Result<Duration, RatesError> {
    let mut forwarded = device.forwarded()?;
    while began.elapsed() < LONGEST {
        let asked = began.elapsed();
        device.offer_to(address, PROBE_LOAD, PROBES)?;
        let now = device.forwarded()?;
        if now > forwarded {
            return Ok(asked);
        }
        forwarded = now;
    }
    Err(RatesError::NotForwarded { seconds: LONGEST.as_secs() })
}
