//! `fullview trace`: shows stage by stage what happens to packets, in a running router or with a table of routes.

use std::io::Write;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fullview_plane::burst::{Arena, Burst, FRAME_CAPACITY};
use fullview_plane::explain::{Explanation, LoopOutcome, RouteNames, explain};
use fullview_plane::forward::Forwarder;
use fullview_plane::trace::PacketFilter;
use fullview_plane::verdict::Verdict;
use fullview_router::log;
use fullview_table::feed::NextHopModel;
use fullview_table::{Address, NextHop, Table};
use serde_json::json;

use super::campaign::stop_on_signal;
use super::show::{connect, time};
use super::{BadInput, Exit, open_capture, shown};
use crate::args::operations::TraceArgs;
use crate::command::output::stdout;
use fullview_bench::workload::packets::INGRESS;
use fullview_bench::workload::router::router;
use fullview_router::algorithm::RouterSettings;
use fullview_router::control::client::Client;
use fullview_router::control::request::{Request, WatchQuery};
use fullview_router::control::status::{NotedPacket, NotedPackets};
use fullview_router::{algorithm, feed};

/// How often the router is asked for the packets that it noted.
const TICK: Duration = Duration::from_millis(100);

pub fn run(args: &TraceArgs) -> anyhow::Result<Exit> {
    let matching: PacketFilter =
        args.r#match.parse().map_err(|error| BadInput(format!("--match: {error}")))?;
    match &args.table {
        Some(file) => offline(args, &matching, &feed::from_file(file, NextHopModel::default())?),
        None => online(args),
    }
}

fn online(args: &TraceArgs) -> anyhow::Result<Exit> {
    let watch = WatchQuery {
        drops_only: args.drops,
        interface: args.interface.clone(),
        matching: Some(args.r#match.clone()),
        count: args.count,
    };
    let mut disagreements = 0;
    let stop = stop_on_signal()?;
    let followed = follow(&mut connect(&args.router)?, watch, (args.seconds, &stop), |packet| {
        disagreements += u64::from(packet.disagreement.is_some());
        print(packet, args.json)
    });
    if let Ok(Followed { missed: missed @ 1.., .. }) = followed {
        log::line(&format!("{missed} more packets were not noted"));
    }
    let exit = match (verdict(disagreements), &followed) {
        (Exit::Done, Ok(followed)) => followed.exit(),
        (exit, _) => exit,
    };
    shown(followed.map(drop), exit)
}

/// How a watch ended.
pub struct Followed {
    /// Packets that were not noted.
    pub missed: u64,
    is_interrupted: bool,
}

impl Followed {
    pub fn exit(&self) -> Exit {
        if self.is_interrupted { Exit::Interrupted } else { Exit::Done }
    }
}

/// Logs how many explanations disagree with what the router did: a mistake of this program.
fn verdict(disagreements: u64) -> Exit {
    if disagreements == 0 {
        return Exit::Done;
    }
    log::line(&format!(
        "fullview: {disagreements} packets were not forwarded as explained; this is a bug, or the routes changed meanwhile: trace again"
    ));
    Exit::Failed
}

/// Fetches the packets that a watch notes until it is finished, the time is up, or a signal has set the flag.
pub fn follow(
    client: &mut Client,
    watch: WatchQuery,
    (seconds, stop): (Option<u64>, &AtomicBool),
    mut each: impl FnMut(&NotedPacket) -> anyhow::Result<()>,
) -> anyhow::Result<Followed> {
    // A time that no clock reaches does not end the watch.
    let until = seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    client.ask_raw(&Request::Watch(watch))?;
    let (mut missed, mut ending) = (0, false);
    loop {
        let noted: NotedPackets = client.ask(&Request::Noted)?;
        noted.packets.iter().try_for_each(&mut each)?;
        let is_interrupted = stop.load(Ordering::Relaxed);
        if ending {
            return Ok(Followed { missed, is_interrupted });
        }
        missed += noted.missed;
        // The last packets may still be on their way from the workers, so the router is asked once more.
        ending = noted.finished || is_interrupted || until.is_some_and(|until| Instant::now() >= until);
        sleep(TICK);
    }
}

fn print(packet: &NotedPacket, as_json: bool) -> anyhow::Result<()> {
    let mut out = stdout();
    if as_json {
        writeln!(out, "{}", json!(packet))?;
        return Ok(());
    }
    let at = if packet.at == 0 { String::new() } else { time(packet.at) + " " };
    writeln!(out, "{at}{}", packet.verdict)?;
    packet.steps.iter().try_for_each(|step| writeln!(out, "  {step}"))?;
    if let Some(disagreement) = &packet.disagreement {
        writeln!(out, "  BUT THE ROUTER DID OTHERWISE: {disagreement}")?;
    }
    Ok(out.flush()?)
}

/// Traces with a table: the same loop forwards, and the same code explains.
fn offline(args: &TraceArgs, matching: &PacketFilter, table: &Table) -> anyhow::Result<Exit> {
    let frames = frames(args)?;
    let settings = RouterSettings::default();
    let inet = algorithm::compile(&settings, &table.inet)?.fib;
    let inet6 = algorithm::compile(&settings, &table.inet6)?.fib;
    let mut router = router(inet, inet6, &table.next_hops, (args.mac, 1))?;
    let fits = |frame: &&Vec<u8>| matching.matches(INGRESS, frame);
    let traced = frames.iter().filter(fits).map(|frame| trace(&mut router, table, frame));
    let wanted = traced.filter(|packet| !args.drops || packet.verdict.starts_with("drop"));
    let mut disagreements = 0;
    let mut first = wanted.take(usize::try_from(args.count).unwrap_or(usize::MAX));
    let printed = first.try_for_each(|packet| {
        disagreements += u64::from(packet.disagreement.is_some());
        print(&packet, args.json)
    });
    shown(printed, verdict(disagreements))
}

fn frames(args: &TraceArgs) -> anyhow::Result<Vec<Vec<u8>>> {
    if let Some(hex) = &args.packet {
        let frame = from_hex(hex).map_err(|problem| BadInput(format!("--packet: {problem}")))?;
        ensure!(
            frame.len() <= FRAME_CAPACITY,
            BadInput(format!("--packet: longer than {FRAME_CAPACITY} bytes"))
        );
        return Ok(vec![frame]);
    }
    let path = args
        .read
        .as_ref()
        .ok_or_else(|| BadInput("--table: say which frames, with --packet or --read".into()))?;
    let (mut reader, mut arena) = (open_capture(path)?, Arena::new(1));
    let (mut frames, mut slots) = (Vec::new(), arena.packets());
    let Some(slot) = slots.next() else { return Ok(frames) };
    while reader.read_into(slot)?.is_some() {
        frames.push(slot.frame().to_vec());
    }
    Ok(frames)
}

/// Parses pairs of hexadecimal digits. Spaces and colons are ignored.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |at: char| at.to_digit(16).ok_or_else(|| format!("{at:?} is not a hexadecimal digit"));
    let digits: Vec<u32> =
        text.chars().filter(|at| !at.is_whitespace() && *at != ':').map(digit).collect::<Result<_, _>>()?;
    if !digits.len().is_multiple_of(2) {
        return Err("an odd number of digits".into());
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

fn trace(router: &mut Forwarder, table: &Table, frame: &[u8]) -> NotedPacket {
    let explanation = explain(router.view(), &TableNames(table), INGRESS, frame);
    let mut arena = Arena::new(1);
    let (mut burst, mut sent, mut rejected) = (Burst::new(), Burst::new(), Burst::new());
    for slot in arena.packets() {
        slot.port = INGRESS;
        // Frames are no longer than a slot: see `frames`.
        slot.set_frame(frame);
        burst.fill([slot].into_iter());
    }
    router.process(&mut burst, &mut sent, &mut rejected);
    let outcome = match (sent.first(), rejected.first()) {
        (Some(slot), _) => {
            LoopOutcome { verdict: Verdict::Forward, departure: Some((slot.port, slot.frame())) }
        }
        (None, Some(slot)) => LoopOutcome { verdict: slot.verdict, departure: None },
        // Nothing came out at all: no verdict there is would agree with that.
        (None, None) => LoopOutcome { verdict: Verdict::Forward, departure: None },
    };
    describe(frame, &explanation, &outcome)
}

fn describe(frame: &[u8], explanation: &Explanation, outcome: &LoopOutcome<'_>) -> NotedPacket {
    NotedPacket {
        at: 0,
        interface: String::new(),
        frame: frame.iter().map(|byte| format!("{byte:02x}")).collect(),
        frame_len: frame.len() as u32,
        verdict: outcome.verdict.to_string(),
        steps: explanation.steps.iter().map(ToString::to_string).collect(),
        disagreement: explanation.disagreement(outcome),
    }
}

struct TableNames<'a>(&'a Table);

impl RouteNames for TableNames<'_> {
    fn route(&self, _table: u16, addr: IpAddr) -> Option<(String, NextHop)> {
        match addr {
            IpAddr::V4(ip) => self
                .0
                .inet
                .longest_match(u32::from_ip(ip))
                .map(|route| (route.prefix.to_string(), route.next_hop)),
            IpAddr::V6(ip) => self
                .0
                .inet6
                .longest_match(u128::from_ip(ip))
                .map(|route| (route.prefix.to_string(), route.next_hop)),
        }
    }

    fn next_hop(&self, hop: NextHop) -> Option<String> {
        self.0.next_hops.target(hop).map(|target| target.to_string())
    }
}
