//! Reads and sets what an inventory declares, on the machine of an agent.

use std::fs;
use std::path::{Path, PathBuf};

use super::declared::{DeclaredSetting, EthtoolTable, MachineSetting, TunedSetting};
use super::machine::{MachineError, ethtool};
use super::tuning::Tuning;
use super::undo::Changes;

/// What `ethtool` calls offloads, and how it lists them.
const LONG_NAMES: [(&str, &str); 11] = [
    ("gro", "generic-receive-offload"),
    ("lro", "large-receive-offload"),
    ("tso", "tcp-segmentation-offload"),
    ("gso", "generic-segmentation-offload"),
    ("rxvlan", "rx-vlan-offload"),
    ("txvlan", "tx-vlan-offload"),
    ("rx", "rx-checksumming"),
    ("tx", "tx-checksumming"),
    ("sg", "scatter-gather"),
    ("rxhash", "receive-hashing"),
    ("ntuple", "ntuple-filters"),
];

/// Why a setting does not have its declared value.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    #[error("{setting}: this machine does not have it")]
    Missing { setting: MachineSetting },
    #[error(
        "{setting} is {found}, and the inventory declares {wanted}; with `set-tuning = true` at this node it is set for the \
         time of the measurement"
    )]
    Differs { setting: MachineSetting, found: String, wanted: String },
    #[error("{setting} cannot be set to {wanted}: {error}")]
    Refused { setting: MachineSetting, wanted: String, error: Box<MachineError> },
    #[error("{setting} stays {found} when it is set to {wanted}")]
    Kept { setting: MachineSetting, found: String, wanted: String },
}

impl EthtoolTable {
    fn options(self) -> [&'static str; 2] {
        match self {
            EthtoolTable::Offloads => ["-k", "-K"],
            EthtoolTable::FlowControl => ["-a", "-A"],
            EthtoolTable::Rings => ["-g", "-G"],
            EthtoolTable::Queues => ["-l", "-L"],
        }
    }
}

impl DeclaredSetting {
    /// Compares a setting with its declared value, and sets it if that is allowed and it differs.
    pub fn apply(&self, may_set: bool, changes: &mut Changes) -> Result<TunedSetting, TuneError> {
        let (setting, wanted) = (self.setting.clone(), self.value.clone());
        let Some(before) = setting.read() else { return Err(TuneError::Missing { setting }) };
        let (value, name) = (self.value.clone(), setting.to_string());
        if !is_same(&before, &wanted) {
            if !may_set {
                return Err(TuneError::Differs { setting, found: before, wanted });
            }
            self.set(&before, changes)?;
        }
        Ok(TunedSetting { setting: name, before, value })
    }

    /// Some drivers accept a value and keep another one.
    fn set(&self, before: &str, changes: &mut Changes) -> Result<(), TuneError> {
        let (setting, wanted) = (self.setting.clone(), self.value.clone());
        if let Err(error) = setting.write(before, &wanted, changes) {
            return Err(TuneError::Refused { setting, wanted, error: Box::new(error) });
        }
        match setting.read() {
            Some(found) if is_same(&found, &wanted) => Ok(()),
            found => Err(TuneError::Kept { setting, found: found.unwrap_or_default(), wanted }),
        }
    }
}

impl MachineSetting {
    /// The value now; nothing if the machine does not have the setting.
    pub fn read(&self) -> Option<String> {
        match self {
            MachineSetting::Ethtool { interface, table, name } => {
                let shown = ethtool(&[table.options()[0], interface]).ok()?;
                shown_value(&shown, *table, name)
            }
            _ => common(self.files().iter().map(|path| fs::read_to_string(path).ok())),
        }
    }

    fn write(&self, before: &str, value: &str, changes: &mut Changes) -> Result<(), MachineError> {
        match self {
            MachineSetting::Ethtool { interface, table, name } => {
                changes.ethtool([table.options()[1], interface, name], [before, value])
            }
            _ => self.files().iter().try_for_each(|path| changes.write(path, value)),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        match self {
            MachineSetting::Ethtool { .. } => Vec::new(),
            MachineSetting::Sysctl(name) => vec![Path::new("/proc/sys").join(sysctl_path(name))],
            MachineSetting::Governor => {
                entries("/sys/devices/system/cpu").map(|core| core.join("cpufreq/scaling_governor")).collect()
            }
            MachineSetting::Smt => vec!["/sys/devices/system/cpu/smt/control".into()],
            MachineSetting::Mitigation(name) => {
                vec![Path::new("/sys/devices/system/cpu/vulnerabilities").join(name)]
            }
            MachineSetting::InterruptCores(interface) => {
                let all = entries(&format!("/sys/class/net/{interface}/device/msi_irqs"));
                let numbers = all.filter_map(|path| Some(path.file_name()?.to_owned()));
                let irq = |number| Path::new("/proc/irq").join(number).join("smp_affinity_list");
                numbers.map(irq).collect()
            }
        }
        .into_iter()
        .filter(|path| path.exists())
        .collect()
    }
}

/// Declared settings as they are now, beside those that are recorded of every machine.
pub fn declared_tuning(declared: &[DeclaredSetting]) -> Tuning {
    let now = |one: &DeclaredSetting| Some((format!("declared {}", one.setting), one.setting.read()?));
    declared.iter().filter_map(now).collect()
}

fn entries(folder: &str) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// As sysctl reads names: dots separate, unless there are slashes, which names of interfaces with dots need.
fn sysctl_path(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { name.replace('.', "/") }
}

/// The one value of several files, or all of them if they differ.
fn common(texts: impl Iterator<Item = Option<String>>) -> Option<String> {
    let mut values: Vec<String> = texts.flatten().map(|text| text.trim().to_owned()).collect();
    values.sort();
    values.dedup();
    (!values.is_empty()).then(|| values.join(", "))
}

fn is_same(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

/// The value in what `ethtool` shows, where maxima come before what is set.
fn shown_value(shown: &str, table: EthtoolTable, name: &str) -> Option<String> {
    let current = shown.split_once("Current hardware settings:").map_or(shown, |(_, current)| current);
    let long = LONG_NAMES.iter().find(|(short, _)| *short == name && table == EthtoolTable::Offloads);
    let label = match name {
        "autoneg" => "autonegotiate".to_owned(),
        _ if table == EthtoolTable::Offloads => long.map_or(name, |(_, long)| long).to_owned(),
        _ => name.replace('-', " "),
    };
    let mut lines = current.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, value) = lines.find(|(shown, _)| shown.eq_ignore_ascii_case(&label))?;
    Some(value.split_ascii_whitespace().next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_short_and_long_names() {
        let offloads = "Features for eth1:\nrx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\ngeneric-receive-offload: off";
        let value = |name| shown_value(offloads, EthtoolTable::Offloads, name);
        assert_eq!(value("gro").as_deref(), Some("off"));
        assert_eq!(value("rx").as_deref(), Some("on"));
        assert_eq!(value("tx-checksum-ipv4").as_deref(), Some("off"));
        assert_eq!(value("lro"), None);
        let rings = "Pre-set maximums:\nRX:\t4096\nRX Mini:\tn/a\nCurrent hardware settings:\nRX:\t256\nRX Mini:\tn/a";
        assert_eq!(shown_value(rings, EthtoolTable::Rings, "rx").as_deref(), Some("256"));
        let pause = "Pause parameters for eth1:\nAutonegotiate:\toff\nRX:\t\ton";
        assert_eq!(shown_value(pause, EthtoolTable::FlowControl, "autoneg").as_deref(), Some("off"));
    }

    #[test]
    fn names_of_sysctl_are_paths() {
        assert_eq!(sysctl_path("net.ipv4.ip_early_demux"), "net/ipv4/ip_early_demux");
        assert_eq!(sysctl_path("net/ipv4/conf/eth1.7/send_redirects"), "net/ipv4/conf/eth1.7/send_redirects");
    }

    #[test]
    fn values_of_several_files_are_one_if_they_agree() {
        let of = |texts: &[&str]| common(texts.iter().map(|text| Some((*text).to_owned())));
        assert_eq!(of(&["performance\n", "performance\n"]).as_deref(), Some("performance"));
        assert_eq!(of(&["powersave", "performance"]).as_deref(), Some("performance, powersave"));
        assert_eq!(of(&[]), None);
        assert!(is_same("4096\t131072", "4096 131072"));
    }
}
