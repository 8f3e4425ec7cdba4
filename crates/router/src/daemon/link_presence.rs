//! Whether an interface still exists, asked from the kernel directly.

use fullview_plane::port::PortError;
use fullview_plane::port::link::Link;

use crate::route::LinkIndex;

/// Whether the interface of that name no longer has that number. Netlink reports the change only afterwards.
pub fn is_gone(name: &str, index: LinkIndex) -> bool {
    Link::named(name).ok().is_none_or(|link| link.index() != index)
}

/// Refuses the interface if it no longer has that number.
pub fn check_presence(name: &str, index: LinkIndex) -> Result<(), PortError> {
    if is_gone(name, index) { Err(PortError::Removed { interface: name.to_owned() }) } else { Ok(()) }
}
