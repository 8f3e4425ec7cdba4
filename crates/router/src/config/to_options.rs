//! Turns the sections of a configuration into options.

use std::num::NonZeroU32;
use std::time::Duration;

use fullview_plane::interface::SourceCheck;
use fullview_plane::port::xdp::{BusyPoll, XdpOptions};
use fullview_plane::verdict::LimitedReason;
use fullview_table::fib::framework;

use super::error::ConfigError;
use super::sections::{
    CaptureSection, ExportSection, FilterSection, FrameworkSection, InterfaceSection, PuntSection,
    RouterConfig, RouterSection, SourceCheckName, XdpSection, host_settings,
};
use super::standalone;
use crate::algorithm::{self, Names, RouterSettings};
use crate::control;
use crate::filter::{self, FilterOptions, FilterPlace};
use crate::mirror::InterfacePolicy;
use crate::options::{
    CaptureOptions, ExportOptions, LiveOptions, OperationsOptions, PortOptions, PuntRates, RouterOptions,
    StandaloneConfig,
};

pub fn lookup(router: &RouterSection) -> RouterSettings {
    let names = Names::Several(vec![router.algorithm.clone(), algorithm::AUTO.into()]);
    RouterSettings { algorithm: Some(names), modules: None, preferences: router.preferences.clone() }
}

pub fn operations_options(config: &RouterConfig) -> OperationsOptions {
    let named = || config.control.name.as_deref().map(control::default_path);
    OperationsOptions {
        control: config.control.socket.clone().or_else(named),
        metrics: config.metrics.listen.clone(),
        capture_drops: config.capture.as_ref().map(capture_options),
        export: config.export.as_ref().map(export_options),
    }
}

fn export_options(section: &ExportSection) -> ExportOptions {
    const SAMPLE: u32 = 1000;
    const COUNTERS_S: u32 = 30;
    ExportOptions {
        sflow: section.sflow,
        ipfix: section.ipfix,
        agent: section.agent,
        sample: section.sample.or(NonZeroU32::new(SAMPLE)).unwrap_or(NonZeroU32::MIN),
        counters: Duration::from_secs(section.counters_s.map_or(COUNTERS_S, NonZeroU32::get).into()),
    }
}

fn capture_options(section: &CaptureSection) -> CaptureOptions {
    CaptureOptions {
        file: section.drops.clone(),
        bytes: section.bytes.unwrap_or(CaptureOptions::BYTES),
        packets_per_second: section.packets_per_second.unwrap_or(CaptureOptions::PACKETS_PER_SECOND),
    }
}

pub fn port_options(config: &RouterConfig) -> PortOptions {
    let RouterSection { interfaces, port, cores, .. } = &config.router;
    let own = |name| config.interface.get(name).and_then(|interface| interface.port);
    let kinds = interfaces.iter().map(|name| own(name).or(*port).unwrap_or_default()).collect();
    let XdpSection { need_wakeup, busy_poll_us, busy_poll_budget: budget } = config.xdp;
    let busy_poll = busy_poll_us.map(|micros| BusyPoll { micros, budget });
    let xdp = XdpOptions { need_wakeup, busy_poll, ..XdpOptions::default() };
    PortOptions { kinds, xdp, cores: cores.clone() }
}

/// Reads the files that the configuration names, except the rules of the filter.
pub fn live_options(config: &RouterConfig) -> Result<LiveOptions, ConfigError> {
    let preferences = algorithm::preferences(&lookup(&config.router))?;
    let framework = framework::Settings { preferences, ..framework_settings(&config.framework) };
    let algorithm = Some(config.router.algorithm.clone()).filter(|name| name != algorithm::AUTO);
    let policies = config.interface.iter().map(|(name, interface)| (name.clone(), policy(interface)));
    let plan = (!config.router.kernel).then(|| standalone::whole_plan(config)).transpose()?;
    Ok(LiveOptions { algorithm, framework, policies: policies.collect(), plan })
}

/// The key of a setting that only threads have: the operator who makes it wants them to forward.
pub fn threads_only(config: &RouterConfig) -> Option<&'static str> {
    let RouterSection { port, workers, cores, algorithm, .. } = &config.router;
    let settings = [
        (
            "router.port",
            port.is_some() || config.interface.values().any(|interface| interface.port.is_some()),
        ),
        ("router.workers", *workers > 1),
        ("router.cores", !cores.is_empty()),
        ("router.algorithm", algorithm != algorithm::AUTO),
        ("filter", config.filter.is_some()),
    ];
    settings.into_iter().find_map(|(name, is_made)| is_made.then_some(name))
}

/// The rules that packets must pass, if there are any. Their file is not read.
pub fn filter_options(config: &RouterConfig) -> Option<FilterOptions> {
    let FilterSection { language, file, states, kernel_flows } = config.filter.as_ref()?;
    let place = if config.router.kernel { FilterPlace::BesideKernel } else { FilterPlace::Standalone };
    Some(FilterOptions {
        place,
        workers: config.router.workers,
        language: *language,
        file: file.clone(),
        states: states.map(NonZeroU32::get),
        kernel_flows: kernel_flows.unwrap_or(filter::KERNEL_FLOWS),
    })
}

/// Reads the files that the configuration names, except the rules of the filter.
pub fn router_options(config: &RouterConfig) -> Result<RouterOptions, ConfigError> {
    let LiveOptions { algorithm, framework, policies, plan } = live_options(config)?;
    let host = host_settings(config.icmp, config.neighbors);
    let macs = standalone::macs(config);
    let standalone = plan.map(|plan| StandaloneConfig { plan, macs, host });
    Ok(RouterOptions {
        interfaces: config.router.interfaces.clone(),
        engine: config.router.engine,
        threads_only: threads_only(config),
        algorithm,
        framework,
        netlink_buffer: config.router.netlink_buffer,
        workers: config.router.workers,
        bypass_filters: config.router.bypass_filters,
        wait: config.router.wait,
        ports: port_options(config),
        policies,
        punts: punt_rates(config.punt),
        filter: filter_options(config),
        standalone,
    })
}

fn punt_rates(section: PuntSection) -> PuntRates {
    let of = |reason: LimitedReason| match reason {
        LimitedReason::NoRoute => section.no_route,
        LimitedReason::TtlExpired => section.ttl_expired,
        LimitedReason::Discarded => section.discarded,
        LimitedReason::NoNeighbor => section.no_neighbor,
        LimitedReason::TooBig => section.too_big,
    };
    PuntRates(std::array::from_fn(|index| of(LimitedReason::ALL[index])))
}

fn framework_settings(section: &FrameworkSection) -> framework::Settings {
    let defaults = framework::Settings::default();
    framework::Settings {
        bucket_time: section.bucket_time_ms.map_or(defaults.bucket_time, Duration::from_millis),
        bucket_change_threshold_rate: section
            .bucket_change_threshold_rate
            .unwrap_or(defaults.bucket_change_threshold_rate),
        max_sync_delay: section.max_sync_delay_ms.map_or(defaults.max_sync_delay, Duration::from_millis),
        ..defaults
    }
}

fn policy(interface: &InterfaceSection) -> InterfacePolicy {
    let source_check = match interface.source_check {
        SourceCheckName::Off => SourceCheck::Off,
        SourceCheckName::Loose => SourceCheck::Loose,
        SourceCheckName::Strict => SourceCheck::Strict,
    };
    InterfacePolicy { source_check, redirects: interface.redirects }
}
