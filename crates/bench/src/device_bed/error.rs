//! Why a device cannot be set up or get packets.

use std::io;

use fullview_plane::port::PortError;

use crate::rates::RatesError;
use crate::testbed::TestbedError;
use crate::veth::VethError;

/// Why a device cannot be set up or get packets.
#[derive(Debug, thiserror::Error)]
pub enum DeviceBedError {
    #[error("{0}")]
    Testbed(#[from] TestbedError),
    #[error("{0}")]
    Rates(#[from] RatesError),
    #[error("{0}")]
    Router(#[from] VethError),
    #[error("an interface of the test bed: {0}")]
    Port(#[from] PortError),
    #[error("the receiver's counter: {0}")]
    Counter(#[source] io::Error),
    #[error("/proc/net/dev has no counters of the receiver")]
    NoCounter,
    #[error("the generator's interface takes no packets")]
    Stuck,
    #[error("this program: {0}")]
    NoProgram(#[source] io::Error),
}
