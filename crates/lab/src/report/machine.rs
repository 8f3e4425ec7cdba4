//! The lines of the report about the machine and the build of the program.

use super::number::{bytes, counted};
use crate::host::{Build, Host};

/// The facts about the machine that are conditions: CPU, virtual machine and kernel.
pub(super) fn conditions(host: &Host) -> Vec<String> {
    let cores = host.cores.map(|cores| counted(cores as u32, "core"));
    let threads = host.threads.map(|threads| counted(threads as u32, "thread"));
    let counts: Vec<String> = cores.into_iter().chain(threads).collect();
    let counts = if counts.is_empty() { String::new() } else { format!(" ({})", counts.join(", ")) };
    let cpu = host.cpu.as_ref().map(|cpu| format!("{cpu}{counts}"));
    let virtual_machine = (host.virtual_machine == Some(true)).then(|| "in a virtual machine".to_owned());
    [cpu, virtual_machine, host.kernel.clone()].into_iter().flatten().collect()
}

/// The other facts about the machine, for the provenance.
pub(super) fn facts(host: &Host) -> Vec<String> {
    let memory = host.memory_bytes.map(|count| format!("memory: {}", bytes(count)));
    let caches = (!host.caches.is_empty()).then(|| format!("caches: {}", host.caches.join(", ")));
    let named = |name: &str, fact: &Option<String>| fact.as_ref().map(|fact| format!("{name}: {fact}"));
    let load = host
        .load
        .map(|[one, five, fifteen]| format!("load average before the first run: {one} {five} {fifteen}"));
    let policies = [
        named("operating system", &host.os),
        named("frequency governor", &host.governor),
        named("transparent huge pages", &host.huge_pages),
    ];
    [memory, caches].into_iter().chain(policies).chain([load]).flatten().collect()
}

/// The facts about the build, for the provenance.
pub(super) fn build_facts(build: &Build) -> Vec<String> {
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "unknown".into());
    let kind = if build.debug { "debug" } else { "release" };
    let commit = known(&build.commit);
    vec![
        format!("fullview {}, commit {commit}, {kind} build", build.version),
        format!("compiler: {}", known(&build.rustc)),
    ]
}
