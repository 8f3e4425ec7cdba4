//! Settings of a machine that are put back.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::inventory::InterfaceNet;
use super::machine::{MachineError, ip, ip_json};
use super::protocol::DeviceNeighbor;

/// What puts one setting back.
#[derive(Debug)]
enum Undo {
    Write(PathBuf, String),
    Ip(String),
}

/// Settings that were changed. Dropping it puts them back, the last one first.
#[derive(Debug, Default)]
pub struct Changes(Vec<Undo>);

impl Changes {
    /// Writes a file below `/proc/sys` or `/sys`, if it has another value.
    pub fn write(&mut self, path: &Path, value: &str) -> Result<(), MachineError> {
        let failed = |error| MachineError::File { path: path.into(), error };
        let before = fs::read_to_string(path).map_err(failed)?.trim_end().to_owned();
        if before != value {
            fs::write(path, value).map_err(failed)?;
            self.0.push(Undo::Write(path.into(), before));
        }
        Ok(())
    }

    /// Sets a parameter of an interface below `/proc/sys/net/ipv4/conf`.
    pub fn interface(&mut self, interface: &str, name: &str, value: &str) -> Result<(), MachineError> {
        self.write(&Path::new("/proc/sys/net/ipv4/conf").join(interface).join(name), value)
    }

    /// Sets an interface up.
    pub fn up(&mut self, interface: &str) -> Result<(), MachineError> {
        let shown = ip_json(&format!("link show dev {interface}"))?;
        let flags = shown[0]["flags"].as_array().cloned().unwrap_or_default();
        if !flags.iter().any(|flag| flag == "UP") {
            ip(&format!("link set dev {interface} up"))?;
            self.0.push(Undo::Ip(format!("link set dev {interface} down")));
        }
        Ok(())
    }

    /// Adds an address.
    pub fn address(&mut self, interface: &str, net: InterfaceNet) -> Result<(), MachineError> {
        let shown = ip_json(&format!("-4 address show dev {interface}"))?;
        let has = |entry: &Value| entry["local"] == net.address.to_string();
        let addresses = shown[0]["addr_info"].as_array().cloned().unwrap_or_default();
        if !addresses.iter().any(has) {
            ip(&format!("address add {net} dev {interface}"))?;
            self.0.push(Undo::Ip(format!("address del {net} dev {interface}")));
        }
        Ok(())
    }

    /// Adds a permanent entry of a neighbour, and puts a permanent one back that was there.
    pub fn neighbor(&mut self, interface: &str, neighbor: &DeviceNeighbor) -> Result<(), MachineError> {
        let DeviceNeighbor { address, mac } = neighbor;
        let shown = ip_json(&format!("neighbor show to {address} dev {interface} nud permanent"))?;
        let before = shown[0]["lladdr"].as_str();
        if before == Some(mac) {
            return Ok(());
        }
        let of = |mac: &str| format!("neighbor replace {address} lladdr {mac} dev {interface} nud permanent");
        ip(&of(mac))?;
        self.0.push(Undo::Ip(match before {
            Some(before) => of(before),
            None => format!("neighbor del {address} dev {interface}"),
        }));
        Ok(())
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        for undo in self.0.drain(..).rev() {
            // An interface may be gone; what follows is put back all the same.
            let _ = match undo {
                Undo::Write(path, value) => fs::write(path, value).map_err(|_| ()),
                Undo::Ip(line) => ip(&line).map(drop).map_err(|_| ()),
            };
        }
    }
}
