//! `fullview forward`: packets between interfaces of this host, or from a capture file into another.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::ensure;

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::counters::{Counters, InterfaceCounters, Traffic};
use fullview_plane::forward::Forwarder;
use fullview_plane::port::pcap::{CapturePort, CaptureReader, CaptureWriter};
use fullview_plane::port::{Port, PortError};
use fullview_table::feed::NextHopModel;
use fullview_table::fib::framework;
use serde_json::json;

use super::{BadInput, Exit};
use crate::args::ForwardArgs;
use crate::router;
use crate::settings::{Names, RouterSettings};
use crate::workload::packets::INGRESS;
use crate::workload::router::router as workload_router;
use crate::workload::{algorithm, table};

pub fn run(args: &ForwardArgs) -> anyhow::Result<Exit> {
    let names = Names::Several(vec![args.algorithm.clone(), "auto".into()]);
    let preferences = args.preferences.clone();
    let settings = RouterSettings { algorithm: Some(names), modules: None, preferences };
    algorithm::check::<u32>(&settings)?;
    match (&args.table, &args.read, &args.write) {
        (Some(table), Some(read), Some(write)) => captures(args, &settings, [table, read, write]),
        _ => interfaces(args, &settings),
    }
}

/// Between interfaces, until the program is asked to end.
fn interfaces(args: &ForwardArgs, settings: &RouterSettings) -> anyhow::Result<Exit> {
    let options = router::Options {
        interfaces: args.interfaces.clone(),
        engine: args.engine,
        algorithm: Some(args.algorithm.clone()).filter(|name| name != algorithm::AUTO),
        settings: framework::Settings {
            preferences: algorithm::preferences(settings)?,
            ..Default::default()
        },
        netlink_buffer: args.netlink_buffer,
        workers: args.workers,
    };
    let stop = router::stop_on_signal()?;
    match router::run(&options, &stop)? {
        router::Counted::Workers(counters) => print(&counters, args.json)?,
        router::Counted::Named(counts) => print_named(&counts, args.json)?,
    }
    Ok(Exit::Done)
}

/// From file to file.
fn captures(
    args: &ForwardArgs,
    settings: &RouterSettings,
    [table, read, write]: [&PathBuf; 3],
) -> anyhow::Result<Exit> {
    let reader = CaptureReader::open(read)?;
    ensure!(!same_file(read, write), BadInput("--read and --write are the same file".into()));
    let table = table::from_file(table, NextHopModel::default())?;
    let (inet, inet6) =
        (algorithm::compile(settings, &table.inet)?, algorithm::compile(settings, &table.inet6)?);
    inet.log.iter().chain(&inet6.log).for_each(|line| eprintln!("{line}"));
    let mut router = workload_router(inet.fib, inet6.fib, &table.next_hops, args.mac)?;
    forward(&mut router, reader, CaptureWriter::create(write)?)?;
    print(router.counters(), args.json)?;
    Ok(Exit::Done)
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Reads, routes and writes burst by burst until the capture ends.
fn forward(
    router: &mut Forwarder,
    reader: CaptureReader<File>,
    writer: CaptureWriter<BufWriter<File>>,
) -> Result<(), PortError> {
    let mut arena = Arena::new(BURST);
    let mut port = CapturePort::new(INGRESS, Some(reader), Some(writer));
    let (mut free, mut burst) = (Burst::new(), Burst::new());
    let (mut forwarded, mut rejected) = (Burst::new(), Burst::new());
    free.fill(arena.packets());
    while !port.is_finished() {
        port.recycle(&mut free);
        port.receive(&mut burst, BURST)?;
        router.process(&mut burst, &mut forwarded, &mut rejected);
        port.transmit(&mut forwarded)?;
        port.reclaim(&mut free);
        free.fill(rejected.drain());
    }
    let (_, writer) = port.into_inner();
    writer.map_or(Ok(()), |mut writer| writer.flush())
}

fn print(counters: &Counters, as_json: bool) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
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
    let mut out = io::stdout().lock();
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
