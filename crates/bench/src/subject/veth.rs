//! Real clients over a router: the kernel alone, or this program with one of its engines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fullview_lab::{Experiment, Findings, PanelError, PanelWork, Slice, SubjectError, Validity, Verified};
use fullview_router::error::BadInput;

use super::arms::{ArmPanel, PanelArm, PanelMember};
use super::family_stream::FamilyStream;
use super::limits;
use crate::error::{BenchError, require};
use crate::settings::{Settings, VethSettings};
use crate::testbed::{OwnerFolder, TestbedError};
use crate::veth::{
    ClientLoad, ClientTurn, Clients, RouterProcess, RouterProgram, VethBed, VethError, programs_of,
};
use crate::workload::filter::write_rules;

/// The kernel forwards until the router knows the neighbours: so often is a request repeated.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Refuses an experiment that leaves the length of its turns to a calibration, which would take hours with programs that
/// run for a second.
pub fn check_window(experiment: &Experiment<Settings>) -> Result<(), BenchError> {
    Ok(require(experiment.window.slice().is_some(), || {
        "kind \"veth\": set window.slice_ms; 800 makes turns of iperf3 one second long".into()
    })?)
}

/// Refuses settings that cannot be measured, and names the package of a missing program.
pub fn check(stream: &FamilyStream) -> Result<(), BenchError> {
    let load = load(stream)?;
    let settings = &stream.settings;
    let is_router = engine(settings)? != VethSettings::KERNEL;
    require(is_router || settings.filter.language.is_none() && settings.veth.options.is_none(), || {
        "filter and veth.options are for a router of this program: leave them out with engine = \"kernel\""
            .into()
    })?;
    require(load.bytes >= 16 && load.connections > 0, || {
        "traffic.client: bytes is at least 16, connections at least 1".into()
    })?;
    for (program, package) in programs_of(load.client) {
        require(is_installed(program), || {
            format!("{program} is not installed: `apt install {package}` on Debian")
        })?;
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.into_iter().any(|folder: PathBuf| folder.join(program).exists())
}

/// What the rates of a stream count.
pub fn metric(stream: &FamilyStream) -> Result<String, BenchError> {
    Ok(load(stream)?.metric().into())
}

fn load(stream: &FamilyStream) -> Result<ClientLoad, BadInput> {
    let missing = || {
        let name = &stream.stream;
        BadInput(format!("stream {name}: set traffic.client.load, to \"tcp\" for example"))
    };
    ClientLoad::of(&stream.settings.traffic.client).ok_or_else(missing)
}

fn engine(settings: &Settings) -> Result<&str, BadInput> {
    let missing = || BadInput("kind \"veth\": set veth.engine, to \"kernel\" or \"xdp\" for example".into());
    settings.veth.engine.as_deref().ok_or_else(missing)
}

/// How the report describes the bed.
pub fn describe() -> Result<Vec<String>, BenchError> {
    Ok([
        "clients, router and servers share all cores of this machine; iperf3 and curl on the left host",
        "links: for each variant two veth pairs between three namespaces, rxvlan off at the router; one variant at a time \
         carries traffic, the other routers sleep",
        "control: the same clients over one veth pair, without a router",
        "value: what the receiving end counts; TCP in kilobits of payload, UDP in packets, HTTP in answers",
        "of each turn of iperf3 the first 0.2 s are not counted; curl makes its requests on connections that stay open, \
         to a server of this program",
        "anew for every panel: namespaces, routers and servers",
    ]
    .map(str::to_owned)
    .into())
}

/// Makes panels of routers between real clients.
#[derive(Default)]
pub struct VethFactory(());

impl VethFactory {
    /// Makes a bed for each member and for the control, and lends them to `work`.
    pub fn panel(
        &mut self,
        streams: &[FamilyStream],
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let bed = |error: BenchError| PanelError::Bed(error.into());
        let program = std::env::current_exe().map_err(|error| bed(no_program(error)))?;
        let direct = ClientBed::direct(&streams[0]).map_err(bed)?;
        let mut beds = Vec::new();
        for (member, stream) in streams.iter().enumerate() {
            let failed = |error: BenchError| PanelError::Member { member, source: error.into() };
            beds.push(ClientBed::routed(member, stream, seed, &program).map_err(failed)?);
        }
        let control = VethArm::new(&direct).map_err(|error| bed(error.into()))?;
        let mut members: Vec<Box<dyn PanelMember + '_>> = Vec::new();
        for (member, of) in beds.iter().enumerate() {
            let failed =
                |error: VethError| PanelError::Member { member, source: BenchError::from(error).into() };
            let arm = VethArm::new(of).map_err(failed)?;
            members.push(Box::new(VethMember { arm, bed: of, refused: of.refused.clone() }));
        }
        work(&mut ArmPanel::new(vec![Box::new(control)], members, false, limits::of_panel(streams)))
    }
}

fn no_program(error: std::io::Error) -> BenchError {
    VethError::Start { program: "this program".into(), error }.into()
}

/// A bed with what runs on its router.
struct ClientBed {
    bed: VethBed,
    load: ClientLoad,
    router: Option<RouterProcess>,
    /// The files of its filter, which it reads again when it is told to.
    rules: Option<tempfile::TempDir>,
    /// Why the router does not run.
    refused: Option<String>,
}

impl ClientBed {
    fn new(bed: VethBed, load: ClientLoad) -> ClientBed {
        ClientBed { bed, load, router: None, rules: None, refused: None }
    }

    fn direct(stream: &FamilyStream) -> Result<ClientBed, BenchError> {
        let load = load(stream)?;
        Ok(ClientBed::new(VethBed::direct(0, load.offloads)?, load))
    }

    fn routed(
        member: usize,
        stream: &FamilyStream,
        seed: u64,
        program: &Path,
    ) -> Result<ClientBed, BenchError> {
        let load = load(stream)?;
        let mut made = ClientBed::new(VethBed::routed(member + 1, load.offloads)?, load);
        // What one kernel or tool lacks is no reason to measure none of the variants.
        let mut lines = stream.settings.veth.start.iter().flatten();
        match lines.try_for_each(|line| made.bed.shell(line)) {
            Ok(()) => made.start(&stream.settings, seed, program)?,
            Err(TestbedError::Command { error, .. }) => made.refused = Some(format!("veth.start: {error}")),
            Err(other) => return Err(VethError::from(other).into()),
        }
        Ok(made)
    }

    fn start(&mut self, settings: &Settings, seed: u64, program: &Path) -> Result<(), BenchError> {
        let engine = engine(settings)?;
        let namespace = self.bed.router.as_ref().filter(|_| engine != VethSettings::KERNEL);
        let Some(namespace) = namespace else { return Ok(()) };
        let rules = OwnerFolder::current().and_then(|owner| owner.folder("rules-"));
        let rules = self.rules.insert(rules.map_err(VethError::from)?);
        let mut options = settings.veth.options.clone().unwrap_or_default();
        options.extend(write_rules(&settings.filter, seed, rules.path())?);
        let router = RouterProgram { program, interfaces: "eth1,eth2", engine, options: &options };
        match RouterProcess::start(namespace, &router) {
            Ok(router) => self.router = Some(router),
            Err(refused @ VethError::Router { .. }) => self.refused = Some(refused.to_string()),
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    fn forwarded(&self) -> Result<Option<u64>, VethError> {
        self.router.as_ref().map(RouterProcess::forwarded).transpose()
    }
}

/// What takes turns: a bed with its clients.
struct VethArm<'b> {
    clients: Clients<'b>,
    total: ClientTurn,
}

impl<'b> VethArm<'b> {
    fn new(bed: &'b ClientBed) -> Result<VethArm<'b>, VethError> {
        let total = ClientTurn { counted: 0, offered: 0, time: Duration::ZERO };
        Ok(VethArm { clients: Clients::start(&bed.bed, bed.load)?, total })
    }
}

impl PanelArm for VethArm<'_> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        let turn = self.clients.turn(lead_in, length).map_err(BenchError::from)?;
        self.total.counted += turn.counted;
        self.total.offered += turn.offered;
        let ClientTurn { counted, offered, time } = turn;
        Ok(Slice { counted, offered, time, lost_core: Duration::ZERO })
    }

    fn findings(&mut self) -> Findings {
        let mut findings = Findings::default();
        let figures = [("sent", self.total.offered), ("received", self.total.counted)];
        findings.counters.extend(figures.map(|(name, count)| (name.to_owned(), count as f64)));
        findings
    }
}

/// A bed with a router.
struct VethMember<'b> {
    arm: VethArm<'b>,
    bed: &'b ClientBed,
    /// Why it takes no turns.
    refused: Option<String>,
}

impl VethMember<'_> {
    /// Makes requests until the program forwards packets of them. The kernel alone has to carry one.
    fn carries(&self) -> Result<bool, BenchError> {
        for _ in 0..ATTEMPTS {
            self.arm.clients.request()?;
            if self.bed.forwarded()?.is_none_or(|packets| packets > 0) {
                return Ok(true);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(false)
    }
}

impl PanelArm for VethMember<'_> {
    fn slice(&mut self, lead_in: Duration, length: Duration) -> Result<Slice, SubjectError> {
        self.arm.slice(lead_in, length)
    }

    fn findings(&mut self) -> Findings {
        let mut findings = self.arm.findings();
        findings.events.extend(self.refused.clone());
        let forwarded = self.bed.forwarded().ok().flatten();
        findings
            .counters
            .extend(forwarded.map(|packets| ("forwarded by the program".to_owned(), packets as f64)));
        findings
    }
}

impl PanelMember for VethMember<'_> {
    fn control(&self) -> usize {
        0
    }

    /// Packets have to get through, and the program has to forward some of them: otherwise the kernel alone would be
    /// measured in its name.
    fn verify(&mut self) -> Result<Verified, SubjectError> {
        if self.refused.is_none() && !self.carries()? {
            self.refused = Some("the program forwards nothing here: the kernel carries all packets".into());
        }
        Ok(match self.refused {
            Some(_) => Verified::SetAside(Validity::Refused),
            None => Verified::Ready,
        })
    }
}
