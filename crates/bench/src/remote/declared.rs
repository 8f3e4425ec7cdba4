//! Settings that an inventory declares, and the settings of a machine that they mean.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Settings of a node, or of the device under test while one device is measured.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct DeclaredTuning {
    /// By the names of `ethtool -K`, like the next three of every interface of the node.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, bool>,
    /// `ethtool -A`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub flow_control: BTreeMap<String, bool>,
    /// `ethtool -G`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rings: BTreeMap<String, u32>,
    /// `ethtool -L`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queues: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, SysctlValue>,
    /// Of every core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Whether cores run two threads: a word of `/sys/devices/system/cpu/smt/control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt: Option<String>,
    /// What the files in `/sys/devices/system/cpu/vulnerabilities` say; only compared, because a machine sets them when it starts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mitigations: BTreeMap<String, String>,
    /// Lists of cores, by interface.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub interrupt_cores: BTreeMap<String, String>,
}

/// A number or a text, as the file has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum SysctlValue {
    Number(i64),
    Text(String),
}

/// A table of `ethtool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EthtoolTable {
    Offloads,
    FlowControl,
    Rings,
    Queues,
}

/// A setting of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MachineSetting {
    Ethtool { interface: String, table: EthtoolTable, name: String },
    Sysctl(String),
    Governor,
    Smt,
    Mitigation(String),
    InterruptCores(String),
}

/// A setting with the value that it has to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredSetting {
    pub setting: MachineSetting,
    pub value: String,
}

/// A setting that a machine has as it is declared, for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedSetting {
    pub setting: String,
    pub before: String,
    pub value: String,
}

impl DeclaredTuning {
    /// Each setting, at all of these interfaces where it is one of an interface.
    pub fn settings(&self, interfaces: &[String]) -> Vec<DeclaredSetting> {
        let on = |value: &bool| if *value { "on" } else { "off" }.to_owned();
        let ethtool = [
            (EthtoolTable::Offloads, texts(&self.offloads, on)),
            (EthtoolTable::FlowControl, texts(&self.flow_control, on)),
            (EthtoolTable::Queues, texts(&self.queues, u32::to_string)),
            (EthtoolTable::Rings, texts(&self.rings, u32::to_string)),
        ];
        let of_interfaces = ethtool.into_iter().flat_map(|(table, values)| {
            let at = move |interface: &String| at_interface(interface, table, &values);
            interfaces.iter().flat_map(at)
        });
        of_interfaces.chain(self.of_machine()).collect()
    }

    fn of_machine(&self) -> Vec<DeclaredSetting> {
        let declared = |setting, value: &str| DeclaredSetting { setting, value: value.to_owned() };
        let sysctl = texts(&self.sysctl, SysctlValue::to_string);
        let sysctl = sysctl.iter().map(|(name, value)| declared(MachineSetting::Sysctl(name.clone()), value));
        let governor = self.governor.iter().map(|value| declared(MachineSetting::Governor, value));
        let smt = self.smt.iter().map(|value| declared(MachineSetting::Smt, value));
        let mitigations = self.mitigations.iter();
        let mitigations =
            mitigations.map(|(name, value)| declared(MachineSetting::Mitigation(name.clone()), value));
        let cores = self.interrupt_cores.iter();
        let cores = cores
            .map(|(interface, value)| declared(MachineSetting::InterruptCores(interface.clone()), value));
        sysctl.chain(governor).chain(smt).chain(mitigations).chain(cores).collect()
    }

    /// Refuses words that are no names of settings: they become paths and arguments of `ethtool`.
    pub fn check(&self, interfaces: &[String]) -> Result<(), String> {
        let named = [self.offloads.keys().collect(), self.flow_control.keys().collect()];
        let counted: [Vec<&String>; 2] = [self.rings.keys().collect(), self.queues.keys().collect()];
        let names: Vec<&String> = named.into_iter().chain(counted).flatten().collect();
        let names = names.into_iter().chain(self.sysctl.keys()).chain(self.mitigations.keys());
        names.into_iter().try_for_each(|name| check_name(name))?;
        match self.interrupt_cores.keys().find(|interface| !interfaces.contains(interface)) {
            Some(unknown) => Err(format!("`interrupt-cores`: {unknown} is no interface of this node")),
            None => Ok(()),
        }
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(fits);
    let escapes = name.contains("..");
    if is_name && !escapes { Ok(()) } else { Err(format!("{name:?} is no name of a setting")) }
}

fn texts<T>(values: &BTreeMap<String, T>, text: impl Fn(&T) -> String) -> Vec<(String, String)> {
    values.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}

fn at_interface(interface: &str, table: EthtoolTable, values: &[(String, String)]) -> Vec<DeclaredSetting> {
    let declared = |(name, value): &(String, String)| DeclaredSetting {
        setting: MachineSetting::Ethtool { interface: interface.into(), table, name: name.clone() },
        value: value.clone(),
    };
    values.iter().map(declared).collect()
}

impl fmt::Display for SysctlValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SysctlValue::Number(number) => write!(out, "{number}"),
            SysctlValue::Text(text) => out.write_str(text),
        }
    }
}

/// As messages and pages name it.
impl fmt::Display for MachineSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineSetting::Ethtool { interface, table, name } => match table {
                EthtoolTable::Offloads => write!(out, "{interface}: {name}"),
                EthtoolTable::FlowControl => write!(out, "{interface}: flow control {name}"),
                EthtoolTable::Rings => write!(out, "{interface}: ring {name}"),
                EthtoolTable::Queues => write!(out, "{interface}: queues {name}"),
            },
            MachineSetting::Sysctl(name) => write!(out, "sysctl {name}"),
            MachineSetting::Governor => write!(out, "governor"),
            MachineSetting::Smt => write!(out, "SMT"),
            MachineSetting::Mitigation(name) => write!(out, "mitigation {name}"),
            MachineSetting::InterruptCores(interface) => write!(out, "{interface}: cores of its interrupts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(text: &str) -> DeclaredTuning {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn settings_of_interfaces_are_declared_for_each_of_them() {
        let more = declared("smt = \"off\"\nmitigations = { spectre_v2 = \"Vulnerable\" }").settings(&[]);
        let shown: Vec<String> = more.iter().map(|one| format!("{} = {}", one.setting, one.value)).collect();
        assert_eq!(shown, ["SMT = off", "mitigation spectre_v2 = Vulnerable"]);
        let text =
            "offloads = { gro = false }\nsysctl = { \"net.core.busy_read\" = 0 }\ngovernor = \"performance\"";
        let settings = declared(text).settings(&["in".into(), "out".into()]);
        let shown: Vec<String> =
            settings.iter().map(|one| format!("{} = {}", one.setting, one.value)).collect();
        let expected = ["in: gro = off", "out: gro = off", "sysctl net.core.busy_read = 0"];
        assert_eq!(shown[..3], expected);
        assert_eq!(shown[3], "governor = performance");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for wrong in [
            "offloads = { \"-x\" = true }",
            "sysctl = { \"net/../kernel\" = 1 }",
            "mitigations = { \"../smt\" = \"x\" }",
        ] {
            assert!(declared(wrong).check(&[]).is_err(), "{wrong}");
        }
        let elsewhere = declared("interrupt-cores = { eth7 = \"1\" }");
        assert!(elsewhere.check(&["eth1".into()]).unwrap_err().contains("eth7"));
        assert_eq!(elsewhere.check(&["eth7".into()]), Ok(()));
    }
}
