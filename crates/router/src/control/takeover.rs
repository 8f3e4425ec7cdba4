//! What passes between a running router and a process that takes its place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The number of this exchange. A router hands over only to a process with the same number: a new one is needed whenever the
/// meaning of a request, an answer or a descriptor changes, or the format of what a filter remembers
/// ([`fullview_filter::handover::FORMAT`]), which follows the answer to the last request.
pub const PROTOCOL: u32 = 4;

/// Asks to take over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TakeoverQuery {
    /// The number of the exchange that the process speaks.
    pub protocol: u32,
    /// The process that takes over, for the log.
    pub process: u32,
}

/// The router that hands over. The descriptors of its sockets come with this answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunningRouter {
    pub process: u32,
    /// The name of its network namespace, as `/proc/PID/ns/net` has it.
    pub namespace: String,
    /// Whether it mirrors the kernel.
    pub kernel: bool,
    /// Whether it has a filter, whose states and tables it sends when it has ended.
    pub filters: bool,
    pub interfaces: Vec<RunningInterface>,
    /// The addresses of the sockets that clients connect to, in the order of their descriptors.
    pub sockets: Vec<String>,
    /// The microseconds after which the service manager restarts the service, unless it was told that it works. The manager does
    /// not say that to a process that it did not start as the main one.
    #[serde(default)]
    pub watchdog_us: Option<u64>,
}

/// An interface of the router that hands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunningInterface {
    pub name: String,
    /// What forwards its packets, by the words of `--engine`; `none` if the interface does not exist.
    pub engine: String,
}

/// Asks for an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HandOverQuery {
    pub interface: String,
}

/// Which descriptors of an interface come with this answer, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HandedOver {
    /// The socket that locks the interface.
    pub lock: bool,
    /// The link of the program in the kernel.
    pub link: bool,
    /// The index of the interface that the link belongs to.
    pub index: u32,
}

/// What a program in the kernel counted for an interface, or for frames that came in by none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramCounts {
    pub interface: Option<String>,
    /// Packets and bytes.
    pub received: [u64; 2],
    pub sent: [u64; 2],
    /// Packets that it did not forward, by reason.
    pub refused: BTreeMap<String, u64>,
}
