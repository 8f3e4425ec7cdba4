//! The highest loads that a device between two hosts carries, all in network namespaces joined by veth pairs:
//!
//! ```text
//!   namespace l: eth0 ────── i :namespace d: out ────── eth0 :namespace r
//!   generator, on a core     the device, on another one      the kernel's counter
//! ```
//!
//! Read the modules in this order: `wide_prefix`, `bed_addresses`, `frame`, `schedule`, `trial`, `cable`, `spare_link`, `bed`, `parts`, `generator`,
//! `receiver`, `largest`, `device_name`, `rule_set`, `kernel_forwarding`, `command_device`, `memory`, `device_tasks`,
//! `route_table`, `route_changes`, `device`, `table_load`, `lab`, `namespaces`, `measurer`, `bursts`, `questions`,
//! `turns`, `campaign`. Latency: `stamp`, `clock`, `probes`, `probe_trial`, `delays`, `latency`. Failures: `failure`,
//! `traced_trial`, `outage`, `convergence`, `failing_device`. Devices between other hosts are in `crate::remote`.

mod archive;
mod bed;
mod bed_addresses;
mod block_contrast;
mod blocks;
mod burst_page;
mod bursts;
mod cable;
mod campaign;
mod clock;
mod command_device;
mod convergence;
mod convergence_graph;
mod convergence_page;
mod cores;
mod delays;
mod device;
mod device_name;
mod device_tasks;
mod error;
mod failing_device;
mod failure;
mod frame;
mod generator;
mod graph;
mod graphs;
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
mod outage;
mod page;
mod parts;
mod path_latency;
mod probe_trial;
mod probes;
mod questions;
mod real_time;
mod receiver;
mod result;
mod route_changes;
mod route_page;
mod route_table;
mod route_trace;
mod rule_set;
mod schedule;
mod search_progress;
mod spare_link;
mod stamp;
mod table_load;
mod traced_trial;
mod trial;
mod turns;
mod wide_prefix;

pub use archive::TrialArchive;
pub use bed::{hand_over, receive_on};
pub use campaign::{CampaignFiles, RatesCampaign, SMALLEST, persist};
pub use command_device::DeviceCommand;
pub use convergence::{Convergence, ConvergencePlan, FailingDevice, converge};
pub use cores::{BedCores, LAST_CORE, keep, keep_real_time};
pub use delays::Delays;
pub use device_name::DeviceName;
pub use error::RatesError;
pub use failure::{Failure, FailureLinks};
pub use frame::{HostAddresses, TrafficAddresses, lengths, sizes};
pub use generator::{PacketMark, TimedLoad, Unmarked, send_marked};
pub use graph::RatesGraph;
pub use graphs::{graphs, result_files};
pub use lab::{LabDescription, RateDevice, RateLab};
pub use largest::{ALL, ROOM, TRIALS};
pub use memory::{ProgramMemory, memory_of, processes_of};
pub use namespaces::NamespaceLab;
pub use page::{answers, notes, page, table};
pub use parts::with_pauses;
pub use probe_trial::{ProbeTrial, open_capture, read_delays};
pub use probes::ProbeMarker;
pub use questions::Questions;
pub use real_time::{NO_REAL_TIME, may_run_in_real_time, priority_note, with_priority};
pub use receiver::received_packets;
pub use result::{DeviceRates, DeviceSearch, RatesReport};
pub use route_changes::{MadeChanges, RouteChanges};
pub use route_table::{RouteTable, RouteTableError, TableSource};
pub use route_trace::RouteTrace;
pub use table_load::{ChangeRate, RoutedDevice, RoutesPlan, SETTLE, TableLoad, await_route};
pub use traced_trial::{PacketTimes, SETTLE as TRACE_SETTLE, TracedTrial, read_stamps};
pub use trial::{Offered, RateTrial};
pub use turns::TurnLog;
pub use wide_prefix::{WidePrefix, family_of, network, wide};
