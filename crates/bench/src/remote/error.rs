//! Why other hosts cannot be used.

use std::io;
use std::path::PathBuf;

use crate::testbed::TestbedError;

/// Why other hosts cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error("node {node}: this program does not run there (agent = false)")]
    NoAgent { node: String },
    #[error(
        "{node}: routes need a receiver at a wire of the dut, in a network with a third address that a second next hop can have"
    )]
    NoRoutedPort { node: String },
    /// An inventory that cannot be used.
    #[error("{}: {problem}", path.display())]
    Inventory { path: PathBuf, problem: String },
    /// A local program.
    #[error("{program}: {error}; install openssh-client and util-linux")]
    Start { program: &'static str, error: io::Error },
    #[error(
        "{node}: the host key of {host} is not known. Connect once with `{command}`, compare the fingerprint that it shows \
         with that of the host, and accept it"
    )]
    UnknownHostKey { node: String, host: String, command: String },
    #[error(
        "{node}: the host key of {host} is not the known one: {said}. If the host was installed anew, compare its \
         fingerprint, remove the old key with ssh-keygen -R, and connect once with `{command}`; otherwise another machine \
         answers in its place"
    )]
    ChangedHostKey { node: String, host: String, command: String, said: String },
    #[error("{node}: {host} does not let this user in: {said}. `{command}` has to work without a password")]
    Refused { node: String, host: String, command: String, said: String },
    #[error("{node}: cannot connect to {host}: {said}; try `{command}`")]
    Connect { node: String, host: String, command: String, said: String },
    /// A remote shell that did not do what it had to.
    #[error("{node}: {what}: {said}")]
    Shell { node: String, what: &'static str, said: String },
    #[error("{node}: the copy of this program there has another checksum; is there room in /tmp?")]
    Checksum { node: String },
    #[error("{node}: {program} there is another build ({there}) than this one ({here})")]
    OtherBuild { node: String, program: String, there: String, here: String },
    /// What the program on a node reports.
    #[error("{node}: {message}")]
    Failed { node: String, message: String },
    #[error("{node}: the program there does not answer within {seconds} s")]
    Silent { node: String, seconds: u64 },
    #[error("{node}: the connection was lost{said}")]
    Lost { node: String, said: String },
    #[error("{node}: an answer that does not fit: {found}")]
    Answer { node: String, found: String },
    #[error("{node} has no interface {interface}; it has {found}")]
    NoInterface { node: String, interface: String, found: String },
    #[error("{node}: interface {interface} has the address {found}, and the inventory says {said}")]
    OtherMac { node: String, interface: String, found: String, said: String },
    #[error(
        "{node}: {setting} was changed since the measurement began, from {before:?} to {now:?}; set it back, or set it in the node's start lines and begin anew"
    )]
    Changed { node: String, setting: String, before: String, now: String },
    #[error("{node}: the command {when} the search, `{command}`, {failure}")]
    Command { node: String, command: String, when: &'static str, failure: String },
    /// What sends or receives instead of this program.
    #[error("{node}: `{command}` {failure}")]
    TrafficCommand { node: String, command: String, failure: String },
    #[error(
        "{node}: `{command}` sent {rate:.0} packets/s where {load:.0} were asked for; it has to keep to {{pps}}, which each thread of \
         pkt-gen (-p) does for itself"
    )]
    Ahead { node: String, command: String, rate: f64, load: f64 },
    #[error("{}: {error}", path.display())]
    HookOutput { path: PathBuf, error: io::Error },
    #[error("{node}: the command that installs the image of {device} {failure}")]
    NotInstalled { node: String, device: String, failure: String },
    #[error("{node}: the image of {device} does not run {seconds} s after it was installed: {failure}")]
    NotRunning { node: String, device: String, seconds: u64, failure: String },
    #[error("{port} and the receiver have addresses of two families")]
    Families { port: String },
    #[error(
        "the programs of {nodes} began {apart:.0} ms apart: pkt-gen begins with a second of its host's clock, so the clocks have to be \
         synchronised"
    )]
    Apart { nodes: String, apart: f64 },
    #[error(
        "{node}: what sends there did not say when it began (sender_body … start), which has to be known of several senders"
    )]
    NoBeginning { node: String },
    #[error("there is no node {node} here")]
    NoNode { node: String },
    #[error("{0}")]
    Testbed(#[from] TestbedError),
}
