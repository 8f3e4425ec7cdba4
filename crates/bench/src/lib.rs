//! What the lab measures on this machine: subjects, the traffic they get, and the test beds they run in.

pub mod calibration;
pub mod core_clock;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod device_bed;
pub mod error;
pub mod placement;
pub mod probe;
pub mod progress;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod rates;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod remote;
pub mod served;
pub mod settings;
pub mod subject;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod testbed;
pub mod traffic;
#[cfg(all(feature = "bpf", target_os = "linux"))]
pub mod veth;
pub mod workload;
