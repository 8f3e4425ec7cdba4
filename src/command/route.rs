//! `fullview forward` between interfaces of this host, until it is asked to end.

use std::collections::BTreeMap;

use anyhow::Context;

use crate::args::ForwardArgs;
use crate::args::operations::OperationsArgs;
use fullview_router::config::reload::{Reloader, block_hangup};
use fullview_router::config::{Capture, Config, Confine, Control, Framework, Metrics, Router, Xdp};
use fullview_router::daemon::alone::Told;
use fullview_router::daemon::claim::claim;
use fullview_router::daemon::{self, Counted, Operating, Options};
use fullview_router::error::BadInput;
use fullview_router::log;
use fullview_router::operations::Listening;
use fullview_router::privileges::confine;

pub fn run(args: &ForwardArgs) -> anyhow::Result<Counted> {
    let config = args.config.as_deref().map_or_else(|| Ok(typed(args)), Config::load)?;
    // Flags are said like a file, and refused like one.
    config.check().map_err(|error| BadInput(format!("{error:#}")))?;
    let options = options(&config)?;
    daemon::check(&options)?;
    let _claims = claim(&options.interfaces)?;
    let listening = Listening::open(&config.operations())?;
    // Before the first thread: signals and confinement hold for those that come.
    let reloader = args.config.clone().map(|path| Reloader::new(path, config.clone()));
    let hangup = block_hangup()?;
    confine(&config.confine)?;
    log::start().context("a thread that writes messages cannot be started")?;
    let stop = daemon::stop_on_signal()?;
    daemon::run(&options, Operating { listening, reloader, hangup }, &stop)
}

fn options(config: &Config) -> anyhow::Result<Options> {
    let live = config.live()?;
    let alone = live.plan.map(|plan| Told { plan, macs: config.macs(), settings: config.host() });
    Ok(Options {
        interfaces: config.router.interfaces.clone(),
        engine: config.router.engine,
        algorithm: live.algorithm,
        settings: live.settings,
        netlink_buffer: config.router.netlink_buffer,
        workers: config.router.workers,
        ports: config.ports(),
        policies: live.policies,
        alone,
    })
}

/// What the flags say, as a file would.
fn typed(args: &ForwardArgs) -> Config {
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
    let capture = |drops| Capture { drops, bytes: capture_limit, packets_per_second: capture_rate };
    Config {
        router: Router {
            kernel: true,
            interfaces: args.interfaces.clone(),
            engine: args.engine,
            port: args.port,
            workers: args.workers,
            cores: Vec::new(),
            algorithm: args.algorithm.clone(),
            preferences: args.preferences.clone(),
            netlink_buffer: args.netlink_buffer,
        },
        xdp: Xdp { need_wakeup: !args.no_need_wakeup, busy_poll_us: args.busy_poll, ..Xdp::default() },
        framework: Framework::default(),
        interface: BTreeMap::new(),
        route: Vec::new(),
        neighbor: Vec::new(),
        feed: None,
        icmp: Default::default(),
        neighbors: Default::default(),
        control: Control { name, socket: control },
        metrics: Metrics { listen: metrics },
        capture: capture_drops.map(capture),
        confine: Confine { user, seccomp: !no_seccomp },
    }
}
