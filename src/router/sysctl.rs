//! What the kernel has to be set to.

use std::fs;

use anyhow::ensure;

use crate::command::BadInput;

/// The kernel sees every frame too. Were it to forward them, each would go out twice.
pub fn check(interface: &str) -> anyhow::Result<()> {
    for family in ["ipv4", "ipv6"] {
        let path = format!("/proc/sys/net/{family}/conf/{interface}/forwarding");
        // An interface that is not there yet, or a family that the kernel does not have, forwards nothing.
        let forwards = fs::read_to_string(&path).is_ok_and(|value| value.trim() != "0");
        ensure!(
            !forwards,
            BadInput(format!(
                "interface {interface}: the kernel forwards {family} by it as well, and every packet would go out twice; \
                 `sysctl -w net.{family}.conf.{interface}.forwarding=0` leaves it to fullview"
            ))
        );
    }
    Ok(())
}
