//! The cores of this machine, as a campaign uses them. They are looked up once, before any thread is pinned.

use std::time::Duration;

use crate::error::BenchError;
use crate::placement::{Placement, PlacementError, Role};
use crate::probe::{RoundTrip, probe};

use crate::settings::Shape;

/// How long the distance between the cores is measured, before and after a panel on two of them.
const PROBE: Duration = Duration::from_millis(100);

/// A placement for each shape this machine can have.
#[derive(Clone, Copy)]
pub struct Cores {
    one: Placement,
    two: Option<Placement>,
}

impl Cores {
    pub fn observe() -> Result<Self, PlacementError> {
        Ok(Cores { one: Placement::one_core()?, two: Placement::two_cores().ok() })
    }

    /// Whether there are two cores to run on.
    pub fn are_two(self) -> bool {
        self.two.is_some()
    }

    /// Whether a hypervisor decides where these cores run: /proc/cpuinfo has the flag `hypervisor`.
    pub fn are_virtual(self) -> bool {
        let facts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        facts.split_ascii_whitespace().any(|flag| flag == "hypervisor")
    }

    /// The placement of a shape, as it is printed and recorded.
    pub fn of(self, shape: Shape) -> Result<Placement, BenchError> {
        match shape {
            Shape::TwoCores => self.two.ok_or(BenchError::OneCoreOnly),
            Shape::OneCore | Shape::Auto => Ok(self.one),
        }
    }

    /// Pins the calling thread to the core of one-core panels, and returns its number.
    pub fn pin_one(self) -> Result<usize, PlacementError> {
        self.one.pin(Role::Ends)?;
        Ok(self.one.core(Role::Ends))
    }

    /// The core of another router that runs on one, and where there is a second one, that of a router which runs apart
    /// from its generator. The calling thread stays on the former.
    pub fn for_peer(self) -> Result<(usize, Option<usize>), PlacementError> {
        let one = self.pin_one()?;
        let apart = self.two.map(|two| [two.core(Role::Ends), two.core(Role::Router)]);
        Ok((one, apart.and_then(|cores| cores.into_iter().find(|core| *core != one))))
    }

    /// How far the two cores are apart just now.
    pub fn round_trip(self) -> Result<RoundTrip, BenchError> {
        let two = self.of(Shape::TwoCores)?;
        Ok(probe(two.core(Role::Ends), two.core(Role::Router), PROBE)?)
    }
}
