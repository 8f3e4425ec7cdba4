//! Devices under test in namespaces: the kernel, or this program with one of its engines, and packets through them.

use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use fullview_lab::{Experiment, Findings, PanelError, PanelWork, Slice, SubjectError, Validity, Verified};
use fullview_plane::burst::{Arena, BURST};
use fullview_router::error::BadInput;
use fullview_router::options::EngineName;
use fullview_table::Family;

use super::arms::{ArmPanel, PanelArm, PanelMember};
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::{Draw, Inputs};
use super::limits;
use crate::device_bed::{
    BedTraffic, DeviceBed, DeviceBedError, IN_FLIGHT, Inspection, LiveArm, LiveGenerator, ReceiveCounter,
    Sender, destinations, inspect,
};
use crate::error::{BenchError, require};
use crate::rates::{BedCores, keep_real_time, priority_note};
use crate::settings::{BedGenerator, DutSettings, Settings, TableSettings};
use crate::testbed::{Counted, GENERATOR, INGRESS, OwnerFolder};
use crate::traffic::frame::{FrameSize, Frames, Macs};
use crate::veth::{RouterProcess, VethError};
use crate::workload::filter::write_rules;

/// The kernel forwards until the router knows the neighbours: so often is a burst repeated.
const ATTEMPTS: usize = 200;
const PAUSE: Duration = Duration::from_millis(50);
/// Their interfaces have letters in their names, of which the control has one.
const MOST_DEVICES: usize = 25;

/// Refuses an experiment that leaves the length of its turns to a calibration, whose shortest turns are too short here.
pub fn check_window(experiment: &Experiment<Settings>) -> Result<(), BenchError> {
    Ok(require(experiment.window.slice().is_some(), || {
        "kind \"testbed\": set window.slice_ms, to 100 for example".into()
    })?)
}

/// Refuses settings that no device has.
pub fn check(settings: &Settings) -> Result<(), BenchError> {
    let DutSettings { options, redirects, .. } = &settings.testbed;
    let device = device(&settings.testbed)?;
    let kernel = device == DutSettings::KERNEL;
    require(kernel || EngineName::from_str(device, false).is_ok(), || {
        format!("testbed.device = \"{device}\": write \"kernel\", or a word of `fullview forward --engine`")
    })?;
    require(!kernel || options.is_none(), || {
        "testbed.options are arguments of `fullview forward`: leave them out with device = \"kernel\"".into()
    })?;
    require(!kernel || settings.filter.language.is_none(), || {
        "filter is for a router of this program: leave it out with device = \"kernel\"".into()
    })?;
    Ok(require(kernel || *redirects != Some(true), || {
        "testbed.redirects is a setting of the kernel: set device = \"kernel\"".into()
    })?)
}

fn device(settings: &DutSettings) -> Result<&str, BadInput> {
    let missing =
        || BadInput("kind \"testbed\": set testbed.device, to \"kernel\" or \"xdp\" for example".into());
    settings.device.as_deref().ok_or_else(missing)
}

/// How the report describes the bed.
pub fn describe() -> Result<Vec<String>, BenchError> {
    let BedCores { generator, device } = BedCores::choose().map_err(DeviceBedError::from)?;
    let note = priority_note();
    let in_real_time = if note.is_none() { ", in real time" } else { "" };
    let mut lines = vec![
        format!("core {generator}: the generator{in_real_time}; core {device}: the device and what receives for it"),
        "links: for each variant two veth pairs between three namespaces; one variant at a time gets packets, the other \
         devices sleep"
            .into(),
        "control: the same packets over one veth pair, without a device".into(),
        "value: packets that the receiver counts while the generator sends as fast as it can".into(),
        "for the whole campaign: namespaces, routes of the kernel and rules; anew for every panel: this program as device"
            .into(),
        "receiver: before and after the turns of a panel every packet of the sequence, up to 8192, has to come out once, \
         with the right Ethernet addresses, hop count, checksum and content"
            .into(),
    ];
    lines.extend(note.map(str::to_owned));
    Ok(lines)
}

/// A bed that lasts for the campaign, because a kernel takes seconds to load a full view.
struct PreparedBed {
    device: DutSettings,
    table: TableSettings,
    bed: DeviceBed,
    routed: Vec<Family>,
}

/// Makes panels of devices.
#[derive(Default)]
pub struct DeviceFactory {
    control: Option<DeviceBed>,
    beds: Vec<PreparedBed>,
}

impl DeviceFactory {
    /// Makes every device ready, and lends them to `work`.
    pub fn panel<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        streams: &[FamilyStream],
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let bed = |error: BenchError| PanelError::Bed(error.into());
        let program =
            std::env::current_exe().map_err(|error| bed(DeviceBedError::NoProgram(error).into()))?;
        let mut chosen = Vec::new();
        for (member, stream) in streams.iter().enumerate() {
            let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
            chosen.push(self.bed::<A>(inputs, &stream.settings, &chosen).map_err(failed)?);
        }
        self.prepare_control().map_err(bed)?;
        let traffic = all_traffic::<A>(inputs, streams, seed).map_err(bed)?;
        let mut arenas: Vec<Arena> = (0..=streams.len()).map(|_| Arena::new(BURST)).collect();
        let mut arenas = arenas.iter_mut();
        let mut next = || arenas.next().ok_or_else(|| bed(BenchError::NoMembers));
        let direct = self.control.as_ref().ok_or_else(|| bed(BenchError::NoMembers))?;
        let live = live_generator(direct, streams, &traffic).map_err(bed)?;
        let live = live.as_ref();
        let control = DeviceArm::new(direct, next()?, &traffic[0], live, 0).map_err(bed)?;
        let mut members: Vec<Box<dyn PanelMember + '_>> = Vec::new();
        for (member, (stream, place)) in streams.iter().zip(chosen).enumerate() {
            let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
            let (bed, number) = (&self.beds[place].bed, member + 1);
            let arm = DeviceArm::new(bed, next()?, &traffic[member], live, number).map_err(failed)?;
            members
                .push(Box::new(DeviceMember::start(arm, &stream.settings, &program, seed).map_err(failed)?));
        }
        work(&mut ArmPanel::new(vec![Box::new(control)], members, false, limits::of_panel(streams)))
    }

    /// The place of a bed for this device that is none of `taken`, with the routes of this family.
    fn bed<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        settings: &Settings,
        taken: &[usize],
    ) -> Result<usize, BenchError> {
        let Settings { testbed, table, .. } = settings;
        let fits = |(place, bed): (usize, &PreparedBed)| {
            !taken.contains(&place) && bed.device == *testbed && bed.table == *table
        };
        let known = self.beds.iter().enumerate().position(fits);
        let place = known.map_or_else(|| self.add(testbed, table), Ok)?;
        let bed = &mut self.beds[place];
        if !bed.routed.contains(&A::FAMILY) {
            bed.bed.testbed.route(A::rib(&*inputs.table(table)?))?;
            bed.routed.push(A::FAMILY);
        }
        Ok(place)
    }

    fn add(&mut self, device: &DutSettings, table: &TableSettings) -> Result<usize, BenchError> {
        let number = self.beds.len() + 1;
        require(number <= MOST_DEVICES, || format!("kind \"testbed\": at most {MOST_DEVICES} devices"))?;
        let cores = BedCores::choose().map_err(DeviceBedError::from)?;
        let bed = DeviceBed::routed(number, cores, device)?;
        let (device, table) = (device.clone(), table.clone());
        self.beds.push(PreparedBed { device, table, bed, routed: Vec::new() });
        Ok(number - 1)
    }

    fn prepare_control(&mut self) -> Result<(), BenchError> {
        if self.control.is_none() {
            let cores = BedCores::choose().map_err(DeviceBedError::from)?;
            self.control = Some(DeviceBed::direct(0, cores)?);
        }
        Ok(())
    }
}

/// The packets of each member.
fn all_traffic<A: BenchFamily>(
    inputs: &mut Inputs,
    streams: &[FamilyStream],
    seed: u64,
) -> Result<Vec<BedTraffic<A>>, BenchError> {
    let macs = Macs { source: GENERATOR, destination: INGRESS };
    let of = |stream: &FamilyStream| {
        let flows = inputs.flows::<A>(&Draw::of(&stream.settings, seed))?;
        let frames = Frames::new(FrameSize::Smallest, macs).map_err(|error| BadInput(error.to_string()))?;
        Ok(BedTraffic { flows, frames })
    };
    streams.iter().map(of).collect()
}

/// The generator in the kernel with the destinations of the control, which are those of the first member, and of each
/// member; if the settings say so.
fn live_generator<A: BenchFamily>(
    holder: &DeviceBed,
    streams: &[FamilyStream],
    traffic: &[BedTraffic<A>],
) -> Result<Option<LiveGenerator>, BenchError> {
    let is_live = |stream: &&FamilyStream| stream.settings.testbed.generator == Some(BedGenerator::Live);
    let live = streams.iter().filter(is_live).count();
    require(live == 0 || live == streams.len(), || {
        "testbed.generator: write it below [subject.testbed], the same for all variants".into()
    })?;
    if live == 0 {
        return Ok(None);
    }
    let of = |traffic: &BedTraffic<A>| {
        destinations(&traffic.flows).ok_or_else(|| {
            BadInput(
                "testbed.generator = \"live\": each flow needs a destination of its own, outside of the test bed, and 1,048,576 are possible; take \
                 the model \"ranges\" with one source"
                    .into(),
            )
        })
    };
    let all = traffic.iter().take(1).chain(traffic).map(of).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(LiveGenerator::load(holder, &all)?))
}

/// What takes turns: a bed and its generator.
struct DeviceArm<'p, A> {
    bed: &'p DeviceBed,
    traffic: &'p BedTraffic<A>,
    sender: Sender<'p, A>,
    /// In place of the sender in turns.
    live: Option<LiveArm<'p>>,
    counter: ReceiveCounter,
    sent: u64,
    received: u64,
}

impl<'p, A: BenchFamily> DeviceArm<'p, A> {
    fn new(
        bed: &'p DeviceBed,
        arena: &'p mut Arena,
        traffic: &'p BedTraffic<A>,
        live: Option<&'p LiveGenerator>,
        number: usize,
    ) -> Result<Self, BenchError> {
        let sender = Sender::open(bed, arena, traffic)?;
        let live = live.map(|live| live.arm(bed, number as u32)).transpose()?;
        Ok(DeviceArm { bed, traffic, sender, live, counter: bed.counter()?, sent: 0, received: 0 })
    }

    fn turn(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, DeviceBedError> {
        if let Some(live) = &mut self.live {
            let Counted { sent, right, time, .. } = live.turn(lead_in, length)?;
            (self.sent, self.received) = (self.sent + sent, self.received + right);
            return Ok(Slice { counted: right, offered: sent, time, lost_core: Duration::ZERO });
        }
        keep_real_time(self.bed.cores.generator)?;
        self.sender.send_for(lead_in)?;
        let (before, began) = (self.counter.packets()?, std::time::Instant::now());
        let offered = self.sender.send_for(length)?;
        let (counted, time) = (self.counter.packets()? - before, began.elapsed());
        self.sent += offered;
        self.received += counted;
        Ok(Slice { counted, offered, time, lost_core: Duration::ZERO })
    }

    /// Inspects when nothing comes out any more: packets of before would be counted.
    fn inspect(&mut self) -> Result<Inspection, BenchError> {
        self.live.iter_mut().for_each(LiveArm::pause);
        let mut before = None;
        while before != Some(self.counter.packets()?) {
            before = Some(self.counter.packets()?);
            thread::sleep(PAUSE);
        }
        Ok(inspect(self.bed, &mut self.sender, self.traffic)?)
    }
}

impl<A: BenchFamily> PanelArm for DeviceArm<'_, A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        // In a thread of its own: the priority of the generator is not that of the lab.
        let turn = thread::scope(|scope| {
            let turn = scope.spawn(|| self.turn(lead_in, length));
            turn.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        Ok(turn.map_err(BenchError::from)?)
    }

    fn findings(&mut self) -> Findings {
        let mut findings = Findings::default();
        let wrong = self.live.as_ref().map_or(0, LiveArm::wrong);
        findings.reasons.extend((wrong > 0).then_some(Validity::Misrouted));
        let figures = [("sent", self.sent), ("received", self.received)];
        findings.counters.extend(figures.map(|(name, count)| (name.to_owned(), count as f64)));
        findings
    }
}

/// A device.
struct DeviceMember<'p, A> {
    arm: DeviceArm<'p, A>,
    router: Option<RouterProcess>,
    /// The files of its filter, which it reads again when it is told to.
    rules: Option<tempfile::TempDir>,
    /// Why it takes no turns.
    refused: Option<String>,
}

impl<'p, A: BenchFamily> DeviceMember<'p, A> {
    fn start(
        arm: DeviceArm<'p, A>,
        settings: &Settings,
        program: &Path,
        seed: u64,
    ) -> Result<Self, BenchError> {
        let engine = device(&settings.testbed)?;
        let refused = arm.bed.refused.clone();
        let mut member = DeviceMember { arm, router: None, rules: None, refused };
        if member.refused.is_some() || engine == DutSettings::KERNEL {
            return Ok(member);
        }
        let rules = OwnerFolder::current().and_then(|owner| owner.folder("rules-"));
        let rules = member.rules.insert(rules.map_err(DeviceBedError::from)?);
        let mut options = settings.testbed.options.clone().unwrap_or_default();
        options.extend(write_rules(&settings.filter, seed, rules.path())?);
        match member.arm.bed.start_router(program, engine, &options) {
            Ok(router) => member.router = Some(router),
            Err(DeviceBedError::Router(refused @ VethError::Router { .. })) => {
                member.refused = Some(refused.to_string());
            }
            Err(other) => return Err(other.into()),
        }
        Ok(member)
    }

    fn forwarded(&self) -> Result<Option<u64>, BenchError> {
        Ok(self.router.as_ref().map(RouterProcess::forwarded).transpose()?)
    }

    /// Sends packets until the program forwards some. Otherwise the kernel alone would be measured in its name.
    fn carries(&mut self) -> Result<bool, BenchError> {
        for _ in 0..ATTEMPTS {
            self.arm.sender.send(IN_FLIGHT)?;
            thread::sleep(PAUSE);
            if self.forwarded()?.is_none_or(|packets| packets > 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The reasons against the panel after its turns, which have loaded the device as nothing before them did.
    fn after_turns(&mut self) -> Result<(), String> {
        let found = self.arm.inspect().map_err(|error| error.to_string())?;
        if found.is_clean() { Ok(()) } else { Err(complaint(&found)) }
    }
}

fn complaint(found: &Inspection) -> String {
    let Inspection { sent, right, wrong, fault } = found;
    let fault = fault.unwrap_or("lost");
    format!("of {sent} packets {right} came out right and {wrong} wrong (first fault: {fault})")
}

impl<A: BenchFamily> PanelArm for DeviceMember<'_, A> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.arm.slice(lead_in, length)
    }

    fn findings(&mut self) -> Findings {
        let mut findings = self.arm.findings();
        let forwarded = self.forwarded().ok().flatten();
        let named = forwarded.map(|packets| ("forwarded by the program".to_owned(), packets as f64));
        findings.counters.extend(named);
        findings.events.extend(self.refused.clone());
        if self.refused.is_none()
            && let Err(complaint) = self.after_turns()
        {
            findings.reasons.push(Validity::Misrouted);
            findings.events.push(complaint);
        }
        findings
    }
}

impl<A: BenchFamily> PanelMember for DeviceMember<'_, A> {
    fn control(&self) -> usize {
        0
    }

    /// Every packet has to come out right, and the program has to forward some of them.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        if self.refused.is_none() && !self.carries()? {
            self.refused = Some("the program forwards nothing here: the kernel carries all packets".into());
        }
        if self.refused.is_some() {
            return Ok(Verified::SetAside(Validity::Refused));
        }
        let found = self.arm.inspect()?;
        if !found.is_clean() {
            Err(BenchError::Wrong(complaint(&found)))?;
        }
        Ok(Verified::Ready)
    }
}
