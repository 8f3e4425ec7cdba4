//! Other implementations of lookup and other routers, measured through processes that answer `peers/README.md`'s protocol.
//!
//! They get the same table and keys as our own algorithms, have verified every answer before they say they are
//! ready, and take their turns in the same randomised blocks: the comparison is side by side or it is none. A
//! contestant that answered wrongly or could not hold the table is not timed; its runs say so.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fullview_router::error::BadInput;
use fullview_table::Family;

use super::cores::Cores;
use super::family::BenchFamily;
use super::family_stream::FamilyStream;
use super::inputs::{Draw, Inputs};
use super::keys::Keys;
use crate::error::{BenchError, PeerError, require};
use crate::settings::{LookupSettings, Peer, Settings, TableSettings, TrafficSettings};
use contestant::Contestant;
use files::PeerFiles;
pub use lookup::PeerLookup;
use process::Process;
pub use router::PeerRouter;

mod contestant;
mod files;
mod lookup;
mod process;
mod router;

/// How the report describes other routers.
pub const CONDITION: &str = "other routers: their own loops between a generator and a receiver of the same kind, the same destinations in the \
     same order, every packet checked before the first run; their value is taken as ours is";

/// Starts peers and makes subjects of their contestants.
pub struct Peers {
    cores: Cores,
    /// The contestants of each program that looks up.
    contestants: Vec<(PathBuf, String)>,
    given: Option<Given>,
    files: Option<Rc<PeerFiles>>,
    lookups: Vec<(PathBuf, Rc<RefCell<Process>>)>,
    /// One process for each router, because its table is its own.
    routers: Vec<(Peer, Rc<RefCell<Process>>)>,
}

/// What all peers of a campaign are started with.
struct Given {
    table: TableSettings,
    order: KeyOrder,
    streams: Vec<(Family, String, TrafficSettings)>,
}

/// Which destinations of a stream peers get.
#[derive(Clone, Copy, PartialEq)]
enum KeyOrder {
    /// So many, drawn from it, to be looked up.
    Drawn(Option<usize>),
    /// All of them as they are sent, to be forwarded.
    AsSent,
}

impl Peers {
    /// No peer runs yet.
    pub fn new(cores: Cores) -> Peers {
        let (contestants, lookups, routers) = (Vec::new(), Vec::new(), Vec::new());
        Peers { cores, contestants, given: None, files: None, lookups, routers }
    }

    /// Takes note of a peer that looks up, and refuses settings that differ from those of other peers.
    pub fn check_lookup<A: BenchFamily>(
        &mut self,
        stream: &FamilyStream,
        peer: &Peer,
    ) -> Result<(), BenchError> {
        self.contestants.push((peer.program.clone(), named_contestant::<A>(peer)?));
        self.agree::<A>(stream, KeyOrder::Drawn(stream.settings.lookup.keys))
    }

    /// The same for a peer that forwards.
    pub fn check_router<A: BenchFamily>(
        &mut self,
        stream: &FamilyStream,
        peer: &Peer,
    ) -> Result<(), BenchError> {
        named_contestant::<A>(peer)?;
        self.agree::<A>(stream, KeyOrder::AsSent)
    }

    /// All peers read the same folder, so the variants have to agree on what is in it.
    fn agree<A: BenchFamily>(&mut self, stream: &FamilyStream, order: KeyOrder) -> Result<(), BenchError> {
        let Settings { table, traffic, .. } = &stream.settings;
        let given =
            self.given.get_or_insert_with(|| Given { table: table.clone(), order, streams: Vec::new() });
        let known =
            given.streams.iter().find(|(family, name, _)| (*family, name) == (A::FAMILY, &stream.stream));
        let agree =
            (&given.table, given.order) == (table, order) && known.is_none_or(|(.., known)| known == traffic);
        require(agree, || "all variants with a peer share their table, traffic and keys".into())?;
        if known.is_none() {
            given.streams.push((A::FAMILY, stream.stream.clone(), traffic.clone()));
        }
        Ok(())
    }

    /// A contestant's lookups.
    pub fn lookup<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        stream: &FamilyStream,
        peer: &Peer,
        control: usize,
    ) -> Result<PeerLookup, BenchError> {
        let known = self.lookups.iter().find(|(program, _)| *program == peer.program);
        let process = match known {
            Some((_, process)) => Rc::clone(process),
            None => self.start_lookups(inputs, &peer.program)?,
        };
        Ok(PeerLookup { contestant: contestant::<A>(process, stream, peer)?, control })
    }

    /// A contestant that forwards.
    pub fn router<A: BenchFamily>(
        &mut self,
        inputs: &mut Inputs,
        stream: &FamilyStream,
        peer: &Peer,
    ) -> Result<PeerRouter, BenchError> {
        let process = match self.routers.iter().find(|(known, _)| known == peer) {
            Some((_, process)) => Rc::clone(process),
            None => self.start_router(inputs, peer)?,
        };
        Ok(PeerRouter { contestant: contestant::<A>(process, stream, peer)?, wrong: 0, lost: 0 })
    }

    fn start_lookups(
        &mut self,
        inputs: &mut Inputs,
        program: &Path,
    ) -> Result<Rc<RefCell<Process>>, BenchError> {
        let files = self.files(inputs)?;
        let of_program = self.contestants.iter().filter(|(of, _)| of == program);
        let mut names: Vec<&str> = of_program.map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let core = self.cores.pin_one()?;
        let process = Rc::new(RefCell::new(Process::start(program, &names, files, (core, None))?));
        self.lookups.push((program.into(), Rc::clone(&process)));
        Ok(process)
    }

    fn start_router(&mut self, inputs: &mut Inputs, peer: &Peer) -> Result<Rc<RefCell<Process>>, BenchError> {
        let files = self.files(inputs)?;
        let names: Vec<&str> = [&peer.inet, &peer.inet6].into_iter().flatten().map(String::as_str).collect();
        let cores = self.cores.for_peer()?;
        let process = Rc::new(RefCell::new(Process::start(&peer.program, &names, files, cores)?));
        self.routers.push((peer.clone(), Rc::clone(&process)));
        Ok(process)
    }

    /// The folder of all peers, written when the first of them starts.
    fn files(&mut self, inputs: &mut Inputs) -> Result<Rc<PeerFiles>, BenchError> {
        if let Some(files) = &self.files {
            return Ok(Rc::clone(files));
        }
        let given = self.given.take().ok_or(PeerError::Unchecked)?;
        let files = Rc::new(given.write(inputs)?);
        self.files = Some(Rc::clone(&files));
        Ok(files)
    }
}

impl Given {
    /// Writes the table and all streams.
    fn write(self, inputs: &mut Inputs) -> Result<PeerFiles, BenchError> {
        let files = PeerFiles::new(&*inputs.table(&self.table)?).map_err(PeerError::Files)?;
        for (family, name, traffic) in self.streams {
            let settings = Settings { table: self.table.clone(), traffic, ..Settings::default() };
            match family {
                Family::Inet => files.add(&name, &*keys::<u32>(inputs, settings, self.order)?),
                Family::Inet6 => files.add(&name, &*keys::<u128>(inputs, settings, self.order)?),
            }
            .map_err(PeerError::Files)?;
        }
        Ok(files)
    }
}

fn keys<A: BenchFamily>(
    inputs: &mut Inputs,
    mut settings: Settings,
    order: KeyOrder,
) -> Result<Arc<Keys<A>>, BenchError> {
    match order {
        KeyOrder::Drawn(keys) => {
            settings.lookup = LookupSettings { keys, ..LookupSettings::default() };
            inputs.keys(&settings)
        }
        KeyOrder::AsSent => {
            let draw = Draw::of(&settings, inputs.seed);
            Ok(Arc::new(Keys::as_sent(&*inputs.flows(&draw)?)))
        }
    }
}

fn contestant<A: BenchFamily>(
    process: Rc<RefCell<Process>>,
    stream: &FamilyStream,
    peer: &Peer,
) -> Result<Contestant, BenchError> {
    let name = named_contestant::<A>(peer)?;
    Ok(Contestant { process, name, family: A::FAMILY, stream: stream.stream.clone() })
}

fn named_contestant<A: BenchFamily>(peer: &Peer) -> Result<String, BenchError> {
    let missing = || BadInput(format!("{}: names no contestant for {}", peer.program.display(), A::FAMILY));
    Ok(A::contestant(peer).ok_or_else(missing)?.clone())
}
