//! The router as a library. It learns interfaces, routes and neighbours from the kernel or from a configuration, compiles
//! them into the tables and views with which workers forward, and answers operators' queries.
//!
//! Modules import downwards only. Reading order, from the bottom:
//!
//! 1. [`error`], [`log`], [`progress`], [`text_file`], [`events`], [`notify`] (the service manager): what every module may
//!    use.
//! 2. [`route`] (what a route is), [`netlink`] (the kernel's messages), [`mirror`] (tables, next hops and views that follow from them), [`follow`] (the
//!    kernel to the mirror), [`host`] (ARP, neighbour discovery and ICMP of a router without a kernel).
//!    [`fence`] (rules by which the kernel forwards nothing past a filter), [`bypass`]: rules of the host that forwarded packets
//!    would not meet.
//! 3. [`feed`], [`preferences`], [`algorithm`], [`filter`]: tables from files, the choice of a lookup algorithm, and rules.
//! 4. [`options`]: what a router is configured to do, as plain data.
//! 5. [`service`] (threads, limits and deadlines for clients), [`control`] (the protocol of the control socket),
//!    [`takeover`] (the running router whose place this process takes), [`telemetry`] (metrics), [`privileges`].
//! 6. [`config`]: the configuration file, which becomes options.
//! 7. [`daemon`]: the loop that joins a control source with a data path.
//! 8. [`operations`]: queries to a running router, reload, captures of dropped packets.
//! 9. [`launch`]: a router from its configuration to its end.

pub mod algorithm;
pub mod bypass;
pub mod config;
pub mod control;
pub mod daemon;
pub mod error;
pub mod events;
pub mod feed;
pub mod fence;
pub mod filter;
pub mod follow;
pub mod host;
pub mod launch;
pub mod log;
pub mod mirror;
pub mod netlink;
pub mod notify;
pub mod operations;
pub mod options;
pub mod preferences;
pub mod privileges;
pub mod progress;
pub mod route;
pub mod service;
pub mod takeover;
pub mod telemetry;
pub mod text_file;
