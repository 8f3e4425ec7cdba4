//! Timeouts and limits of the whole rule set.

use crate::pf::config::{Optimization, PfConfig, PfLimit, PfOption, PfSetting};
use crate::pf::state_options::StateTimeout;
use crate::ruleset::RuleSetParts;
use crate::state::{Timeouts, WorkerLimits};

pub fn limits(config: &PfConfig) -> WorkerLimits {
    let mut limits = WorkerLimits::default();
    for option in options(config) {
        match option {
            PfOption::Limit(PfLimit::States, most) => limits.states = *most,
            PfOption::Limit(PfLimit::SourceNodes, most) => limits.sources = *most,
            PfOption::Limit(PfLimit::Fragments, most) => limits.fragments = *most,
            _ => {}
        }
    }
    limits
}

fn options(config: &PfConfig) -> impl Iterator<Item = &PfOption> {
    config.settings.iter().filter_map(|setting| match setting {
        PfSetting::Option { option, .. } => Some(option),
        _ => None,
    })
}

/// Sets the timeouts of all rules, and from how many states on they shrink: 60 % of the limit, unless set.
pub fn set(config: &PfConfig, limits: &WorkerLimits, parts: &mut RuleSetParts) {
    let share = |percent: u64| (u64::from(limits.states) * percent / 100) as u32;
    parts.adaptive = (share(60), share(120));
    for option in options(config) {
        match option {
            PfOption::Optimization(optimization) => {
                parts.timeouts[0] = with(&parts.timeouts[0], hints(*optimization));
            }
            PfOption::Timeout(StateTimeout::AdaptiveStart, states) => parts.adaptive.0 = *states,
            PfOption::Timeout(StateTimeout::AdaptiveEnd, states) => parts.adaptive.1 = *states,
            PfOption::Timeout(timeout, seconds) => {
                parts.timeouts[0] = with(&parts.timeouts[0], [(*timeout, *seconds)]);
            }
            _ => {}
        }
    }
}

/// The timeouts of `set optimization` (pf.conf(5)).
fn hints(optimization: Optimization) -> impl Iterator<Item = (StateTimeout, u32)> {
    use StateTimeout::{TcpClosed, TcpClosing, TcpEstablished, TcpFinWait, TcpFirst, TcpOpening};
    const HOUR: u32 = 3600;
    let seconds = match optimization {
        Optimization::Normal => [120, 30, 24 * HOUR, 900, 45, 90],
        Optimization::HighLatency | Optimization::Satellite => [180, 35, 24 * HOUR, 905, 50, 95],
        Optimization::Aggressive => [30, 5, 5 * HOUR, 60, 30, 30],
        Optimization::Conservative => [HOUR, 900, 5 * 24 * HOUR, HOUR, 600, 180],
    };
    [TcpFirst, TcpOpening, TcpEstablished, TcpClosing, TcpFinWait, TcpClosed].into_iter().zip(seconds)
}

/// Timeouts, some of them with other seconds.
pub fn with(timeouts: &Timeouts, changes: impl IntoIterator<Item = (StateTimeout, u32)>) -> Timeouts {
    let mut changed = timeouts.clone();
    for (timeout, seconds) in changes {
        if let Some(place) = place(&mut changed, timeout) {
            *place = seconds.saturating_mul(1000);
        }
    }
    changed
}

/// Where a timeout is kept; `None`: it is none of a state.
fn place(timeouts: &mut Timeouts, timeout: StateTimeout) -> Option<&mut u32> {
    Some(match timeout {
        StateTimeout::TcpFirst => &mut timeouts.tcp_first,
        StateTimeout::TcpOpening => &mut timeouts.tcp_opening,
        StateTimeout::TcpEstablished => &mut timeouts.tcp_established,
        StateTimeout::TcpClosing => &mut timeouts.tcp_closing,
        StateTimeout::TcpFinWait => &mut timeouts.tcp_finwait,
        StateTimeout::TcpClosed => &mut timeouts.tcp_closed,
        StateTimeout::UdpFirst => &mut timeouts.udp_first,
        StateTimeout::UdpSingle => &mut timeouts.udp_single,
        StateTimeout::UdpMultiple => &mut timeouts.udp_multiple,
        StateTimeout::IcmpFirst => &mut timeouts.icmp_first,
        StateTimeout::IcmpError => &mut timeouts.icmp_error,
        StateTimeout::OtherFirst => &mut timeouts.other_first,
        StateTimeout::OtherSingle => &mut timeouts.other_single,
        StateTimeout::OtherMultiple => &mut timeouts.other_multiple,
        StateTimeout::SourceTrack => &mut timeouts.source,
        _ => return None,
    })
}
