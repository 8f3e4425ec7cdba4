//! Checks a configuration.

use rustix::thread::{CpuSet, sched_getaffinity};

use super::error::{ConfigError, ensure};
use super::sections::{PuntSection, RouterConfig, RouterSection, XdpSection};
use super::to_options::{lookup, port_options, threads_only};
use super::{names, sections, standalone};
use crate::algorithm;
use crate::options::{EngineName, PortName};

/// The kernel spreads flows over this many packet sockets at most.
const MAX_WORKERS: usize = 256;

/// Sizes and times of sockets are numbers of C's type int.
const MAX_SOCKET_VALUE: usize = i32::MAX as usize;

/// Refuses values that are not possible, and keys that do not fit together.
pub fn check(config: &RouterConfig) -> Result<(), ConfigError> {
    let RouterSection { interfaces, workers, kernel, .. } = &config.router;
    ensure!(!interfaces.is_empty(), "router.interfaces: name at least one");
    ensure!((1..=MAX_WORKERS).contains(workers), "router.workers: give 1 to {MAX_WORKERS}");
    let buffer = config.router.netlink_buffer;
    ensure!(buffer <= MAX_SOCKET_VALUE, "router.netlink-buffer: give {MAX_SOCKET_VALUE} bytes at most");
    names::check(interfaces)?;
    check_interfaces(config)?;
    check_cores(&config.router)?;
    check_xdp(config)?;
    check_export(config)?;
    if *kernel {
        check_with_kernel(config)?
    } else {
        check_standalone(config)?
    }
    let both = config.control.name.is_some() && config.control.socket.is_some();
    ensure!(!both, "control: name and socket are two ways to say one thing; leave one out");
    let is_file_name = |name: &String| !name.is_empty() && !name.contains('/');
    ensure!(config.control.name.iter().all(is_file_name), "control.name: give a name without /");
    algorithm::check::<u32>(&lookup(&config.router))?;
    algorithm::preferences(&lookup(&config.router))?;
    Ok(())
}

fn check_export(config: &RouterConfig) -> Result<(), ConfigError> {
    let Some(export) = &config.export else { return Ok(()) };
    let collectors = [("sflow", export.sflow), ("ipfix", export.ipfix)];
    let mut named = collectors.iter().filter_map(|(key, collector)| Some((key, (*collector)?))).peekable();
    ensure!(named.peek().is_some(), "export: name a collector, sflow or ipfix, or both");
    named.try_for_each(|(key, collector)| {
        ensure!(
            collector.port() != 0,
            "export.{key}: {collector} has no port; 6343 is that of sFlow, 4739 of IPFIX"
        );
        Ok(())
    })
}

fn check_interfaces(config: &RouterConfig) -> Result<(), ConfigError> {
    let interfaces = &config.router.interfaces;
    for (name, interface) in &config.interface {
        let is_of = |port: &String| name.strip_prefix(port).is_some_and(|rest| rest.starts_with('.'));
        let known = interfaces.contains(name) || interfaces.iter().any(is_of);
        ensure!(known, "interface.{name}: it is neither one of router.interfaces nor a VLAN of one");
        let is_port = interfaces.contains(name);
        let has_port = interface.port.is_none() && interface.mac.is_none();
        ensure!(is_port || has_port, "interface.{name}: a VLAN has the port and the MAC of its interface");
    }
    Ok(())
}

fn check_cores(RouterSection { cores, workers, .. }: &RouterSection) -> Result<(), ConfigError> {
    let each = cores.is_empty() || cores.len() == *workers;
    ensure!(each, "router.cores: name as many as there are workers, {workers}, or none");
    let allowed = sched_getaffinity(None).map_err(ConfigError::Cores)?;
    let is_allowed = |core: usize| core < CpuSet::MAX_CPU && allowed.is_set(core);
    for (at, core) in cores.iter().enumerate() {
        ensure!(is_allowed(*core), "router.cores: this program may not run on core {core}");
        ensure!(!cores[..at].contains(core), "router.cores: core {core} is there twice");
    }
    Ok(())
}

fn check_xdp(config: &RouterConfig) -> Result<(), ConfigError> {
    let has_sockets = port_options(config).kinds.iter().any(|kind| kind.may_be_xdp());
    let fits = has_sockets || config.xdp == XdpSection::default();
    ensure!(
        fits,
        "xdp: these are options of AF_XDP ports, and there are none; set router.port to \"xdp\" or \"auto\""
    );
    check_busy_poll(&config.xdp)
}

fn check_busy_poll(
    XdpSection { busy_poll_us, busy_poll_budget, .. }: &XdpSection,
) -> Result<(), ConfigError> {
    let fits = busy_poll_us.is_none_or(|micros| i32::try_from(micros).is_ok());
    ensure!(fits, "xdp.busy-poll-us: give {MAX_SOCKET_VALUE} at most");
    let fits = u16::try_from(*busy_poll_budget).is_ok();
    ensure!(fits, "xdp.busy-poll-budget: give {} at most", u16::MAX);
    Ok(())
}

fn check_with_kernel(config: &RouterConfig) -> Result<(), ConfigError> {
    if let Some(key) = standalone::first_standalone_key(config) {
        let text =
            format!("{key}: the kernel has that; only a router with `kernel = false` is configured with it");
        return Err(ConfigError::Value(text));
    }
    let by_program = !matches!(config.router.engine, EngineName::Threads | EngineName::Auto);
    if let Some(key) = threads_only(config).filter(|_| by_program) {
        let text = format!(
            "{key}: only threads have that, not the program in the kernel; leave it out, or set router.engine = \"threads\""
        );
        return Err(ConfigError::Value(text));
    }
    let kinds = port_options(config).kinds;
    let has_tap = kinds.contains(&PortName::Tap);
    ensure!(!has_tap, "router.port: a tap is a port of a router with `kernel = false`");
    Ok(())
}

fn check_standalone(config: &RouterConfig) -> Result<(), ConfigError> {
    let by_threads = matches!(config.router.engine, EngineName::Threads | EngineName::Auto);
    ensure!(by_threads, "router.engine: without a kernel there is only `threads`");
    let kinds = port_options(config).kinds;
    let are_hidden = kinds.iter().all(|kind| matches!(kind, PortName::Tap | PortName::Xdp));
    ensure!(
        are_hidden,
        "router.port: a router without a kernel has `tap` ports, which it makes, or `xdp` ports: the kernel sees the frames \
         of packet sockets too, and would answer them"
    );
    for (name, kind) in config.router.interfaces.iter().zip(kinds) {
        let has_mac = config.interface.get(name).is_some_and(|interface| interface.mac.is_some());
        let fits = kind == PortName::Tap || !has_mac;
        ensure!(fits, "interface.{name}.mac: the card has one; leave it out");
    }
    ensure!(
        config.punt == PuntSection::default(),
        "punt: that limits what a kernel gets; without a kernel there are [icmp] and [neighbors]"
    );
    if let Some(key) = first_kernel_key(config) {
        let text = format!("{key}: without a kernel it has no effect; leave it out");
        return Err(ConfigError::Value(text));
    }
    standalone::plan(config)?;
    Ok(())
}

/// A key that is only for a router beside a kernel, and is set.
fn first_kernel_key(config: &RouterConfig) -> Option<&'static str> {
    let RouterSection { wait, bypass_filters, netlink_buffer, .. } = &config.router;
    let kernel_flows = config.filter.as_ref().and_then(|filter| filter.kernel_flows);
    let settings = [
        ("router.wait", *wait),
        ("router.bypass-filters", *bypass_filters),
        ("router.netlink-buffer", *netlink_buffer != sections::netlink_buffer()),
        ("filter.kernel-flows", kernel_flows.is_some()),
    ];
    settings.into_iter().find_map(|(key, is_set)| is_set.then_some(key))
}
