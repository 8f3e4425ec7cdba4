//! Who takes which frames: the kernel or we.
//!
//! With the feature `bpf` programs in the kernel tell frames apart, keep from the kernel what we forward, and give it
//! back what we cannot; they end with this process, and the kernel forwards on. Without, the kernel sees every frame as
//! well, so it must not forward by our interfaces at all.

use std::fs;

use anyhow::ensure;

use crate::error::BadInput;
use crate::log;

#[cfg(feature = "bpf")]
mod classified;
#[cfg(not(feature = "bpf"))]
mod copied;

#[cfg(feature = "bpf")]
pub use classified::{Giver, Share};
#[cfg(not(feature = "bpf"))]
pub use copied::{Giver, Share};

/// Whether the kernel is to forward too: what we give back is forwarded by it, and so is all when we are gone.
pub const KERNEL_FORWARDS: bool = cfg!(feature = "bpf");

/// Says what is wrong with the kernel's settings for an interface.
pub fn check(interface: &str) -> anyhow::Result<()> {
    for family in ["ipv4", "ipv6"] {
        // What is off for all links of IPv6 is off, whatever those of the links say.
        let all_off = family == "ipv6" && forwards(family, "all") == Some(false);
        let of = if all_off { "all" } else { interface };
        let setting = format!("net.{family}.conf.{of}.forwarding");
        match forwards(family, of) {
            Some(false) if KERNEL_FORWARDS => {
                log::line(&format!(
                    "interface {interface}: the kernel does not forward {family} by it, so neither do we; `sysctl -w {setting}=1` lets both"
                ));
            }
            Some(true) => ensure!(KERNEL_FORWARDS, BadInput(both_would(interface, family, &setting))),
            _ => {}
        }
    }
    Ok(())
}

/// An interface that is not there yet, or a family that the kernel does not have, has no such setting.
fn forwards(family: &str, interface: &str) -> Option<bool> {
    let value = fs::read_to_string(format!("/proc/sys/net/{family}/conf/{interface}/forwarding")).ok()?;
    Some(value.trim() != "0")
}

fn both_would(interface: &str, family: &str, setting: &str) -> String {
    format!(
        "interface {interface}: the kernel forwards {family} by it as well, and every packet would go out twice; build with \
         `--features bpf` to share the interface with it, or leave it to fullview alone: `sysctl -w {setting}=0`"
    )
}
