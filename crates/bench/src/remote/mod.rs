//! Devices between other hosts, which are reached by ssh.
//!
//! The program that measures connects to each host of an inventory, copies itself there, and starts the copy as an agent,
//! which sends, counts, and sets the device under test up. An agent, and every line that was run in a host's shell, ends when
//! its input ends, and puts back what it changed: so does a host whose connection is lost.
//!
//! Read the modules in this order: `declared`, `inventory`, `traffic_line`, `wiring`, `traffic_check`, `address_check`, `file`; on the hosts `protocol`, `requests`,
//! `machine`, `tuning`, `claim`, `journal`, `undo`, `machine_settings`, `agent_device`, `counter`, `marks`, `dut_routes`, `own_routes`, `dut_links`, `dut_profile`, `traces`,
//! `agent`; here `ssh`, `session`, `shell`, `timed_command`, `connection`, `pkt_gen`, `command_run`, `command_sender`, `command_receiver`, `laid_files`, `bed`, `leftovers`, `hooks`, `image_install`, `check`, `remote_device`, `remote_routes`,
//! `remote_trials`, `remote_failures`, `lab`; `layout`, `drawing`.

mod address_check;
mod agent;
mod agent_device;
mod bed;
mod check;
mod claim;
mod command_receiver;
mod command_run;
mod command_sender;
mod connection;
mod counter;
mod declared;
mod drawing;
mod dut_links;
mod dut_profile;
mod dut_routes;
mod error;
mod file;
mod hooks;
mod image_install;
mod inventory;
mod journal;
mod lab;
mod laid_files;
mod layout;
mod leftovers;
mod machine;
mod machine_settings;
mod marks;
mod offers;
mod own_routes;
mod page;
mod pkt_gen;
mod probing;
mod protocol;
mod remote_device;
mod remote_failures;
mod remote_routes;
mod remote_trials;
mod requests;
mod session;
mod shell;
mod ssh;
mod timed_command;
mod traces;
mod traffic_check;
mod traffic_line;
mod tuning;
mod undo;
mod wiring;

pub use agent::serve_agent;
pub use bed::RemoteBed;
pub use check::{BedCheck, NodeCheck, WireCheck, WireState};
pub use drawing::{draw_svg, draw_text};
pub use error::RemoteError;
pub use file::read_inventory;
pub use hooks::HOOKS;
pub use inventory::{DeviceKind, DeviceSettings, Inventory, NodeRole, NodeSettings};
pub use lab::{LabOptions, RemoteLab};
pub use laid_files::{laid_files, sha256};
pub use leftovers::put_back_on_nodes;
pub use undo::put_back_settings;
pub use wiring::Wiring;
