//! What one measurement uses at a time: an interface, or the machine's forwarding of IPv6.

use std::io::{self, ErrorKind};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error("{interface}: another measurement uses this interface; wait until it has ended")]
    Taken { interface: String },
    #[error(
        "another measurement sets whether this machine forwards IPv6, which has one switch; wait until it has ended"
    )]
    ForwardingTaken,
    #[error("{interface}: {error}")]
    Socket { interface: String, error: io::Error },
}

/// An interface of this machine for this process alone, until the value is dropped or the process ends.
#[derive(Debug)]
pub struct InterfaceClaim {
    /// A name without a file, of which each network namespace has its own.
    _listener: UnixListener,
}

/// No interface has a name with a slash.
const FORWARDING: &str = "ipv6/forwarding";

impl InterfaceClaim {
    /// The switch by which a machine forwards IPv6.
    pub fn forwarding_inet6() -> Result<InterfaceClaim, ClaimError> {
        InterfaceClaim::new(FORWARDING).map_err(|error| match error {
            ClaimError::Taken { .. } => ClaimError::ForwardingTaken,
            other => other,
        })
    }

    pub fn new(interface: &str) -> Result<InterfaceClaim, ClaimError> {
        let bound = SocketAddr::from_abstract_name(format!("fullview-testbed-{interface}"))
            .and_then(|name| UnixListener::bind_addr(&name));
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => ClaimError::Taken { interface: interface.into() },
            _ => ClaimError::Socket { interface: interface.into(), error },
        };
        Ok(InterfaceClaim { _listener: bound.map_err(failed)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_user() {
        let name = format!("test{}", std::process::id());
        let first = InterfaceClaim::new(&name).unwrap();
        let second = InterfaceClaim::new(&name).unwrap_err();
        assert!(second.to_string().contains("another measurement"), "{second}");
        drop(first);
        InterfaceClaim::new(&name).unwrap();
    }

    #[test]
    fn the_switch_of_ipv6_has_one_user() {
        let _first = InterfaceClaim::forwarding_inet6().unwrap();
        let second = InterfaceClaim::forwarding_inet6().unwrap_err();
        assert!(second.to_string().contains("forwards IPv6"), "{second}");
    }
}
