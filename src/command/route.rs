//! `fullview forward` between interfaces of this host, until it is asked to end.

use std::collections::BTreeMap;

use fullview_router::config::sections::{
    CaptureSection, ConfineSection, ControlSection, FilterSection, FrameworkSection, MetricsSection,
    RouterSection, XdpSection,
};
use fullview_router::config::{self, RouterConfig};
use fullview_router::daemon::RouterCounts;
use fullview_router::launch;
use fullview_router::log::LogLevel;

use crate::args::ForwardArgs;
use crate::args::operations::OperationsArgs;

pub fn run(args: &ForwardArgs) -> anyhow::Result<RouterCounts> {
    let config = args.config.as_deref().map_or_else(|| Ok(from_flags(args)), config::load)?;
    Ok(launch::run(&config, args.config.clone(), args.takeover)?)
}

/// The configuration that says the same as the flags. It is checked, and refused, as a file is.
fn from_flags(args: &ForwardArgs) -> RouterConfig {
    let OperationsArgs {
        name,
        control,
        metrics,
        capture_drops,
        capture_limit,
        capture_rate,
        user,
        no_seccomp,
    } = args.operations.clone();
    let filter =
        |file| FilterSection { language: args.filter_language, file, states: None, kernel_flows: None };
    let capture = |drops| CaptureSection { drops, bytes: capture_limit, packets_per_second: capture_rate };
    RouterConfig {
        router: RouterSection {
            kernel: true,
            interfaces: args.interfaces.clone(),
            engine: args.engine,
            port: args.port,
            workers: args.workers,
            cores: Vec::new(),
            algorithm: args.algorithm.clone(),
            preferences: args.preferences.clone(),
            netlink_buffer: args.netlink_buffer,
            bypass_filters: args.bypass_filters,
            wait: args.wait,
            log_level: if args.quiet { LogLevel::Warning } else { args.log_level },
        },
        xdp: XdpSection {
            need_wakeup: !args.no_need_wakeup,
            busy_poll_us: args.busy_poll,
            ..XdpSection::default()
        },
        framework: FrameworkSection::default(),
        interface: BTreeMap::new(),
        route: Vec::new(),
        neighbor: Vec::new(),
        feed: None,
        filter: args.filter.clone().map(filter),
        icmp: Default::default(),
        neighbors: Default::default(),
        punt: Default::default(),
        control: ControlSection { name, socket: control },
        metrics: MetricsSection { listen: metrics },
        capture: capture_drops.map(capture),
        export: None,
        confine: ConfineSection { user, seccomp: !no_seccomp },
    }
}
