//! Settings of a machine that change its rates: they are recorded, and must not change while something is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Offloads and their like are only recorded as far as these tools show them.
const SHOWN: [(&str, &str); 4] =
    [("offloads", "-k"), ("flow control", "-a"), ("rings", "-g"), ("queues", "-l")];
/// Names of files below `/proc/sys/net/ipv4/conf/INTERFACE`.
const REDIRECTS: [&str; 2] = ["send_redirects", "accept_redirects"];
const MACHINE: [(&str, &str); 5] = [
    ("SMT", "/sys/devices/system/cpu/smt/control"),
    ("boost", "/sys/devices/system/cpu/cpufreq/boost"),
    ("turbo off", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("early demux", "/proc/sys/net/ipv4/ip_early_demux"),
    ("receive budget", "/proc/sys/net/core/netdev_budget"),
];

/// Each setting with its value. What the machine does not have is not there.
pub type Tuning = BTreeMap<String, String>;

/// The settings of this machine, with those of some interfaces.
pub fn tuning(interfaces: &[String]) -> Tuning {
    let mut all: Tuning = MACHINE.iter().filter_map(|(name, path)| read(name, Path::new(path))).collect();
    all.extend(mitigations());
    all.extend(governors());
    interfaces.iter().for_each(|interface| all.extend(of_interface(interface)));
    all
}

fn of_interface(interface: &str) -> Tuning {
    let shown = SHOWN.iter().filter_map(|(name, option)| {
        let shown = Command::new("ethtool").args([option, interface]).output().ok()?;
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        shown.status.success().then(|| (format!("{interface}: {name}"), lines(&text)))
    });
    let conf = Path::new("/proc/sys/net/ipv4/conf").join(interface);
    let redirects =
        REDIRECTS.iter().filter_map(|name| read(&format!("{interface}: {name}"), &conf.join(name)));
    let class = Path::new("/sys/class/net").join(interface);
    let threaded = read(&format!("{interface}: threaded NAPI"), &class.join("threaded"));
    shown.chain(redirects).chain(threaded).chain(affinities(interface, &class)).collect()
}

/// The cores of the interrupts of a card.
fn affinities(interface: &str, class: &Path) -> Tuning {
    let interrupts = fs::read_dir(class.join("device/msi_irqs")).into_iter().flatten().flatten();
    let cores = |interrupt: fs::DirEntry| {
        let number = interrupt.file_name().into_string().ok()?;
        let path = format!("/proc/irq/{number}/smp_affinity_list");
        read(&format!("{interface}: cores of interrupt {number}"), Path::new(&path))
    };
    interrupts.filter_map(cores).collect()
}

fn governors() -> Tuning {
    let cores = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
    let governor = |core: fs::DirEntry| {
        let name = core.file_name().into_string().ok()?;
        read(&format!("governor of {name}"), &core.path().join("cpufreq/scaling_governor"))
    };
    cores.filter_map(governor).collect()
}

fn mitigations() -> Tuning {
    let files = fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten();
    let mitigation = |file: fs::DirEntry| {
        read(&format!("mitigation {}", file.file_name().to_string_lossy()), &file.path())
    };
    files.filter_map(mitigation).collect()
}

fn read(name: &str, path: &Path) -> Option<(String, String)> {
    let text = fs::read_to_string(path).ok()?;
    Some((name.to_owned(), text.trim().to_owned()))
}

/// Offloads that the kernel itself switches off, once an interface forwards or has a program: no frame may be merged then.
const SWITCHED_OFF: [&str; 2] = ["large-receive-offload:", "rx-gro-hw:"];

/// Without the line that only names the interface.
fn lines(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).skip(1);
    let is_fixed = |line: &&str| !SWITCHED_OFF.iter().any(|name| line.starts_with(name));
    lines.filter(is_fixed).collect::<Vec<_>>().join("; ")
}

/// The first setting that differs, with both values.
pub fn difference(before: &Tuning, now: &Tuning) -> Option<(String, [String; 2])> {
    let names = before.keys().chain(now.keys());
    let value =
        |tuning: &Tuning, name: &String| tuning.get(name).cloned().unwrap_or_else(|| "missing".into());
    let mut values = names.map(|name| (name.clone(), [before, now].map(|tuning| value(tuning, name))));
    let (name, [old, new]) = values.find(|(_, [old, new])| old != new)?;
    let parts = |text: &str| text.split("; ").map(str::to_owned).collect::<Vec<_>>();
    let changed = |of: &str, other: &str| {
        let others = parts(other);
        parts(of).into_iter().filter(|part| !others.contains(part)).collect::<Vec<_>>().join("; ")
    };
    Some((name, [changed(&old, &new), changed(&new, &old)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_of_a_setting_is_named() {
        let of = |offloads: &str| Tuning::from([("eth1: offloads".to_owned(), offloads.to_owned())]);
        let (before, now) = (of("gro: on; tso: on"), of("gro: off; tso: on"));
        assert_eq!(difference(&before, &before), None);
        let expected = ("eth1: offloads".to_owned(), ["gro: on", "gro: off"].map(str::to_owned));
        assert_eq!(difference(&before, &now), Some(expected));
        assert_eq!(difference(&before, &Tuning::new()).unwrap().1[1], "missing");
    }
}
