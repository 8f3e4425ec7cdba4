//! The highest loads that a device between two hosts carries, all in network namespaces joined by veth pairs:
//!
//! ```text
//!   namespace l: eth0 ────── i :namespace d: out ────── eth0 :namespace r
//!   generator, on a core     the device, on another one      the kernel's counter
//! ```
//!
//! Read the modules in this order: `frame`, `schedule`, `trial`, `bed`, `parts`, `generator`, `receiver`, `largest`, `device`,
//! `lab`, `namespaces`, `measurer`, `campaign`. Latency: `stamp`, `clock`, `probes`, `probe_trial`, `delays`, `latency`. Devices between other hosts are in `crate::remote`.

mod archive;
mod bed;
mod campaign;
mod clock;
mod cores;
mod delays;
mod device;
mod error;
mod frame;
mod generator;
mod lab;
mod largest;
mod latency;
mod latency_graph;
mod latency_level;
mod latency_page;
mod latency_sum;
mod measurer;
mod namespaces;
mod order;
mod page;
mod parts;
mod probe_trial;
mod probes;
mod receiver;
mod result;
mod schedule;
mod stamp;
mod trial;

pub use archive::TrialArchive;
pub use bed::{hand_over, receive_on};
pub use campaign::{RatesCampaign, SMALLEST};
pub use cores::{BedCores, keep, keep_real_time};
pub use device::DeviceName;
pub use error::RatesError;
pub use frame::{SIZES, TrafficAddresses, lengths};
pub use generator::{TimedLoad, send};
pub use lab::{LabDescription, RateDevice, RateLab};
pub use largest::{ALL, ROOM, TRIALS};
pub use latency_graph::{LatencyGraph, latency_graphs};
pub use namespaces::NamespaceLab;
pub use page::{notes, page, table};
pub use receiver::received_packets;
pub use result::{DeviceRates, DeviceSearch, RatesReport};
pub use trial::{Offered, RateTrial};
