//! Rules of the kernel that keep the state of each flow, as administrators write them.
//!
//! All of them accept the first packet of a flow, and the others by the flow's state.

use std::path::PathBuf;
use std::process::Command;

use fullview_table::Family;

use super::bed::EGRESS;
use super::device_name::DeviceName;
use super::error::RatesError;
use crate::testbed::{Namespace, run};

const NFTABLES: &str = "table inet rates {\n\
    chain forward {\n\
    type filter hook forward priority 0; policy drop;\n\
    ct state established,related accept\n\
    ct state new udp dport 9 accept\n}\n}\n";

const IPTABLES: &str = "*filter\n:FORWARD DROP [0:0]\n\
    -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n\
    -A FORWARD -p udp --dport 9 -m conntrack --ctstate NEW -j ACCEPT\nCOMMIT\n";

/// Rules for the input of a command.
pub struct RuleSet {
    device: DeviceName,
    command: [&'static str; 3],
    /// The Debian package of the command.
    package: &'static str,
    rules: String,
}

impl RuleSet {
    /// The rules of a device that has some. `ingress` is its interface to the left host.
    pub fn of(device: DeviceName, ingress: &str, family: Family) -> Option<RuleSet> {
        let nft = ["nft", "-f", "-"];
        let (command, package, rules) = match device {
            DeviceName::KernelStateful => (nft, "nftables", NFTABLES.into()),
            DeviceName::KernelFlowtable => (nft, "nftables", flowtable(ingress)),
            // The forms of iptables differ in the kernel's code that matches packets: the host's alternative decides.
            DeviceName::KernelIptables => {
                let command = match family {
                    Family::Inet => "iptables-restore",
                    Family::Inet6 => "ip6tables-restore",
                };
                ([command, "--table", "filter"], "iptables", IPTABLES.into())
            }
            _ => return None,
        };
        Some(RuleSet { device, command, package, rules })
    }

    /// Sets the rules in a namespace. What the kernel refuses is reported in the words of the command.
    pub fn load(&self, namespace: &Namespace) -> Result<(), RatesError> {
        let [command, ..] = self.command;
        if !is_installed(command) {
            let (device, package) = (self.device.word(), self.package);
            return Err(RatesError::NotInstalled { device, command, package });
        }
        let arguments = [&["netns", "exec", namespace.name()], &self.command[..]].concat();
        let refused = |error| RatesError::Rules { device: self.device.word(), error };
        run("ip", &arguments, &self.rules).map_err(refused)
    }
}

/// Once the rules have accepted a flow, its packets go from interface to interface before the routing of the kernel. A flow
/// without answers stays new, so that new flows are added too: from their second packet on, which conntrack knows.
fn flowtable(ingress: &str) -> String {
    format!(
        "table inet rates {{\n\
         flowtable known {{\nhook ingress priority 0; devices = {{ {ingress}, {EGRESS} }};\n}}\n\
         chain forward {{\n\
         type filter hook forward priority 0; policy drop;\n\
         ct state established flow add @known\n\
         ct state new udp dport 9 flow add @known\n\
         ct state established,related accept\n\
         ct state new udp dport 9 accept\n}}\n}}\n"
    )
}

fn is_installed(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder: PathBuf| folder.join(command).exists())
}

/// Which form of iptables the host has, in its own words.
pub fn iptables_version(family: Family) -> Option<String> {
    let command = if family == Family::Inet { "iptables" } else { "ip6tables" };
    let said = Command::new(command).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&said.stdout).trim().to_owned()).filter(|version| !version.is_empty())
}
