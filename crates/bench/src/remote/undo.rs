//! Settings of a machine that are put back.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fullview_router::bypass;
use fullview_router::fence::{self, Fence};
use fullview_table::Family;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::inventory::InterfaceNet;
use super::journal::{Journal, of_ended};
use super::machine::{MachineError, ethtool, ip, ip_json};
use super::protocol::DeviceNeighbor;

/// The kernel keeps others from the fence of a router until it has ended, which takes a killed one a moment.
const END: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// What puts one setting back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Undo {
    Write(PathBuf, String),
    Ip(String),
    Ethtool(Vec<String>),
    /// Removes the fence of a filter between these interfaces, if its router did not.
    Fence(Vec<String>),
}

/// Settings that were changed. Dropping it puts them back, the last one first; if this process is killed, the next agent or
/// `fullview testbed clean` does so.
#[derive(Debug, Default)]
pub struct Changes {
    undos: Vec<Undo>,
    journal: Option<Journal>,
}

/// Puts back what killed agents have changed here, and returns how; a dry run only says it.
pub fn put_back_settings(dry_run: bool) -> std::io::Result<Vec<String>> {
    let mut found = Vec::new();
    of_ended(dry_run, |undo: Undo| {
        if undo.is_needed() {
            found.push(undo.to_string());
        }
        if !dry_run {
            undo.apply();
        }
    })?;
    Ok(found)
}

/// Whether there is a fence between some of these interfaces, and between no others.
fn has_fence(interfaces: &[String]) -> bool {
    let fenced = bypass::fenced_ports().unwrap_or_default();
    !fenced.is_empty() && fenced.iter().all(|port| interfaces.contains(port))
}

fn remove_fence(interfaces: &[String]) {
    let asked = Instant::now();
    while has_fence(interfaces) && Fence::remove_left().is_err() && asked.elapsed() < END {
        thread::sleep(POLL);
    }
}

impl Undo {
    /// A router that ends in order removes its fence itself.
    fn is_needed(&self) -> bool {
        match self {
            Undo::Fence(interfaces) => has_fence(interfaces),
            Undo::Write(..) | Undo::Ip(_) | Undo::Ethtool(_) => true,
        }
    }

    /// An interface may be gone; what follows is put back all the same.
    fn apply(&self) {
        let _ = match self {
            Undo::Write(path, value) => fs::write(path, value).map_err(|_| ()),
            Undo::Ip(line) => ip(line).map(drop).map_err(|_| ()),
            Undo::Ethtool(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                ethtool(&words).map(drop).map_err(|_| ())
            }
            Undo::Fence(interfaces) => {
                remove_fence(interfaces);
                Ok(())
            }
        };
    }
}

impl fmt::Display for Undo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undo::Write(path, value) => write!(out, "{} = {value}", path.display()),
            Undo::Ip(line) => write!(out, "ip {line}"),
            Undo::Ethtool(words) => write!(out, "ethtool {}", words.join(" ")),
            Undo::Fence(_) => write!(out, "nft delete table inet {}", fence::TABLE),
        }
    }
}

impl Changes {
    /// Keeps how a change is undone, before it is made.
    fn keep(&mut self, undo: Undo) -> Result<(), MachineError> {
        let failed = MachineError::Journal;
        if self.journal.is_none() {
            self.journal = Some(Journal::create().map_err(failed)?);
        }
        self.journal.as_mut().map_or(Ok(()), |journal| journal.append(&undo)).map_err(failed)?;
        self.undos.push(undo);
        Ok(())
    }

    /// Sets a value of `ethtool`: its option, interface and name, and the value before with the new one.
    pub fn ethtool(&mut self, words: [&str; 3], [before, value]: [&str; 2]) -> Result<(), MachineError> {
        let with = |value: &str| words.into_iter().chain([value]).map(str::to_owned).collect();
        self.keep(Undo::Ethtool(with(before)))?;
        let [option, interface, name] = words;
        ethtool(&[option, interface, name, value]).map(drop)
    }

    /// Writes a file below `/proc/sys` or `/sys`, if it has another value.
    pub fn write(&mut self, path: &Path, value: &str) -> Result<(), MachineError> {
        let failed = |error| MachineError::File { path: path.into(), error };
        let before = fs::read_to_string(path).map_err(failed)?.trim_end().to_owned();
        if before != value {
            self.keep(Undo::Write(path.into(), before))?;
            fs::write(path, value).map_err(failed)?;
        }
        Ok(())
    }

    /// Sets a parameter of an interface below `/proc/sys/net/ipv4/conf`.
    pub fn interface(&mut self, interface: &str, name: &str, value: &str) -> Result<(), MachineError> {
        self.write(&Path::new("/proc/sys/net/ipv4/conf").join(interface).join(name), value)
    }

    /// Has the machine forward IPv6 or not. The kernel writes this to every interface, so that their values are put back
    /// after it. Routes that routers advertise stay, which the kernel would remove otherwise.
    pub fn forwarding_inet6(&mut self, value: &str) -> Result<(), MachineError> {
        let folder = Path::new("/proc/sys/net/ipv6/conf");
        let failed = |error| MachineError::File { path: folder.into(), error };
        let all = folder.join("all");
        let entries = fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        for interface in entries.iter().map(fs::DirEntry::path).filter(|path| *path != all) {
            let accepts = interface.join("accept_ra");
            if value == "1" && fs::read_to_string(&accepts).is_ok_and(|value| value.trim() == "1") {
                self.write(&accepts, "2")?;
            }
            let path = interface.join("forwarding");
            let before = fs::read_to_string(&path).map_err(failed)?.trim_end().to_owned();
            self.keep(Undo::Write(path, before))?;
        }
        self.write(&all.join("forwarding"), value)
    }

    /// Has an interface keep its addresses of IPv6 while it is down.
    pub fn keep_inet6_addresses(&mut self, interface: &str) -> Result<(), MachineError> {
        let setting = Path::new("/proc/sys/net/ipv6/conf").join(interface).join("keep_addr_on_down");
        // A kernel without IPv6 does not have it.
        if setting.exists() { self.write(&setting, "1") } else { Ok(()) }
    }

    /// Sets an interface up.
    pub fn up(&mut self, interface: &str) -> Result<(), MachineError> {
        let shown = ip_json(&format!("link show dev {interface}"))?;
        let flags = shown[0]["flags"].as_array().cloned().unwrap_or_default();
        if !flags.iter().any(|flag| flag == "UP") {
            self.keep_inet6_addresses(interface)?;
            self.keep(Undo::Ip(format!("link set dev {interface} down")))?;
            ip(&format!("link set dev {interface} up"))?;
        }
        Ok(())
    }

    /// Adds an address.
    pub fn address(&mut self, interface: &str, net: InterfaceNet) -> Result<(), MachineError> {
        let (family, flags) = match net.family() {
            Family::Inet => ("-4", ""),
            // Packets go at once, before the kernel could have asked whether another host has the address.
            Family::Inet6 => ("-6", " nodad"),
        };
        let shown = ip_json(&format!("{family} address show dev {interface}"))?;
        let has = |entry: &Value| entry["local"] == net.address.to_string();
        let addresses = shown[0]["addr_info"].as_array().cloned().unwrap_or_default();
        if !addresses.iter().any(has) {
            self.keep(Undo::Ip(format!("address del {net} dev {interface}")))?;
            ip(&format!("address add {net} dev {interface}{flags}"))?;
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
        let undo = before.map_or_else(|| format!("neighbor del {address} dev {interface}"), of);
        self.keep(Undo::Ip(undo))?;
        ip(&of(mac)).map(drop)
    }

    /// Has a fence removed that a router makes between these interfaces and then leaves. One that is there already is that of
    /// another router.
    pub fn fence(&mut self, interfaces: &[String]) -> Result<(), MachineError> {
        if has_fence(interfaces) { Ok(()) } else { self.keep(Undo::Fence(interfaces.to_vec())) }
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.undos.drain(..).rev().for_each(|undo| undo.apply());
        self.journal.take().into_iter().for_each(Journal::remove);
    }
}
