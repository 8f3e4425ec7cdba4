//! `fullview forward`: forwards packets between interfaces of this host, or from a capture file into another.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::ensure;

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::counters::{Counters, InterfaceCounters, Traffic};
use fullview_plane::forward::Forwarder;
use fullview_plane::port::pcap::{CapturePort, CaptureReader, CaptureWriter};
use fullview_plane::port::{Port, PortError};
use fullview_router::host::router::StandaloneRouter;
use fullview_table::Table;
use fullview_table::feed::NextHopModel;
use serde_json::json;

use super::{Exit, open_capture, route};
use crate::args::ForwardArgs;
use crate::command::output::stdout;
use fullview_bench::workload::answering;
use fullview_bench::workload::packets::INGRESS;
use fullview_bench::workload::router::router as workload_router;
use fullview_router::algorithm::{Names, RouterSettings};
use fullview_router::daemon::RouterCounts;
use fullview_router::error::BadInput;
use fullview_router::log;
use fullview_router::{algorithm, feed};

pub fn run(args: &ForwardArgs) -> anyhow::Result<Exit> {
    let names = Names::Several(vec![args.algorithm.clone(), "auto".into()]);
    let preferences = args.preferences.clone();
    let settings = RouterSettings { algorithm: Some(names), modules: None, preferences };
    algorithm::check::<u32>(&settings)?;
    match (&args.table, &args.read, &args.write) {
        (Some(table), Some(read), Some(write)) => captures(args, &settings, [table, read, write]),
        _ => between_interfaces(args),
    }
}

/// Forwards until the program is asked to end.
fn between_interfaces(args: &ForwardArgs) -> anyhow::Result<Exit> {
    match route::run(args)? {
        RouterCounts::Workers(counters) => print(&counters, args.json)?,
        RouterCounts::Program(counts) => print_named(&counts, args.json)?,
    }
    Ok(Exit::Done)
}

/// Forwards the packets of a capture file into another.
fn captures(
    args: &ForwardArgs,
    settings: &RouterSettings,
    [table, read, write]: [&PathBuf; 3],
) -> anyhow::Result<Exit> {
    let reader = open_capture(read)?;
    ensure!(!same_file(read, write), BadInput("--read and --write are the same file".into()));
    let table = feed::from_file(table, NextHopModel::default())?;
    if !args.address.is_empty() {
        return answering(args, &table, reader, CaptureWriter::create(write)?);
    }
    let (inet, inet6) =
        (algorithm::compile(settings, &table.inet)?, algorithm::compile(settings, &table.inet6)?);
    inet.log.iter().chain(&inet6.log).for_each(|line| log::line(line));
    let mut router = workload_router(inet.fib, inet6.fib, &table.next_hops, (args.mac, 1))?;
    forward(&mut router, reader, CaptureWriter::create(write)?)?;
    print(router.counters(), args.json)?;
    Ok(Exit::Done)
}

/// Does the same with a host that answers for the router's addresses.
fn answering(
    args: &ForwardArgs,
    table: &Table,
    reader: CaptureReader<File>,
    writer: CaptureWriter<BufWriter<File>>,
) -> anyhow::Result<Exit> {
    let router = answering::router(table, args.mac, args.address.clone());
    let mut router = router.map_err(|error| BadInput(format!("--address: {error}")))?;
    forward(&mut router, reader, writer)?;
    print(router.forwarder().counters(), args.json)?;
    Ok(Exit::Done)
}

/// What packets go through, burst by burst.
trait Way {
    fn process<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut Burst<'a>, free: &mut Burst<'a>);

    /// Whether it has nothing more to send.
    fn is_done(&self) -> bool;
}

impl Way for Forwarder {
    fn process<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut Burst<'a>, free: &mut Burst<'a>) {
        self.process(burst, forwarded, free);
    }

    fn is_done(&self) -> bool {
        true
    }
}

/// A router whose time stands still: what is due later than at once never is.
impl Way for StandaloneRouter {
    fn process<'a>(&mut self, burst: &mut Burst<'a>, forwarded: &mut Burst<'a>, free: &mut Burst<'a>) {
        self.process(Duration::ZERO, burst, forwarded, free);
    }

    fn is_done(&self) -> bool {
        self.has_sent_all()
    }
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Reads, forwards and writes burst by burst until the capture ends and the router has sent all.
fn forward(
    router: &mut impl Way,
    reader: CaptureReader<File>,
    writer: CaptureWriter<BufWriter<File>>,
) -> Result<(), PortError> {
    let mut arena = Arena::new(BURST);
    let mut port = CapturePort::new(INGRESS, Some(reader), Some(writer));
    let (mut free, mut burst) = (Burst::new(), Burst::new());
    let (mut forwarded, mut rejected) = (Burst::new(), Burst::new());
    free.fill(arena.packets());
    while !port.is_finished() || !router.is_done() {
        // The packets that the router itself originates need slots too.
        rejected.fill(free.drain_front(BURST / 2));
        port.recycle(&mut free);
        port.receive(&mut burst, BURST / 2)?;
        router.process(&mut burst, &mut forwarded, &mut rejected);
        port.transmit(&mut forwarded)?;
        free.fill(rejected.drain());
        port.reclaim(&mut free);
    }
    let (_, writer) = port.into_inner();
    writer.map_or(Ok(()), |mut writer| writer.flush())
}

fn print(counters: &Counters, as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    let drops: Vec<_> =
        counters.drop_reasons().map(|(reason, count)| (reason.name().to_owned(), count)).collect();
    let (received, forwarded) = (counters.received().packets, counters.sent().packets);
    if as_json {
        let drops: serde_json::Map<_, _> =
            drops.into_iter().map(|(reason, count)| (reason, count.into())).collect();
        let interfaces: Vec<_> = counters.interfaces.iter().map(interface).collect();
        let all = json!({ "interfaces": interfaces, "received": received, "forwarded": forwarded, "punted": counters.punted(), "dropped": drops });
        writeln!(out, "{all:#}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{received} packets received, {forwarded} forwarded, {} for the router itself",
        counters.punted()
    )?;
    Ok(drops.iter().try_for_each(|(reason, count)| writeln!(out, "{count} dropped: {reason}"))?)
}

fn print_named(counts: &[(&'static str, u64)], as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    if as_json {
        let all: serde_json::Map<_, _> =
            counts.iter().map(|(name, count)| ((*name).into(), (*count).into())).collect();
        return Ok(writeln!(out, "{:#}", serde_json::Value::from(all))?);
    }
    let mut counted = counts.iter().filter(|(_, count)| *count > 0);
    Ok(counted.try_for_each(|(name, count)| writeln!(out, "{count} {name}"))?)
}

fn interface(counters: &InterfaceCounters) -> serde_json::Value {
    let traffic = |traffic: &Traffic| json!({ "packets": traffic.packets, "bytes": traffic.bytes });
    json!({ "received": traffic(&counters.received), "sent": traffic(&counters.sent) })
}
