//! `fullview rates`: the highest loads that devices carry between network namespaces, or between hosts.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::ValueEnum;
use fullview_bench::rates::{
    CampaignFiles, DeviceName, NamespaceLab, Questions, RateLab, RatesCampaign, RatesError, RatesGraph,
    RatesReport, RouteTable, RouteTrace, RoutesPlan, TableSource, TrialArchive, TurnLog, answers, graphs,
    lengths, notes, page, result_files, sizes, table,
};
use fullview_bench::remote::{DeviceKind, HOOKS, LabOptions, RemoteLab, Wiring, laid_files, sha256};
use fullview_bench::served::Hello;
use fullview_bench::traffic::frame::FrameSize;
use fullview_router::error::BadInput;
use fullview_router::{log, progress};
use fullview_table::Family;
use serde_json::{Map, Value, json};

use super::rates_profile::{Profiling, is_profile_file};
use super::testbed::read;
use super::{Exit, campaign, shown};
use crate::args::rates::RatesArgs;
use crate::command::output::stdout;

pub fn run(args: &RatesArgs) -> anyhow::Result<Exit> {
    let has_results = args.out.join("trials.jsonl").exists();
    refuse_results(args, has_results)?;
    let wiring = args.testbed.as_deref().map(read).transpose()?;
    wiring.as_ref().map_or(Ok(()), |wiring| check_wiring(args, wiring))?;
    check_size(args, family_of(args, wiring.as_ref()))?;
    let wanted = wanted(args, devices(args, wiring.as_ref())?, wiring.as_ref())?;
    let settings = settings(args, &wanted, wiring.as_ref())?;
    // No result is removed before it is known that the campaign could be resumed, and could begin.
    let resume = || TurnLog::resume(&args.out, settings.clone()).map_err(|error| BadInput(error.to_string()));
    let known = args.resume.then(resume).transpose()?;
    let stop = campaign::stop_on_signal()?;
    let mut lab = lab(args, wiring, &wanted.devices, &stop)?;
    let profiling = Profiling::of(args, lab.as_ref())?;
    let (mut archive, mut turns) = match known {
        Some(turns) => (TrialArchive::resume(&args.out, &turns.keys())?, turns),
        None => {
            if has_results {
                remove_results(&args.out)?;
            }
            (TrialArchive::create(&args.out)?, TurnLog::create(&args.out, settings))
        }
    };
    let files = CampaignFiles { archive: &mut archive, turns: &mut turns };
    let bar = progress::steps(wanted.searches() as u64);
    let measured = wanted.run(lab.as_mut(), files, &stop, &bar);
    bar.finish_and_clear();
    match measured {
        Err(RatesError::Stopped) => Ok(Exit::Interrupted),
        Err(error) => Err(error.into()),
        Ok(mut report) => {
            // The rates stay also if the profiles fail.
            write(args, &report)?;
            let are_valid = profiling.add(&wanted, lab.as_mut(), &mut report, &args.out, &stop)?;
            write(args, &report)?;
            let exit = match exit(&report) {
                _ if stop.load(Ordering::Relaxed) => Exit::Interrupted,
                Exit::Done if args.profile && !are_valid => Exit::Invalid,
                exit => exit,
            };
            shown(print(args, &report), exit)
        }
    }
}

fn refuse_results(args: &RatesArgs, has_results: bool) -> anyhow::Result<()> {
    let folder = args.out.display();
    ensure!(
        args.force || args.resume || !has_results,
        BadInput(format!(
            "{folder}: there are results already; --force replaces them, --resume goes on, --out chooses another folder"
        ))
    );
    if has_results { Ok(()) } else { refuse_other_files(&args.out) }
}

/// Refuses a folder without results that has files of the same names: they are the user's.
fn refuse_other_files(folder: &Path) -> anyhow::Result<()> {
    let file = result_files().into_iter().map(|name| folder.join(name)).find(|path| path.exists());
    file.map_or(Ok(()), |file| {
        let file = file.display();
        Err(BadInput(format!(
            "{file} is not a file of results, and they would replace it: move it elsewhere, or choose another folder with \
             --out"
        ))
        .into())
    })
}

/// Refuses what hosts of this wiring cannot answer.
fn check_wiring(args: &RatesArgs, wiring: &Wiring) -> anyhow::Result<()> {
    check_traffic(args, wiring)?;
    let has_clock = wiring.has_one_clock();
    ensure!(has_clock || !args.latency, BadInput(format!("--latency: {}", RatesError::NoCommonClock)));
    let dut = &wiring.inventory.nodes[wiring.dut].name;
    let needs_agent = args.profile || needs_kernel(args);
    ensure!(
        wiring.has_dut_agent() || !needs_agent,
        BadInput(format!(
            "--profile, --routes, --convergence: this program does not run on {dut} (agent = false)"
        ))
    );
    ensure!(
        wiring.routed_port().is_some() || args.routes.is_none(),
        BadInput(format!("--routes: the wire of the receiver has to lead to {dut}"))
    );
    let has_spare = wiring.spare.is_some() && wiring.routed_port().is_some();
    ensure!(
        has_spare || args.convergence.is_none(),
        BadInput(format!(
            "--convergence: the receiver needs a second interface with `spare = true`, both at wires of {dut}"
        ))
    );
    Ok(())
}

/// Refuses frames that are too short for the family of the packets.
fn check_size(args: &RatesArgs, family: Family) -> anyhow::Result<()> {
    let least = *sizes(family).start();
    let is_short = matches!(args.size, Some(FrameSize::Bytes(bytes)) if bytes < least);
    ensure!(!is_short, BadInput(format!("--size: the smallest frame of IPv6 has {least} bytes")));
    Ok(())
}

/// The shortest trial in which several senders of other programs begin at once, in seconds.
const TOGETHER: f64 = 2.0;

/// Refuses what a line that sends or receives cannot do.
fn check_traffic(args: &RatesArgs, wiring: &Wiring) -> anyhow::Result<()> {
    let both = [("--latency", args.latency), ("--convergence", args.convergence.is_some())];
    let sent = [
        ("--bursts", args.bursts),
        ("--routes", args.routes.is_some()),
        ("--size imix", args.size == Some(FrameSize::Imix)),
    ];
    let sent = sent.into_iter().filter(|_| wiring.has_send_line());
    let has_line = wiring.has_send_line() || wiring.has_receive_line();
    let refused = both.into_iter().filter(|_| has_line).chain(sent).find(|(_, is_asked)| *is_asked);
    let has_several = wiring.has_send_line() && wiring.sending.len() > 1;
    ensure!(
        !has_several || args.trial_seconds >= TOGETHER,
        BadInput(format!(
            "--trial-seconds: lines of several hosts do not begin at once to the millisecond; give {TOGETHER} or more"
        ))
    );
    refused.map_or(Ok(()), |(option, _)| {
        Err(BadInput(format!(
            "{option}: this needs fullview's own generator, and its receiver for \
             --latency and --convergence; here a line of the inventory stands in the place of one"
        ))
        .into())
    })
}

/// What two parts of a campaign must have in common.
fn settings(
    args: &RatesArgs,
    wanted: &RatesCampaign,
    wiring: Option<&Wiring>,
) -> anyhow::Result<Map<String, Value>> {
    let commands: Vec<[&String; 2]> = args.command.iter().map(|one| [&one.name, &one.line]).collect();
    let all = json!({
        "build": Hello::of_this_program().build,
        "devices": wanted.devices,
        "commands": commands,
        "inventory": wiring.map(|wiring| &wiring.inventory),
        "files": wiring.map(|wiring| laid_files(&wiring.inventory.devices)),
        "repetitions": wanted.repetitions,
        "seed": wanted.seed,
        "trial_seconds": wanted.trial_seconds,
        "most_seconds": wanted.most_seconds,
        "most_load": wanted.most_load,
        "family": family_of(args, wiring).name(),
        "frame_bytes": lengths(args.size.unwrap_or_default(), family_of(args, wiring)),
        "latency": wanted.latency,
        "bursts": args.bursts,
        "routes": args.routes,
        "changes": args.changes,
        "trace": args.trace,
        "trace_sha256": args.trace.as_deref().map(sha256),
        "convergence": args.convergence,
    });
    // Numbers are compared as they are read again.
    Ok(serde_json::from_str(&all.to_string())?)
}

/// Removes the results before: a picture of what is not measured now would stand beside the new page.
fn remove_results(folder: &Path) -> anyhow::Result<()> {
    let listed = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let profiles = listed.filter(|name| is_profile_file(name));
    result_files().into_iter().chain(profiles).try_for_each(|name| remove(&folder.join(name)))?;
    let hooks = fs::read_dir(folder.join(HOOKS)).into_iter().flatten().flatten();
    hooks.map(|entry| entry.path()).try_for_each(|path| remove(&path))
}

/// Removes a file if it is there.
fn remove(file: &Path) -> anyhow::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{}: cannot remove", file.display()))
        }
        _ => Ok(()),
    }
}

fn lab(
    args: &RatesArgs,
    wiring: Option<Wiring>,
    devices: &[String],
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Box<dyn RateLab>> {
    let program = std::env::current_exe().context("the path of this program")?;
    Ok(match wiring {
        Some(wiring) => {
            let patience = Duration::from_secs(args.patience);
            let (size, out, stop) = (args.size.unwrap_or_default(), args.out.clone(), Arc::clone(stop));
            Box::new(RemoteLab::connect(wiring, LabOptions { size, patience, out, stop })?)
        }
        None => {
            let lab = NamespaceLab::new(
                program,
                (args.size.unwrap_or_default(), args.family),
                args.command.clone(),
            )?;
            lab.check(devices)?;
            Box::new(lab)
        }
    })
}

/// The names on the command line, else all of the test bed, in its order.
fn devices(args: &RatesArgs, wiring: Option<&Wiring>) -> anyhow::Result<Vec<String>> {
    let (all, usual) = match wiring {
        Some(wiring) => {
            let all: Vec<String> = wiring.inventory.devices.iter().map(|one| one.name.clone()).collect();
            (all.clone(), all)
        }
        None => (
            DeviceName::value_variants().iter().map(word).collect(),
            usual(args.quick).iter().map(word).collect(),
        ),
    };
    let (commands, without) = (commands(args)?, without_kernel(wiring));
    if args.devices.is_empty() {
        let has_kernel = |device: &String| !(needs_kernel(args) && without.contains(device));
        return Ok([usual, commands].concat().into_iter().filter(has_kernel).collect());
    }
    let all = [all, commands.clone()].concat();
    let unknown = args.devices.iter().find(|device| !all.contains(device));
    if let Some(unknown) = unknown {
        let known = all.join(", ");
        return Err(
            BadInput(format!("--devices: there is no device {unknown:?} here; there are {known}")).into()
        );
    }
    let without = without.iter().find(|name| args.devices.contains(name));
    if let Some(name) = without.filter(|_| needs_kernel(args)) {
        return Err(BadInput(format!(
            "--routes, --convergence: {name} has no kernel with routes; leave it out of --devices"
        ))
        .into());
    }
    // A block of images needs its control.
    let control = wiring.filter(|wiring| wiring.has_images()).and_then(|wiring| wiring.inventory.control());
    let is_control = |device: &String| control.is_some_and(|control| control.name == *device);
    let is_wanted =
        |device: &String| args.devices.contains(device) || commands.contains(device) || is_control(device);
    Ok(all.into_iter().filter(is_wanted).collect())
}

/// Devices that do not forward by routes.
fn without_kernel(wiring: Option<&Wiring>) -> Vec<String> {
    match wiring {
        None => [DeviceName::Link, DeviceName::Off].iter().map(word).collect(),
        Some(wiring) => {
            let off = wiring.inventory.devices.iter().filter(|device| device.kind == DeviceKind::Off);
            off.map(|device| device.name.clone()).collect()
        }
    }
}

fn needs_kernel(args: &RatesArgs) -> bool {
    args.routes.is_some() || args.convergence.is_some()
}

/// The names of the programs that are measured beside the devices.
fn commands(args: &RatesArgs) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> = args.command.iter().map(|command| command.name.clone()).collect();
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    match twice {
        Some((_, name)) => Err(BadInput(format!("--command: {name} is given twice")).into()),
        None => Ok(names),
    }
}

fn usual(quick: bool) -> &'static [DeviceName] {
    if quick { &[DeviceName::Kernel, DeviceName::Auto] } else { &DeviceName::USUAL }
}

fn word(device: &DeviceName) -> String {
    device.word().to_owned()
}

fn wanted(args: &RatesArgs, devices: Vec<String>, wiring: Option<&Wiring>) -> anyhow::Result<RatesCampaign> {
    let has_clock = wiring.is_none_or(|wiring| wiring.has_one_clock() && !wiring.has_receive_line());
    Ok(RatesCampaign {
        devices,
        repetitions: args.repetitions,
        seed: args.seed,
        trial_seconds: args.trial_seconds,
        most_seconds: args.most_seconds,
        most_load: args.most_load.map(f64::from),
        latency: args.latency || args.quick && has_clock,
        questions: questions(args, family_of(args, wiring))?,
    })
}

/// That of all packets.
fn family_of(args: &RatesArgs, wiring: Option<&Wiring>) -> Family {
    wiring.map_or(args.family, Wiring::family)
}

fn questions(args: &RatesArgs, family: Family) -> anyhow::Result<Questions> {
    let has_changes = args.trace.is_none() || args.changes > 0;
    ensure!(has_changes, BadInput("--trace: give --changes a rate above 0".into()));
    let trace = args.trace.as_deref().map(|path| RouteTrace::load(path, family)).transpose();
    let trace = trace.map_err(|error| BadInput(format!("--trace: {error}")))?;
    let plan = |routes: u32| {
        let source = TableSource { routes: routes as usize, seed: args.seed, trace };
        let table =
            RouteTable::new(&source, family).map_err(|error| BadInput(format!("--routes: {error}")))?;
        let (table, source) = (Arc::new(table), Arc::new(source));
        anyhow::Ok(RoutesPlan { table, source, changes: args.changes, spare: false })
    };
    let routes = args.routes.map(plan).transpose()?;
    Ok(Questions { bursts: args.bursts, routes, failures: args.convergence.unwrap_or(0) })
}

fn write(args: &RatesArgs, report: &RatesReport) -> anyhow::Result<()> {
    for (name, text) in [("README.md", page(report)), ("report.json", serde_json::to_string_pretty(report)?)]
    {
        let path = args.out.join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))?;
    }
    graphs(report).iter().try_for_each(|graph| draw(args, graph))
}

fn draw(args: &RatesArgs, graph: &RatesGraph) -> anyhow::Result<()> {
    let write = |kind: &str, drawn: Result<Vec<u8>, String>| {
        let path = args.out.join(graph.file(kind));
        let bytes = drawn.map_err(anyhow::Error::msg);
        bytes.and_then(|bytes| Ok(fs::write(&path, bytes)?)).with_context(|| path.display().to_string())
    };
    write("svg", graph.drawing.svg().map(String::into_bytes))?;
    write("png", graph.drawing.png())
}

fn print(args: &RatesArgs, report: &RatesReport) -> anyhow::Result<()> {
    if args.json {
        return Ok(writeln!(stdout(), "{}", serde_json::to_string_pretty(report)?)?);
    }
    let largest = report.largest_load / 1000.0;
    writeln!(
        stdout(),
        "{}1000 packets/s; the generator holds {largest:.1}\n{}",
        table(report),
        answers(report)
    )?;
    notes(report).iter().for_each(|note| log::line(note));
    log::line(&format!("losses at each load: {}", args.out.join("README.md").display()));
    Ok(())
}

fn exit(report: &RatesReport) -> Exit {
    match (report.interrupted, report.is_complete()) {
        (true, _) => Exit::Interrupted,
        (_, true) => Exit::Done,
        _ => Exit::Invalid,
    }
}
