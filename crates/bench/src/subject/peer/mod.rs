//! Other implementations of lookup and other routers, measured through processes that answer `peers/README.md`'s protocol.
//!
//! They get the same table and keys as our own algorithms, have verified every answer before they say they are ready, and
//! take their turns in the same panels. They start anew for each panel. Routers, ours among them, run on the bed of
//! `peers/bed`, one process each. A contestant that answered wrongly or could not hold the table is not timed.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use fullview_lab::Validity;
use fullview_router::error::BadInput;
use fullview_table::Family;

use super::arms::{ArmPanel, PanelArm};
use super::cores::Cores;
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::{Draw, Inputs};
use super::keys::Keys;
use super::limits;
use crate::error::{BenchError, PeerError, require};
use crate::settings::{Peer, Settings, Shape, TableSettings, TrafficSettings};
use contestant::Contestant;
use files::PeerFiles;
use lookup::PeerLookup;
use process::{PeerPlace, Process};
use router::{PeerBed, PeerRouter};

mod contestant;
mod files;
mod lookup;
mod process;
mod router;

/// How the report describes the bed of routers that are processes.
pub const CONDITIONS: [&str; 3] = [
    "bed: peers/bed for all routers, the same generator, receiver, number of packet buffers and counters; smallest frames, one source, destinations in the same order",
    "receiver: every packet checked before the first slice, one in 64 during slices; the control is the bed of the same process without its router",
    "processes: each router in one of its own, started anew for each block; packets are drawn anew for each block; the page size of each is in its log lines",
];

/// Starts peers.
pub struct Peers {
    cores: Cores,
    given: Vec<Given>,
}

/// What all peers of a panel are started with.
#[derive(PartialEq)]
struct Given {
    family: Family,
    stream: String,
    table: TableSettings,
    traffic: TrafficSettings,
    keys: Option<usize>,
}

impl Peers {
    /// Peers run on these cores.
    pub fn new(cores: Cores) -> Peers {
        Peers { cores, given: Vec::new() }
    }

    /// Refuses a peer without a contestant for the family, and settings that differ from those of other peers: all peers of
    /// a panel read the same folder.
    pub fn check<A: BenchFamily>(&mut self, stream: &FamilyStream, peer: &Peer) -> Result<(), BenchError> {
        named_contestant::<A>(peer)?;
        let Settings { table, traffic, lookup, .. } = stream.settings.clone();
        let given =
            Given { family: A::FAMILY, stream: stream.stream.clone(), table, traffic, keys: lookup.keys };
        let known = |known: &&Given| (known.family, &known.stream) == (given.family, &given.stream);
        match self.given.iter().find(known) {
            Some(known) => require(*known == given, || {
                "all variants with a peer share their table, traffic and keys".into()
            })?,
            None => self.given.push(given),
        }
        Ok(())
    }

    /// Starts the programs that look up for members of this panel.
    pub fn lookups<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        streams: &[FamilyStream],
        seed: u64,
    ) -> Result<PeerLookups, BenchError> {
        let Plan { processes, of_members } = Plan::of::<A>(streams)?;
        let mut running = Vec::new();
        if let Some(files) = looked_up::<A>(inputs, streams, seed)? {
            let place = PeerPlace { core: self.cores.pin_one()?, ..PeerPlace::default() };
            for PlannedProcess { program, names } in processes {
                let process = Process::start(program, &names, Rc::clone(&files), place)?;
                running.push(Rc::new(RefCell::new(process)));
            }
        }
        Ok(PeerLookups { running, of_members })
    }

    /// A panel of routers, each with the bed of its process as control. An error comes with the member that it concerns.
    pub fn routers<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        streams: &[FamilyStream],
        seed: u64,
    ) -> Result<ArmPanel<'static>, (usize, BenchError)> {
        let first = streams.first().ok_or((0, BenchError::NoMembers))?;
        let files = self.sent::<A>(inputs, first, seed).map_err(|error| (0, error))?;
        let subtracts = first.settings.load.shape != Some(Shape::TwoCores);
        let mut panel = ArmPanel::new(Vec::new(), Vec::new(), subtracts, limits::of_panel(streams));
        for (member, stream) in streams.iter().enumerate() {
            self.add_router::<A>(&mut panel, stream, &files).map_err(|error| (member, error))?;
        }
        require(!panel.controls.is_empty(), || "no router can take part".into())
            .map_err(|error| (0, error.into()))?;
        Ok(panel)
    }

    /// The folder with the packets of this seed.
    fn sent<A: BenchFamily>(
        &self,
        inputs: &mut Inputs,
        stream: &FamilyStream,
        seed: u64,
    ) -> Result<Rc<PeerFiles>, BenchError> {
        let flows = inputs.flows::<A>(&Draw::of(&stream.settings, seed))?;
        Ok(Rc::new(files(inputs, stream, &Keys::as_sent(&flows))?))
    }

    fn add_router<A: BenchFamily>(
        &self,
        panel: &mut ArmPanel<'static>,
        stream: &FamilyStream,
        files: &Rc<PeerFiles>,
    ) -> Result<(), BenchError> {
        let load = &stream.settings.load;
        let peer = load.peer.as_ref().ok_or_else(unlike_routers)?;
        let (name, (core, other)) = (named_contestant::<A>(peer)?, self.cores.for_peer()?);
        let place = PeerPlace { core, other, buffers: load.packets };
        let process = Process::start(&peer.program, std::slice::from_ref(&name), Rc::clone(files), place)?;
        let process = Rc::new(RefCell::new(process));
        let contestant = |name| contestant::<A>(&process, stream, name);
        let router = contestant(name.clone());
        // The process of a router that cannot take part serves nothing.
        let mut control = 0;
        if !matches!(router.obstacle(), Some((Validity::Refused, _))) {
            control = panel.controls.len();
            let bed = Box::new(PeerBed(contestant(name_of_bed::<A>(&name))));
            panel.controls.push(bed as Box<dyn PanelArm>);
        }
        panel.members.push(Box::new(PeerRouter { contestant: router, control }));
        Ok(())
    }
}

/// The processes that look up for the members of a panel.
struct Plan<'a> {
    processes: Vec<PlannedProcess<'a>>,
    /// The position of each member's; `None` for our own algorithms.
    of_members: Vec<Option<usize>>,
}

struct PlannedProcess<'a> {
    program: &'a Path,
    /// Its contestants.
    names: Vec<String>,
}

impl<'a> Plan<'a> {
    /// A program serves its contestants by one process. A contestant that another member has as well, as the copy of the
    /// baseline has that of the baseline, is made once more by another process, so that both differ in their memory.
    fn of<A: BenchFamily>(streams: &'a [FamilyStream]) -> Result<Self, BenchError> {
        let mut plan = Plan { processes: Vec::new(), of_members: Vec::new() };
        for stream in streams {
            let process = match &stream.settings.lookup.peer {
                Some(peer) => Some(plan.add(&peer.program, named_contestant::<A>(peer)?)),
                None => None,
            };
            plan.of_members.push(process);
        }
        Ok(plan)
    }

    /// The position of the process that makes this contestant for one member more.
    fn add(&mut self, program: &'a Path, name: String) -> usize {
        let has_room =
            |process: &PlannedProcess<'_>| process.program == program && !process.names.contains(&name);
        let position = self.processes.iter().position(has_room).unwrap_or(self.processes.len());
        match self.processes.get_mut(position) {
            Some(process) => process.names.push(name),
            None => self.processes.push(PlannedProcess { program, names: vec![name] }),
        }
        position
    }
}

/// The programs of a panel that look up.
pub struct PeerLookups {
    running: Vec<Rc<RefCell<Process>>>,
    of_members: Vec<Option<usize>>,
}

impl PeerLookups {
    /// The lookups of a member by its contestant.
    pub fn lookup<A: BenchFamily>(
        &self,
        member: usize,
        stream: &FamilyStream,
        peer: &Peer,
        control: usize,
    ) -> Result<PeerLookup, BenchError> {
        let process = self.of_members[member].and_then(|position| self.running.get(position));
        let process = process.ok_or(PeerError::Ended)?;
        Ok(PeerLookup { contestant: contestant::<A>(process, stream, named_contestant::<A>(peer)?), control })
    }
}

/// Why our own router, measured in this process, is not compared with another one.
pub fn unlike_routers() -> BadInput {
    BadInput(
        "another router is compared with ours on one bed: give every variant a load.peer, ours peers/fullview/run.sh"
            .into(),
    )
}

fn files<A: BenchFamily>(
    inputs: &mut Inputs,
    stream: &FamilyStream,
    keys: &Keys<A>,
) -> Result<PeerFiles, BenchError> {
    let table = inputs.table(&stream.settings.table)?;
    Ok(PeerFiles::new(A::rib(&table), &stream.stream, keys).map_err(PeerError::Files)?)
}

/// The folder with the table and the keys that all peers among these members share. Our own algorithms may have others.
fn looked_up<A: BenchFamily>(
    inputs: &mut Inputs,
    streams: &[FamilyStream],
    seed: u64,
) -> Result<Option<Rc<PeerFiles>>, BenchError> {
    let Some(stream) = streams.iter().find(|stream| stream.settings.lookup.peer.is_some()) else {
        return Ok(None);
    };
    let keys = inputs.keys::<A>(&stream.settings, seed)?;
    Ok(Some(Rc::new(files(inputs, stream, &keys)?)))
}

fn contestant<A: BenchFamily>(
    process: &Rc<RefCell<Process>>,
    stream: &FamilyStream,
    name: String,
) -> Contestant {
    Contestant { process: Rc::clone(process), name, family: A::FAMILY, stream: stream.stream.clone() }
}

/// The contestant that is the bed of this one, in bursts of the same size.
fn name_of_bed<A: BenchFamily>(router: &str) -> String {
    let burst = router.rsplit(':').next().unwrap_or(router);
    format!("bed_{}:{burst}", A::FAMILY)
}

fn named_contestant<A: BenchFamily>(peer: &Peer) -> Result<String, BenchError> {
    let missing = || BadInput(format!("{}: names no contestant for {}", peer.program.display(), A::FAMILY));
    Ok(A::contestant(peer).ok_or_else(missing)?.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked_up_by(peer: Option<[&str; 2]>) -> FamilyStream {
        let peer = peer.map_or(String::new(), |[program, name]| {
            format!("lookup.peer = {{ program = \"{program}\", inet = \"{name}\" }}")
        });
        let settings = toml::from_str(&format!("kind = \"lookup\"\n{peer}")).unwrap();
        FamilyStream::of(&settings, "inet").unwrap()
    }

    /// The baseline and its copy would be one structure in one place, and could not differ.
    #[test]
    fn a_contestant_of_several_members_is_made_by_a_process_for_each() {
        let members = [
            Some(["dpdk.sh", "fib:32"]),
            None,
            Some(["dpdk.sh", "lpm:32"]),
            Some(["go.sh", "bart:1"]),
            Some(["dpdk.sh", "fib:32"]),
            Some(["dpdk.sh", "fib:32"]),
        ];
        let streams = members.map(looked_up_by);
        let Plan { processes, of_members } = Plan::of::<u32>(&streams).unwrap();
        assert_eq!(of_members, [Some(0), None, Some(0), Some(1), Some(2), Some(3)]);
        let names: Vec<String> = processes.iter().map(|process| process.names.join(",")).collect();
        assert_eq!(names, ["fib:32,lpm:32", "bart:1", "fib:32", "fib:32"]);
    }

    /// Members come in a random order.
    #[test]
    fn peers_get_the_table_and_keys_of_a_peer_whichever_member_is_first() {
        let mut own = looked_up_by(None);
        own.settings.table.source = Some("two-routes".into());
        own.settings.lookup.keys = Some(7);
        let mut peer = looked_up_by(Some(["go.sh", "bart:1"]));
        (peer.settings.table.inet, peer.settings.table.inet6) = (Some(300), Some(20));
        (peer.settings.traffic.flows, peer.settings.lookup.keys) = (Some(100), Some(50));
        let (mut inputs, keys) = (Inputs::new(), format!("{}.inet.keys", peer.stream));
        let routes = inputs.table(&peer.settings.table).unwrap().inet.len();
        let files = looked_up::<u32>(&mut inputs, &[own, peer], 1).unwrap().unwrap();
        let read = |name: &str| std::fs::read(files.path().join(name)).unwrap();
        let lines = read("table.txt").iter().filter(|byte| **byte == b'\n').count();
        assert_eq!((lines, read(&keys).len()), (routes, 4 * 50));
    }
}
