//! Loads the BPF programs that `build.rs` compiles from `bpf/*.c`.
//!
//! Programs, maps and links are file descriptors of this process and nothing is pinned, so the kernel removes all of them
//! when the process ends, however it ends.

use std::error::Error;
use std::io;

use aya::programs::links::FdLink;
use aya::programs::xdp::{XdpLink, XdpMode};
use aya::programs::{ProgramError, SchedClassifier, SocketFilter, Xdp};
use aya::{Ebpf, EbpfLoader};

/// A compiled file of `bpf/`.
#[derive(Clone, Copy, Debug)]
pub struct BpfObject {
    name: &'static str,
    bytes: &'static [u8],
}

impl BpfObject {
    /// The object compiled from `bpf/NAME.c`; `bytes` are aligned as `aya::include_bytes_aligned` aligns them.
    pub const fn new(name: &'static str, bytes: &'static [u8]) -> BpfObject {
        BpfObject { name, bytes }
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn bytes(self) -> &'static [u8] {
        self.bytes
    }
}

/// The object compiled from a file in `bpf/` of this crate.
macro_rules! object {
    ($name:literal) => {
        BpfObject::new($name, aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/", $name, ".o")))
    };
}

/// `bpf/forward.c`: the forwarding path of the XDP engine.
pub const FORWARD: BpfObject = object!("forward");
/// `bpf/pass.c`: one program, `pass`, which passes every frame.
pub const PASS: BpfObject = object!("pass");
/// `bpf/classify.c`: decides which frames are forwarded and which stay with the kernel, and notes failed links for threads.
pub const CLASSIFY: BpfObject = object!("classify");

/// `bpf/reinject.c`: one program, `reinject`, which returns frames to the kernel.
pub const REINJECT: BpfObject = object!("reinject");

/// An error with its causes: the first names the system call that failed, the last gives the reason.
pub(crate) fn with_causes(error: &(dyn Error + 'static)) -> String {
    match error.source() {
        None => error.to_string(),
        Some(cause) => format!("{error}: {}", with_causes(cause)),
    }
}

/// Why a program could not be loaded or attached.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// The kernel refused the object or one of its maps.
    #[error(
        "bpf/{object}.c cannot be loaded: {}; this needs root (CAP_BPF, CAP_NET_ADMIN) and Linux 5.9 or newer",
        with_causes(&**error)
    )]
    Load {
        /// The object.
        object: &'static str,
        /// The cause.
        error: Box<aya::EbpfError>,
    },
    /// The kernel refused a program.
    #[error("program {program} of bpf/{object}.c: {}", with_causes(&**error))]
    Program {
        /// Its object.
        object: &'static str,
        /// Its name.
        program: &'static str,
        /// The cause, with the verifier's log if the verifier refused the program.
        error: Box<ProgramError>,
    },
    /// A program or map is not in the object, or has another kind.
    #[error("bpf/{object}.c has no {kind} named {name}")]
    Missing {
        /// The object.
        object: &'static str,
        /// The expected kind.
        kind: &'static str,
        /// The expected name.
        name: &'static str,
    },
    /// The verifier made a bound program longer than its spare room, so the kernel has moved it (`engine/spare_room.rs`).
    #[error(
        "program {program} of bpf/{object}.c has {length} instructions when verified, more than were loaded"
    )]
    Moved {
        /// Its object.
        object: &'static str,
        /// Its name.
        program: &'static str,
        /// The number of its instructions when verified.
        length: usize,
    },
    /// An interface refused the program.
    #[error(
        "interface {interface} takes no XDP program: {}; if it has one already, `ip link show` names it",
        with_causes(&**error)
    )]
    Attach {
        /// Its index.
        interface: u32,
        /// The cause.
        error: Box<ProgramError>,
    },
    /// An interface refused the program at tcx.
    #[error("interface {interface} takes no program at tcx: {error}; Linux 6.6 or newer is needed")]
    AttachAtTcx {
        /// Its index.
        interface: u32,
        /// The cause.
        error: io::Error,
    },
    /// The program of an interface could not be replaced by another one.
    #[error("interface {interface} keeps its program: {error}")]
    Replace {
        /// Its index.
        interface: u32,
        /// The cause.
        error: io::Error,
    },
    /// The kernel has no BPF links, which would detach the program with this process.
    #[error("interface {interface}: this kernel has no BPF links for XDP; Linux 5.9 or newer is needed")]
    NoLink {
        /// Its index.
        interface: u32,
    },
}

/// An object whose maps exist in the kernel.
#[derive(Debug)]
pub struct LoadedObject {
    object: BpfObject,
    /// The maps, and the programs that are loaded one by one.
    pub ebpf: Ebpf,
}

impl BpfObject {
    /// Creates the maps; `configure` may set their sizes first.
    pub fn load_with<'v>(
        self,
        configure: impl FnOnce(&mut EbpfLoader<'v>),
    ) -> Result<LoadedObject, BpfError> {
        let mut loader = EbpfLoader::new();
        configure(&mut loader);
        let ebpf = loader.load(self.bytes);
        let ebpf = ebpf.map_err(|error| BpfError::Load { object: self.name, error: Box::new(error) })?;
        Ok(LoadedObject { object: self, ebpf })
    }

    /// Creates the maps as the object declares them.
    pub fn load(self) -> Result<LoadedObject, BpfError> {
        self.load_with(|_| {})
    }
}

impl LoadedObject {
    /// Has the kernel verify and compile a program.
    pub fn xdp(&mut self, name: &'static str) -> Result<&mut Xdp, BpfError> {
        let object = self.object.name;
        let missing = || BpfError::Missing { object, kind: "XDP program", name };
        let program = self.ebpf.program_mut(name).ok_or_else(missing)?;
        let xdp: &mut Xdp = program.try_into().map_err(|_| missing())?;
        if xdp.fd().is_err() {
            let refused = |error| BpfError::Program { object, program: name, error: Box::new(error) };
            retry_after_signals(|| xdp.load()).map_err(refused)?;
        }
        Ok(xdp)
    }

    /// As [`Self::xdp`], a program for tcx.
    pub fn classifier(&mut self, name: &'static str) -> Result<&mut SchedClassifier, BpfError> {
        self.program(
            name,
            |program: &mut SchedClassifier| {
                if program.fd().is_ok() { Ok(()) } else { program.load() }
            },
        )
    }

    /// As [`Self::xdp`], a filter of a packet socket.
    pub fn socket_filter(&mut self, name: &'static str) -> Result<&mut SocketFilter, BpfError> {
        self.program(
            name,
            |program: &mut SocketFilter| {
                if program.fd().is_ok() { Ok(()) } else { program.load() }
            },
        )
    }

    /// A program that [`Self::xdp`] was called for before.
    pub fn loaded_xdp(&self, name: &'static str) -> Result<&Xdp, BpfError> {
        let missing = || BpfError::Missing { object: self.object.name, kind: "XDP program", name };
        self.ebpf.program(name).and_then(|program| program.try_into().ok()).ok_or_else(missing)
    }

    /// Has the kernel verify and compile a program of another kind than XDP.
    pub fn program<P>(
        &mut self,
        name: &'static str,
        mut load: impl FnMut(&mut P) -> Result<(), ProgramError>,
    ) -> Result<&mut P, BpfError>
    where
        for<'p> &'p mut P: TryFrom<&'p mut aya::programs::Program>,
    {
        let object = self.object.name;
        let missing = || BpfError::Missing { object, kind: "program of that kind", name };
        let program = self.ebpf.program_mut(name).ok_or_else(missing)?;
        let program: &mut P = program.try_into().map_err(|_| missing())?;
        let refused = |error| BpfError::Program { object, program: name, error: Box::new(error) };
        retry_after_signals(|| load(program)).map_err(refused)?;
        Ok(program)
    }

    /// A map of the object.
    pub fn map<'m, M: TryFrom<&'m mut aya::maps::Map>>(
        &'m mut self,
        name: &'static str,
    ) -> Result<M, BpfError> {
        let missing = self.missing_map(name);
        let map = self.ebpf.map_mut(name).and_then(|map| M::try_from(map).ok());
        map.ok_or(missing)
    }

    /// The error for a map that the object does not have.
    pub fn missing_map(&self, name: &'static str) -> BpfError {
        BpfError::Missing { object: self.object.name, kind: "map of that kind", name }
    }
}

/// Attempts to load a program, so that an endless stream of signals ends in an error.
const ATTEMPTS: usize = 20;

/// Repeats a load that a signal interrupted. The verifier gives up with EAGAIN (`do_check` in the kernel's `verifier.c`)
/// when a signal is pending for the thread, or for the process and this thread may handle it; that says nothing about the
/// program.
pub(crate) fn retry_after_signals(
    mut load: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), ProgramError> {
    for _ in 1..ATTEMPTS {
        match load() {
            Err(error) if is_interrupted(&error) => {}
            loaded => return loaded,
        }
    }
    load()
}

fn is_interrupted(error: &ProgramError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::WouldBlock)
}

/// A program on an interface, attached until this value is dropped or the process ends.
#[derive(Debug)]
pub struct ProgramAttachment(#[expect(dead_code, reason = "held, because dropping it detaches")] FdLink);

/// Attaches `program` to an interface by its index.
pub fn attach(program: &mut Xdp, interface: u32, mode: XdpMode) -> Result<ProgramAttachment, BpfError> {
    let refused = |error| BpfError::Attach { interface, error: Box::new(error) };
    let id = program.attach_to_if_index(interface, mode).map_err(refused)?;
    let link: XdpLink = program.take_link(id).map_err(refused)?;
    // Without a BPF link the program would stay attached after the end of the process.
    Ok(ProgramAttachment(FdLink::try_from(link).map_err(|_| BpfError::NoLink { interface })?))
}

#[cfg(test)]
mod tests {
    use aya::sys::SyscallError;

    use super::*;

    fn refused(errno: i32) -> Result<(), ProgramError> {
        let io_error = io::Error::from_raw_os_error(errno);
        Err(ProgramError::SyscallError(SyscallError { call: "BPF_PROG_LOAD", io_error }))
    }

    /// The final result of a load and the number of attempts, when each attempt returns the next of these answers.
    fn attempts(answers: impl IntoIterator<Item = Result<(), ProgramError>>) -> (Result<(), i32>, usize) {
        let (mut answers, mut attempts) = (answers.into_iter(), 0);
        let loaded = retry_after_signals(|| {
            attempts += 1;
            answers.next().unwrap()
        });
        let errno = |error| match error {
            ProgramError::SyscallError(error) => error.io_error.raw_os_error().unwrap(),
            other => panic!("{other}"),
        };
        (loaded.map_err(errno), attempts)
    }

    #[test]
    fn a_load_is_repeated_after_a_signal() {
        assert_eq!(attempts([refused(libc::EAGAIN), refused(libc::EAGAIN), Ok(())]), (Ok(()), 3));
    }

    #[test]
    fn a_refused_program_is_not_loaded_again() {
        assert_eq!(attempts([refused(libc::EACCES)]), (Err(libc::EACCES), 1));
    }

    #[test]
    fn endless_signals_end_in_an_error() {
        let without_end = std::iter::repeat_with(|| refused(libc::EAGAIN));
        assert_eq!(attempts(without_end), (Err(libc::EAGAIN), ATTEMPTS));
    }
}
