//! Parts that do not fit together.

use crate::adjacency::NO_INTERFACE;
use crate::policy::RuleError;

/// Why parts do not make a view.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// A VLAN number outside of 1 to 4094.
    #[error("interface {name}: VLAN {vlan} does not exist; choose 1 to 4094")]
    Vlan {
        /// The interface.
        name: String,
        /// Its VLAN.
        vlan: u16,
    },
    /// A link that no packet fits on.
    #[error("interface {name}: an MTU of 0 bytes is not possible")]
    Mtu {
        /// The interface.
        name: String,
    },
    /// Two interfaces with the same port and VLAN.
    #[error("interfaces {first} and {second} take the same frames of port {port}; give them different VLANs")]
    Twice {
        /// The name of one.
        first: String,
        /// The name of the other.
        second: String,
        /// Their port.
        port: u16,
    },
    /// No table at all.
    #[error("there is no table to look up in; give at least one, even an empty one")]
    NoTable,
    /// An interface that names a table that is missing.
    #[error(
        "interface {name} looks up in table {table}, but there are only {tables} tables, numbered from 0"
    )]
    Table {
        /// The interface.
        name: String,
        /// Its table.
        table: u16,
        /// The number of tables.
        tables: usize,
    },
    /// An interface with impossible rules.
    #[error("interface {name}: {error}")]
    Rules {
        /// The interface.
        name: String,
        /// Why they are impossible.
        error: RuleError,
    },
    /// A next hop that names an interface that is missing.
    #[error(
        "next hop {hop} leaves by interface {interface}, but there are only {interfaces}, numbered from 0"
    )]
    NoSuchInterface {
        /// The next hop.
        hop: u16,
        /// Its interface.
        interface: u16,
        /// The number of interfaces.
        interfaces: usize,
    },
    /// More interfaces than 16-bit numbers, the last of which means none.
    #[error("{0} interfaces are too many: a view holds at most {NO_INTERFACE}")]
    TooManyInterfaces(usize),
}
