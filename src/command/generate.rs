//! `fullview generate`: writes generated traffic to a capture file.

use std::time::Duration;

use anyhow::ensure;
use fullview_bench::traffic::frame::{Frames, Headers};
use fullview_bench::traffic::generator::Generator;
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::port::pcap::CaptureWriter;
use fullview_table::feed::NextHopModel;
use fullview_table::{Rib, Table};

use super::{BadInput, Exit};
use crate::args::{FamilyName, GenerateArgs};
use fullview_bench::settings::{ModelName, TableSettings, TrafficSettings};
use fullview_bench::workload::packets::{INGRESS, MACS};
use fullview_bench::workload::{packets, table};
use fullview_router::feed;
use fullview_router::progress;

/// Flows, unless the command line says how many.
const FLOWS: usize = 5_000;

pub fn run(args: &GenerateArgs) -> anyhow::Result<Exit> {
    refuse_unused(args)?;
    let table = source(args)?;
    match args.family {
        FamilyName::Inet => write(args, &table.inet)?,
        FamilyName::Inet6 => write(args, &table.inet6)?,
    }
    Ok(Exit::Done)
}

/// Refuses what the model does not look at.
fn refuse_unused(args: &GenerateArgs) -> Result<(), BadInput> {
    let by_ranges = args.model == ModelName::Ranges;
    let unused = [
        ("--source", args.source.is_some() && !by_ranges),
        ("--destination", args.destination.is_some() && !by_ranges),
        ("--flows", args.flows.is_some() && by_ranges),
        ("--table", args.table.is_some() && !takes_table(args.model)),
    ];
    let refused = unused.into_iter().find_map(|(option, is_unused)| is_unused.then_some(option));
    refused.map_or(Ok(()), |option| {
        Err(BadInput(format!("{option}: the model does not use it; leave it out, or choose another --model")))
    })
}

fn takes_table(model: ModelName) -> bool {
    matches!(model, ModelName::Prefixes | ModelName::Zipf)
}

/// The table from which destinations are chosen. Models that need none get the two static routes.
fn source(args: &GenerateArgs) -> anyhow::Result<Table> {
    if let Some(path) = &args.table {
        return Ok(feed::from_file(path, NextHopModel::default())?);
    }
    ensure!(
        !takes_table(args.model),
        BadInput("this model chooses destinations from a table: give --table FILE".into())
    );
    Ok(table::load(&TableSettings { source: Some("two-routes".into()), ..TableSettings::default() })?)
}

fn write<A: Headers>(args: &GenerateArgs, rib: &Rib<A>) -> anyhow::Result<()> {
    let ranges = (args.source.clone(), args.destination.clone());
    let traffic = TrafficSettings {
        model: Some(args.model),
        flows: Some(args.flows.unwrap_or(FLOWS)),
        size: Some(args.size),
        source: ranges.0.clone(),
        destination: ranges.1.clone(),
        source6: ranges.0,
        destination6: ranges.1,
        ..TrafficSettings::default()
    };
    let frames = Frames::new(packets::frame_size(&traffic), MACS);
    let frames = frames.map_err(|error| BadInput(format!("--size: {error}")))?;
    let flows = packets::flows(&traffic, rib, args.seed)?;
    let mut generator = Generator::new(&flows, &frames, INGRESS);
    let mut writer = CaptureWriter::create(&args.write)?;
    let mut arena = Arena::new(BURST);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    burst.iter_mut().for_each(|slot| frames.prepare(slot));
    let bar = progress::steps(args.packets as u64).with_message("packets written");
    let mut written = 0;
    while written < args.packets {
        let count = burst.len().min(args.packets - written);
        generator.fill(&mut burst[..count]);
        for (number, slot) in (written..).zip(&burst[..count]) {
            // Packets are a microsecond apart, from the epoch on, so that the same call writes the same file.
            writer.write(Duration::from_micros(number as u64), slot.frame())?;
        }
        written += count;
        bar.inc(count as u64);
    }
    bar.finish_and_clear();
    Ok(writer.flush()?)
}
