//! The highest loads that a device between two hosts carries, all in network namespaces joined by veth pairs:
//!
//! ```text
//!   namespace l: eth0 ────── i :namespace d: out ────── eth0 :namespace r
//!   generator, on a core     the device, on another one      the kernel's counter
//! ```
//!
//! Read the modules in this order: `frame`, `schedule`, `trial`, `bed`, `parts`, `generator`, `receiver`, `largest`, `device_name`, `rule_set`,
//! `kernel_forwarding`, `command_device`, `memory`, `device_tasks`, `route_table`, `route_changes`, `device`, `table_load`, `lab`, `namespaces`,
//! `measurer`, `bursts`, `questions`, `campaign`. Latency: `stamp`, `clock`, `probes`, `probe_trial`, `delays`, `latency`. Devices
//! between other hosts are in `crate::remote`.

mod archive;
mod bed;
mod burst_page;
mod bursts;
mod campaign;
mod clock;
mod command_device;
mod cores;
mod delays;
mod device;
mod device_name;
mod device_tasks;
mod error;
mod frame;
mod generator;
mod kernel_forwarding;
mod lab;
mod largest;
mod latency;
mod latency_graph;
mod latency_level;
mod latency_page;
mod latency_sum;
mod measurer;
mod memory;
mod namespaces;
mod order;
mod page;
mod parts;
mod probe_trial;
mod probes;
mod questions;
mod receiver;
mod result;
mod route_changes;
mod route_page;
mod route_table;
mod rule_set;
mod schedule;
mod stamp;
mod table_load;
mod trial;

pub use archive::TrialArchive;
pub use bed::{hand_over, receive_on};
pub use campaign::{RatesCampaign, SMALLEST};
pub use command_device::DeviceCommand;
pub use cores::{BedCores, keep, keep_real_time};
pub use device_name::DeviceName;
pub use device_tasks::DeviceTasks;
pub use error::RatesError;
pub use frame::{SIZES, TrafficAddresses, lengths};
pub use generator::{TimedLoad, send};
pub use lab::{LabDescription, RateDevice, RateLab};
pub use largest::{ALL, ROOM, TRIALS};
pub use latency_graph::{LatencyGraph, latency_graphs};
pub use namespaces::NamespaceLab;
pub use page::{answers, notes, page, table};
pub use questions::Questions;
pub use receiver::received_packets;
pub use result::{DeviceRates, DeviceSearch, RatesReport};
pub use route_table::RouteTable;
pub use table_load::RoutesPlan;
pub use trial::{Offered, RateTrial};
