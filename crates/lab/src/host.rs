//! The provenance of a campaign: the machine, the build and the command.
//!
//! Facts come from Linux's `/proc` and `/sys` (proc(5), sysfs(5)). A fact that the machine does not report is absent; none
//! is guessed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash64;

/// What the figures of a campaign depend on besides the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// Start of the campaign, UTC, RFC 3339.
    pub started: String,
    /// The words of the command.
    pub command: Vec<String>,
    /// The build of the program.
    pub build: Build,
    /// The machine.
    pub host: Host,
    /// The conditions that the bench declared before the first run.
    pub conditions: Vec<String>,
}

/// The build of the program that measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Version of fullview.
    pub version: String,
    /// Output of `rustc --version`.
    pub rustc: Option<String>,
    /// Commit that was checked out. The build may contain changes that are not in it.
    pub commit: Option<String>,
    /// Hash of the program's file: another one after every change. Absent in archives of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether debug assertions were compiled in. The rates of such a build are not those of a release.
    pub debug: bool,
}

/// The machine that measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Model name of the processor.
    pub cpu: Option<String>,
    /// Physical cores.
    pub cores: Option<usize>,
    /// Hardware threads.
    pub threads: Option<usize>,
    /// Caches of CPU 0, such as `L1d 32K`.
    pub caches: Vec<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Kernel name and release.
    pub kernel: Option<String>,
    /// Name of the operating system, from `os-release`.
    pub os: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// Whether the machine is a virtual machine.
    pub virtual_machine: Option<bool>,
    /// Policy for transparent huge pages.
    pub huge_pages: Option<String>,
    /// Load average of the last 1, 5 and 15 minutes, before the first run.
    pub load: Option<[f64; 3]>,
}

impl Provenance {
    /// Reads the provenance of this process on this machine.
    pub fn observe(conditions: Vec<String>) -> Self {
        Self {
            started: now(),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            build: Build::current(),
            host: Host::observe(Path::new("/")),
            conditions,
        }
    }

    /// Lists the differences that make runs incomparable, each as "what: before → now". Load, time and command may differ.
    pub(crate) fn differences(&self, now: &Self) -> Vec<String> {
        let kinds = [self, now].map(|each| if each.build.debug { "debug" } else { "release" }.to_owned());
        let pairs = [
            ("build", Some(&kinds[0]), Some(&kinds[1])),
            ("version", Some(&self.build.version), Some(&now.build.version)),
            ("compiler", self.build.rustc.as_ref(), now.build.rustc.as_ref()),
            ("commit", self.build.commit.as_ref(), now.build.commit.as_ref()),
            ("CPU", self.host.cpu.as_ref(), now.host.cpu.as_ref()),
            ("kernel", self.host.kernel.as_ref(), now.host.kernel.as_ref()),
            ("governor", self.host.governor.as_ref(), now.host.governor.as_ref()),
        ];
        let programs = [&self.build.program, &now.build.program];
        let known = programs.iter().all(|program| program.is_some());
        let program = known.then_some(("program", programs[0].as_ref(), programs[1].as_ref()));
        let changed = pairs.into_iter().chain(program).filter(|(_, before, now)| before != now);
        let mut found: Vec<String> = changed
            .map(|(what, before, now)| format!("{what}: {} → {}", shown(before), shown(now)))
            .collect();
        if self.conditions != now.conditions {
            found.push(format!("conditions: {} → {}", self.conditions.join(", "), now.conditions.join(", ")));
        }
        found
    }
}

fn shown(fact: Option<&String>) -> &str {
    fact.map_or("unknown", String::as_str)
}

impl Build {
    /// The build of this program.
    pub fn current() -> Self {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            rustc: known(env!("LAB_BUILD_RUSTC")),
            commit: known(env!("LAB_BUILD_COMMIT")),
            program: hash_of_program(),
            debug: cfg!(debug_assertions),
        }
    }
}

/// The hash of the file that this process was started from, also if that is no longer there.
fn hash_of_program() -> Option<String> {
    static HASH: OnceLock<Option<String>> = OnceLock::new();
    HASH.get_or_init(|| hash_of(Path::new("/proc/self/exe")).ok()).clone()
}

fn hash_of(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, XxHash64::with_seed(0));
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part)? {
            0 => return Ok(format!("{:016x}", hasher.finish())),
            length => hasher.write(&part[..length]),
        }
    }
}

impl Host {
    /// Reads the facts from the files below `root`, which is `/` except in tests.
    pub fn observe(root: &Path) -> Self {
        let cpus = read(root, "proc/cpuinfo").unwrap_or_default();
        let cpu0 = root.join("sys/devices/system/cpu/cpu0");
        Self {
            cpu: cpu_model(&cpus),
            cores: physical_cores(&cpus),
            threads: Some(fields(&cpus, "processor").count()).filter(|count| *count > 0),
            caches: caches(&cpu0.join("cache")),
            memory_bytes: read(root, "proc/meminfo").as_deref().and_then(memory_bytes),
            kernel: kernel(root),
            os: read(root, "etc/os-release").as_deref().and_then(os_name),
            governor: read(&cpu0, "cpufreq/scaling_governor"),
            virtual_machine: fields(&cpus, "flags").next().map(|flags| has_word(flags, "hypervisor")),
            huge_pages: read(root, "sys/kernel/mm/transparent_hugepage/enabled").as_deref().and_then(chosen),
            load: read(root, "proc/loadavg").as_deref().and_then(load),
        }
    }
}

/// Returns the current time in seconds, UTC, RFC 3339.
pub(crate) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(name)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Returns the values of all lines `key : value` with this key.
fn fields<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(move |(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_whitespace().any(|each| each == word)
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    fields(cpuinfo, "model name").next().map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn physical_cores(cpuinfo: &str) -> Option<usize> {
    let cores: BTreeSet<(&str, &str)> =
        fields(cpuinfo, "physical id").zip(fields(cpuinfo, "core id")).collect();
    Some(cores.len()).filter(|count| *count > 0)
}

fn caches(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut indices: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    indices.sort();
    indices.iter().filter_map(|index| cache(index)).collect()
}

fn cache(index: &Path) -> Option<String> {
    let kind = match read(index, "type")?.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    Some(format!("L{}{kind} {}", read(index, "level")?, read(index, "size")?))
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let total = fields(meminfo, "MemTotal").next()?;
    total.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn kernel(root: &Path) -> Option<String> {
    let sys = root.join("proc/sys/kernel");
    Some(format!("{} {}", read(&sys, "ostype")?, read(&sys, "osrelease")?))
}

fn os_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches('"').to_owned())
}

/// Returns the choice in brackets: `madvise` of `always [madvise] never`.
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn load(loadavg: &str) -> Option<[f64; 3]> {
    let mut figures = loadavg.split_whitespace().map_while(|figure| figure.parse().ok());
    Some([figures.next()?, figures.next()?, figures.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_files(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_facts_are_read_from_their_files() {
        let root = tempfile::tempdir().unwrap();
        let core = |thread: u32, core: u32| {
            format!(
                "processor\t: {thread}\nmodel name\t: Some  CPU\nphysical id\t: 0\ncore id\t: {core}\nflags\t: fpu hypervisor\n\n"
            )
        };
        let cpuinfo = [core(0, 0), core(1, 0), core(2, 1), core(3, 1)].concat();
        write_files(
            root.path(),
            &[
                ("proc/cpuinfo", &cpuinfo),
                ("proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n"),
                ("proc/loadavg", "0.10 0.20 0.30 1/99 123\n"),
                ("proc/sys/kernel/ostype", "Linux\n"),
                ("proc/sys/kernel/osrelease", "6.1.0\n"),
                ("etc/os-release", "ID=x\nPRETTY_NAME=\"Some OS 12\"\n"),
                ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
                ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
                ("sys/devices/system/cpu/cpu0/cache/index0/size", "32K\n"),
                ("sys/devices/system/cpu/cpu0/cache/index1/type", "Unified\n"),
                ("sys/devices/system/cpu/cpu0/cache/index1/level", "3\n"),
                ("sys/devices/system/cpu/cpu0/cache/index1/size", "8192K\n"),
            ],
        );
        let expected = Host {
            cpu: Some("Some CPU".into()),
            cores: Some(2),
            threads: Some(4),
            caches: vec!["L1d 32K".into(), "L3 8192K".into()],
            memory_bytes: Some(16 << 20),
            kernel: Some("Linux 6.1.0".into()),
            os: Some("Some OS 12".into()),
            governor: Some("performance".into()),
            virtual_machine: Some(true),
            huge_pages: Some("madvise".into()),
            load: Some([0.1, 0.2, 0.3]),
        };
        assert_eq!(Host::observe(root.path()), expected);
    }

    #[test]
    fn facts_without_a_file_are_absent() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Host::observe(root.path()), Host::default());
    }

    #[test]
    fn another_kernel_makes_runs_incomparable_but_another_load_does_not() {
        let before = Provenance::observe(vec!["one".into()]);
        let mut now = before.clone();
        now.host.load = Some([9.0; 3]);
        now.command.push("--resume".into());
        assert!(before.differences(&now).is_empty());
        now.host.kernel = Some("Plan 9".into());
        assert_eq!(before.differences(&now).len(), 1);
        assert!(before.differences(&now)[0].ends_with("→ Plan 9"));
    }
}
