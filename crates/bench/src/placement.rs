//! The assignment of cores to threads. No other module decides it.
//!
//! There are two shapes. On one core generator, router and receiver take turns and run to completion: slower, and
//! repeatable within a few per cent. On two cores the ends (generator and receiver) have one core and the router has the
//! other: that measures the router alone, and depends on the distance between the two cores ([`crate::probe`]).

use std::fmt::{self, Display};

use core_affinity::CoreId;

/// Bits in the mask of cores that `sched_setaffinity(2)` is given: glibc's `CPU_SETSIZE`.
const CORES: usize = 1024;

/// A part of the work that has a core of its own, or shares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Generator and receiver.
    Ends,
    /// The forwarding path.
    Router,
}

/// Which core does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Everything in one thread.
    OneCore {
        /// The system's number of the core.
        core: usize,
    },
    /// A thread for the ends and one for the router.
    TwoCores {
        /// The core of generator and receiver.
        ends: usize,
        /// The core of the router.
        router: usize,
    },
}

/// Why threads cannot be placed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The system does not say which cores there are.
    #[error("the system does not tell which cores this process may use")]
    Unknown,
    /// Fewer cores than needed.
    #[error(
        "{need} cores are needed and this process may use {have}; widen its CPU affinity or use one core"
    )]
    TooFew {
        /// Cores needed.
        need: usize,
        /// Cores there are.
        have: usize,
    },
    /// A number that the system's masks of cores have no bit for.
    #[error("core {core} cannot exist: cores are numbered from 0 to {}; choose one this process may use", CORES - 1)]
    NoSuchCore {
        /// The core.
        core: usize,
    },
    /// The system refused.
    #[error("a thread could not be pinned to core {core}; is it among the cores this process may use?")]
    Refused {
        /// The core.
        core: usize,
    },
}

impl Placement {
    /// Everything on the last core this process may use: interrupts tend to be served by the first.
    pub fn one_core() -> Result<Placement, PlacementError> {
        let cores = cores(1)?;
        Ok(Placement::OneCore { core: cores[cores.len() - 1] })
    }

    /// Ends on the first and router on the last core this process may use.
    pub fn two_cores() -> Result<Placement, PlacementError> {
        let cores = cores(2)?;
        Ok(Placement::TwoCores { ends: cores[0], router: cores[cores.len() - 1] })
    }

    /// The core of a role.
    pub fn core(&self, role: Role) -> usize {
        match (*self, role) {
            (Placement::OneCore { core }, _) => core,
            (Placement::TwoCores { ends, .. }, Role::Ends) => ends,
            (Placement::TwoCores { router, .. }, Role::Router) => router,
        }
    }

    /// Pins the calling thread to its role's core. Afterwards this thread, and those it spawns, may use no other core,
    /// so decide on the placement first.
    pub fn pin(&self, role: Role) -> Result<(), PlacementError> {
        pin(self.core(role))
    }
}

impl Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::OneCore { core } => {
                write!(f, "one core: generator, router and receiver on core {core}")
            }
            Placement::TwoCores { ends, router } => {
                write!(f, "two cores: generator and receiver on core {ends}, router on core {router}")
            }
        }
    }
}

/// Pins the calling thread to one core.
pub(crate) fn pin(core: usize) -> Result<(), PlacementError> {
    // The mask is an array that `core_affinity` indexes unchecked by anything but a panic.
    if core >= CORES {
        return Err(PlacementError::NoSuchCore { core });
    }
    if core_affinity::set_for_current(CoreId { id: core }) {
        Ok(())
    } else {
        Err(PlacementError::Refused { core })
    }
}

/// The cores this thread may use, in order, at least `need` of them.
fn cores(need: usize) -> Result<Vec<usize>, PlacementError> {
    let mut cores: Vec<usize> =
        core_affinity::get_core_ids().ok_or(PlacementError::Unknown)?.iter().map(|core| core.id).collect();
    cores.sort_unstable();
    if cores.len() < need {
        return Err(PlacementError::TooFew { need, have: cores.len() });
    }
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_the_cores_that_are_printed() {
        let two = Placement::TwoCores { ends: 3, router: 5 };
        assert_eq!((two.core(Role::Ends), two.core(Role::Router)), (3, 5));
        assert_eq!(two.to_string(), "two cores: generator and receiver on core 3, router on core 5");
        let one = Placement::OneCore { core: 2 };
        assert_eq!((one.core(Role::Ends), one.core(Role::Router)), (2, 2));
        assert_eq!(one.to_string(), "one core: generator, router and receiver on core 2");
    }

    #[test]
    fn a_core_beyond_the_mask_is_an_error_and_not_a_panic() {
        for core in [CORES, usize::MAX] {
            let error = Placement::OneCore { core }.pin(Role::Router).unwrap_err();
            assert_eq!(error, PlacementError::NoSuchCore { core });
        }
        let error = PlacementError::NoSuchCore { core: 1024 }.to_string();
        assert!(error.starts_with("core 1024 cannot exist: cores are numbered from 0 to 1023"), "{error}");
    }

    #[test]
    fn a_pinned_thread_has_one_core_left() {
        let left = std::thread::spawn(|| {
            let placement = Placement::one_core()?;
            placement.pin(Role::Router)?;
            Ok::<_, PlacementError>((placement.core(Role::Router), cores(1)?, cores(2)))
        });
        let (core, left, too_few) = left.join().unwrap().unwrap();
        assert_eq!(left, [core]);
        assert_eq!(too_few, Err(PlacementError::TooFew { need: 2, have: 1 }));
    }
}
