//! Devices under test between a generator and a receiver, each in network namespaces of its own:
//!
//! ```text
//!   namespace gN: g0 ── iP… :namespace dN: out ── r0 :namespace rN
//!   UDP flows, on a core     the device, on another one     the kernel's counter; in a verification every packet
//! ```
//!
//! All devices stay set up and one at a time gets packets: a device without packets sleeps. The control is a bed whose
//! generator and receiver share a cable. Read `bed`, `sender`, `live`, `counter`,
//! `inspector`.

mod bed;
mod counter;
mod error;
mod inspector;
mod live;
mod sender;

pub use bed::DeviceBed;
pub use counter::ReceiveCounter;
pub use error::DeviceBedError;
pub use inspector::{IN_FLIGHT, Inspection, inspect};
pub use live::{LiveArm, LiveGenerator, destinations};
pub use sender::{BedTraffic, Sender};
