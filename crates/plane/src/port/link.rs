//! The network interface of a port: its name for messages, and the meaning of system errors for it.

use std::io;

use super::PortError;
use super::sys::{
    driver, interface_index, interface_name, merges_frames, receive_queues, runs_gro, strips_tags, tun,
};
use crate::wire::ethernet::Mac;

/// An interface of the system.
#[derive(Clone, Debug)]
pub struct Link {
    name: String,
    index: u32,
}

impl Link {
    /// The interface of that name, in this thread's network namespace.
    ///
    /// # Errors
    /// There is none, or it is an alternative name (`altname`): the kernel reports interfaces, and applies rules to them, by
    /// their own names.
    pub fn named(name: &str) -> Result<Link, PortError> {
        let failed = |source| interface(name, "be found", source);
        let index = interface_index(name).map_err(failed)?;
        let own = interface_name(index).map_err(failed)?;
        match own == name {
            true => Ok(Link { name: own, index }),
            false => Err(PortError::AlternativeName { name: name.to_owned(), own }),
        }
    }

    /// Its index in the kernel.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its Ethernet address.
    pub fn mac(&self) -> Result<Mac, PortError> {
        let mac = tun::mac(&self.name).map_err(self.cannot("be asked for its address"))?;
        mac.map(Mac).ok_or_else(|| PortError::NotEthernet { interface: self.name.clone() })
    }

    /// Whether it is up and has a carrier.
    pub fn is_running(&self) -> Result<bool, PortError> {
        let asked = self.cannot("be asked for its state");
        match interface_index(&self.name) {
            Ok(index) if index == self.index => tun::is_running(&self.name).map_err(asked),
            Err(error) if !matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ENXIO)) => {
                Err(asked(error))
            }
            _ => Err(self.removed()),
        }
    }

    /// Whether the card strips VLAN tags from received frames.
    pub fn strips_tags(&self) -> Result<bool, PortError> {
        strips_tags(&self.name).map_err(self.cannot("be asked for its offloads"))
    }

    /// Whether the card merges received frames into longer ones (LRO).
    pub fn merges_frames(&self) -> Result<bool, PortError> {
        merges_frames(&self.name).map_err(self.cannot("be asked for its offloads"))
    }

    /// Whether the kernel merges frames received by it (GRO).
    pub fn runs_gro(&self) -> Result<bool, PortError> {
        runs_gro(&self.name).map_err(self.cannot("be asked for its offloads"))
    }

    /// The name of its driver; empty if the driver does not report it.
    pub fn driver(&self) -> Result<String, PortError> {
        driver(&self.name).map_err(self.cannot("be asked for its driver"))
    }

    /// The number of receive queues; 1 if the driver does not report it.
    pub fn receive_queues(&self) -> Result<u32, PortError> {
        receive_queues(&self.name).map_err(self.cannot("be asked for its queues"))
    }

    /// Makes the error of an operation that failed while the port was set up.
    pub fn cannot(&self, action: &'static str) -> impl Fn(io::Error) -> PortError {
        move |source| interface(&self.name, action, source)
    }

    /// Makes the error of an interface that could not be created.
    pub(super) fn not_created(name: &str) -> impl Fn(io::Error) -> PortError {
        move |source| interface(name, "be created", source)
    }

    /// The meaning of a system error at an open port.
    pub fn failed(&self, source: io::Error) -> PortError {
        match source.raw_os_error() {
            // The port is finished, even if the interface exists again, perhaps returned from another namespace.
            Some(libc::ENXIO | libc::ENODEV | libc::EBADFD) => self.removed(),
            Some(libc::ENETDOWN) if self.is_gone() => self.removed(),
            Some(libc::ENETDOWN | libc::EIO) => PortError::Down { interface: self.name.clone() },
            _ => interface(&self.name, "be used any longer", source),
        }
    }

    fn removed(&self) -> PortError {
        PortError::Removed { interface: self.name.clone() }
    }

    /// Whether no interface has this name and index any more.
    fn is_gone(&self) -> bool {
        interface_index(&self.name).ok() != Some(self.index)
    }
}

fn interface(name: &str, action: &'static str, source: io::Error) -> PortError {
    let hint = hint(&source);
    PortError::Interface { interface: name.to_owned(), action, source, hint }
}

/// How to fix the error.
fn hint(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "run as root, or with the capabilities CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"
        }
        Some(libc::ENODEV | libc::ENXIO) => "`ip link` lists the interfaces there are",
        Some(libc::ENETDOWN) => "`ip link set dev NAME up` brings it up",
        Some(libc::ENOMEM | libc::ENOBUFS) => "there is too little memory for its rings; make them smaller",
        Some(libc::EBUSY) => "another program or socket is using this interface or queue; stop that first",
        Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT | libc::EAFNOSUPPORT) => {
            "this kernel or driver cannot; use another kind of port"
        }
        _ => "see what `dmesg` says",
    }
}
