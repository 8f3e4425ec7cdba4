//! Splits the frames of an interface between the kernel and the router.
//!
//! With the feature `bpf`, programs in the kernel classify frames: those that the router forwards do not reach the kernel's
//! own stack, and the router reinjects those that it cannot forward. The programs end with this process, and then the
//! kernel forwards everything. Without the feature the kernel sees every frame too, so it must not forward by the router's
//! interfaces at all.

use std::fs;

use crate::error::BadInput;
use crate::log;

#[cfg(feature = "bpf")]
mod classified;
#[cfg(not(feature = "bpf"))]
mod copied;
#[cfg(feature = "bpf")]
mod large_frames;
#[cfg(feature = "bpf")]
mod punt_gate;
#[cfg(feature = "bpf")]
mod shared_flows;

#[cfg(feature = "bpf")]
pub use classified::{KernelSplit, Reinjector};
#[cfg(not(feature = "bpf"))]
pub use copied::{KernelSplit, Reinjector};

/// Whether the kernel must forward by the router's interfaces too: it forwards what the router reinjects, and everything
/// once the router has ended.
pub const KERNEL_FORWARDS: bool = cfg!(feature = "bpf");

/// Refuses a kernel in which one program may interrupt another one on the same processor, whose memory they would share.
pub fn check_kernel() -> Result<(), BadInput> {
    check_version(&fs::read_to_string("/proc/sys/kernel/version").unwrap_or_default())
}

fn check_version(version: &str) -> Result<(), BadInput> {
    let interrupts = version.split_whitespace().any(|word| word == "PREEMPT_RT");
    match interrupts && cfg!(feature = "bpf") {
        true => Err(BadInput(
            "this kernel has PREEMPT_RT, with which programs in the kernel interrupt each other: start one without it".into(),
        )),
        false => Ok(()),
    }
}

/// Checks the kernel's forwarding settings of an interface.
pub fn check(interface: &str) -> Result<(), BadInput> {
    for family in ["ipv4", "ipv6"] {
        // If IPv6 forwarding is off for `all`, it is off for each link, whatever the link's own setting is.
        let all_off = family == "ipv6" && forwards(family, "all") == Some(false);
        let scope = if all_off { "all" } else { interface };
        let setting = format!("net.{family}.conf.{scope}.forwarding");
        match forwards(family, scope) {
            Some(false) if KERNEL_FORWARDS => {
                log::warning(&format!(
                    "interface {interface}: the kernel does not forward {family} by it, so neither does the router; `sysctl -w {setting}=1` allows both"
                ));
            }
            Some(true) if !KERNEL_FORWARDS => return Err(both_forward(interface, family, &setting)),
            _ => {}
        }
    }
    Ok(())
}

/// The kernel's setting. `None` if the interface does not exist yet, or the kernel does not have the family.
fn forwards(family: &str, interface: &str) -> Option<bool> {
    let value = fs::read_to_string(format!("/proc/sys/net/{family}/conf/{interface}/forwarding")).ok()?;
    Some(value.trim() != "0")
}

fn both_forward(interface: &str, family: &str, setting: &str) -> BadInput {
    BadInput(format!(
        "interface {interface}: the kernel forwards {family} by it as well, and every packet would go out twice; build with \
         `--features bpf` to share the interface with it, or leave it to fullview alone: `sysctl -w {setting}=0`"
    ))
}

#[cfg(all(test, feature = "bpf"))]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_preempt_rt_are_refused() {
        assert!(check_version("#1 SMP PREEMPT_RT Debian 6.12.57-1 (2025-11-05)\n").is_err());
        assert!(check_version("#1 SMP PREEMPT_DYNAMIC Debian 6.12.57-1 (2025-11-05)\n").is_ok());
        assert!(check_version("").is_ok());
    }
}
