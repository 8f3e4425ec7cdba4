//! The router's metrics in the text format of OpenMetrics, which Prometheus scrapes.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::registry::Registry;

use super::filter_metrics::filter_metrics;
use super::page::{Labels, Page, Sample};
use crate::control::filter::FilterStatus;
use crate::control::status;

/// The state that one scrape shows.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    pub interfaces: Vec<status::InterfaceStatus>,
    pub counters: status::CountersStatus,
    pub fibs: Vec<status::FibStatus>,
    pub neighbors: Vec<status::NeighborStatus>,
    /// The filter, if there is one, with the rules that have metrics of their own, or why its worker does not answer.
    pub filter: Option<Result<FilterStatus, String>>,
    /// How many events there have been since the router started.
    pub events: u64,
}

/// Writes the text of a scrape.
pub fn encode(scrape: Scrape) -> String {
    let mut registry = Registry::with_prefix("fullview");
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    // Writing to a string does not fail, and the encoder has no other reason to fail.
    let _ = encode_text(&mut text, &registry);
    text
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page::new(encoder);
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        page.gauges("build_info", "The version that runs; always 1", vec![(version, 1)])?;
        self.interfaces(&mut page)?;
        self.reasons(&mut page)?;
        self.workers(&mut page)?;
        self.fibs(&mut page)?;
        self.filter(&mut page)?;
        self.others(&mut page)
    }
}

impl Scrape {
    fn interfaces(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |figure: fn(&status::InterfaceStatus) -> u64| -> Vec<Sample<u64>> {
            let sample = |of: &status::InterfaceStatus| (vec![("interface", of.name.clone())], figure(of));
            self.interfaces.iter().map(sample).collect()
        };
        page.gauges("interface_up", "Whether the link is up: 1 or 0", each(|of| of.up.into()))?;
        page.gauges("interface_mtu_bytes", "The longest IP packet the link takes", each(|of| of.mtu.into()))?;
        let packets = "Packets that came in by the interface";
        page.counts("interface_receive_packets", packets, each(|of| of.received.packets))?;
        let bytes = "Bytes of frames that came in by the interface, without FCS";
        page.counts("interface_receive_bytes", bytes, each(|of| of.received.bytes))?;
        let packets = "Packets forwarded out by the interface";
        page.counts("interface_transmit_packets", packets, each(|of| of.sent.packets))?;
        let bytes = "Bytes of frames forwarded out by the interface, without FCS";
        page.counts("interface_transmit_bytes", bytes, each(|of| of.sent.bytes))?;
        let help = "Frames that came in while the ring of the interface's port was full";
        page.counts("interface_receive_overruns", help, each(|of| of.overruns))?;
        let help = "Packets that came in by the interface and were dropped, or that its port had no room to send, by reason";
        page.counts("interface_dropped_packets", help, self.interface_drops())
    }

    fn interface_drops(&self) -> Vec<Sample<u64>> {
        let drops = self.interfaces.iter().flat_map(|of| of.drops.iter().map(|drop| (of.name.clone(), drop)));
        let sample = |(interface, (reason, count)): (String, (&String, &u64))| {
            (vec![("interface", interface), ("reason", reason.clone())], *count)
        };
        drops.map(sample).collect()
    }

    fn reasons(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |counts: &BTreeMap<String, u64>| -> Vec<Sample<u64>> {
            counts.iter().map(|(reason, count)| (vec![("reason", reason.clone())], *count)).collect()
        };
        page.counts(
            "dropped_packets",
            "Packets that were not forwarded, by reason",
            each(&self.counters.drops),
        )?;
        let help = "Packets handed to the host, by reason";
        page.counts("punted_packets", help, each(&self.counters.punts))?;
        self.to_kernel(page)?;
        self.program(page)
    }

    fn to_kernel(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |count: fn(&status::PuntStatus) -> u64| -> Vec<Sample<u64>> {
            let counts = self.counters.to_kernel.iter();
            counts.map(|(reason, of)| (vec![("reason", reason.clone())], count(of))).collect()
        };
        let help = "Packets that the kernel got instead of being forwarded, by reason";
        page.counts("to_kernel_packets", help, each(|of| of.handed))?;
        let help = "Packets that the kernel did not get because there were more than the limit of the reason";
        page.counts("to_kernel_limited_packets", help, each(|of| of.limited))?;
        let help = "Packets that the kernel did not get because there was no room on the way to it";
        page.counts("to_kernel_lost_packets", help, each(|of| of.lost))
    }

    /// The count of all packets passed is left out: it is the sum of those passed for a reason, and not an outcome of its
    /// own.
    fn program(&self, page: &mut Page<'_>) -> fmt::Result {
        let outcomes = self.counters.program.iter().filter(|(outcome, _)| *outcome != "passed");
        let samples = outcomes.map(|(outcome, count)| (vec![("outcome", outcome.clone())], *count)).collect();
        let help = "Packets that a program in the kernel forwarded, or did not forward for this reason";
        page.counts("program_packets", help, samples)?;
        let labels = |interface: &status::InterfaceStatus, reason: &String| {
            vec![("interface", interface.name.clone()), ("reason", reason.clone())]
        };
        let each = |of: &status::InterfaceStatus| -> Vec<Sample<u64>> {
            of.program.iter().map(|(reason, count)| (labels(of, reason), *count)).collect()
        };
        let help = "Packets that came in by the interface and that a program in the kernel did not forward";
        page.counts("interface_program_packets", help, self.interfaces.iter().flat_map(each).collect())
    }

    fn workers(&self, page: &mut Page<'_>) -> fmt::Result {
        let each = |figure: fn(&status::WorkerStatus) -> f64| -> Vec<Sample<f64>> {
            let sample =
                |worker: &status::WorkerStatus| (vec![("worker", worker.name.clone())], figure(worker));
            self.counters.workers.iter().map(sample).collect()
        };
        let help = "Seconds that a worker was awake; the rate is the share of time it was busy";
        page.counters("worker_busy_seconds", help, each(|worker| worker.busy_seconds))?;
        page.counters("worker_seconds", "Seconds since a worker started", each(|worker| worker.seconds))
    }

    fn fibs(&self, page: &mut Page<'_>) -> fmt::Result {
        let labels =
            |fib: &status::FibStatus| vec![("family", fib.family.clone()), ("table", fib.table.to_string())];
        let each = |figure: fn(&status::FibStatus) -> u64| -> Vec<Sample<u64>> {
            self.fibs.iter().map(|fib| (labels(fib), figure(fib))).collect()
        };
        let served = |fib: &status::FibStatus| {
            let algorithm = fib.algorithm.clone()?;
            Some(([labels(fib), vec![("algorithm", algorithm)]].concat(), 1))
        };
        let algorithms = self.fibs.iter().filter_map(served).collect();
        page.gauges("fib_info", "The algorithm that serves a table; always 1", algorithms)?;
        page.gauges("fib_routes", "Routes in a table", each(|fib| fib.routes as u64))?;
        page.gauges("fib_bytes", "Bytes of memory that lookups may touch", each(|fib| fib.bytes as u64))?;
        let help = "The generation of the routes that the FIB was compiled from; grows with every change";
        page.gauges("fib_generation", help, each(|fib| fib.generation))?;
        page.gauges(
            "fib_synced",
            "Whether the FIB has all changes of the routes: 1 or 0",
            each(|fib| fib.synced.into()),
        )
    }

    /// The slow path: netlink of a router that mirrors the kernel, or the router's own host.
    fn slow_path(&self, page: &mut Page<'_>) -> fmt::Result {
        let netlink = |name: &str| -> Vec<Sample<u64>> {
            self.counters.netlink.get(name).map(|count| (Labels::new(), *count)).into_iter().collect()
        };
        page.counts("netlink_messages", "Messages of the kernel that were decoded", netlink("messages"))?;
        let help = "How often the kernel dropped messages, so that everything was read again";
        page.counts("netlink_resyncs", help, netlink("resyncs"))?;
        let host = self.counters.host.iter();
        let host = host.map(|(what, count)| (vec![("what", what.clone())], *count)).collect();
        page.counts("host", "What the router's own host did, in a router without a kernel", host)
    }

    fn filter(&self, page: &mut Page<'_>) -> fmt::Result {
        let Some(filter) = &self.filter else { return Ok(()) };
        let help =
            "Whether the workers of the filter answer: 1 or 0; only then there are metrics of the filter";
        page.gauges("filter_answers", help, vec![(Labels::new(), u64::from(filter.is_ok()))])?;
        filter.iter().try_for_each(|filter| filter_metrics(filter, page))
    }

    fn others(&self, page: &mut Page<'_>) -> fmt::Result {
        let mut states: BTreeMap<String, u64> = BTreeMap::from([("stale".into(), 0), ("usable".into(), 0)]);
        self.neighbors.iter().for_each(|neighbor| *states.entry(neighbor.state.clone()).or_default() += 1);
        let states = states.into_iter().map(|(state, count)| (vec![("state", state)], count)).collect();
        page.gauges("neighbors", "Neighbours that packets can be sent to, by state", states)?;
        self.slow_path(page)?;
        page.counts(
            "events",
            "Events since the router started; `fullview show events` lists the last",
            vec![(Labels::new(), self.events)],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_does_not_answer_leaves_out_its_own_metrics_only() {
        let page = |filter| encode(Scrape { filter, events: 7, ..Scrape::default() });
        let (without, silent) = (page(None), page(Some(Err("its worker does not run".into()))));
        assert!(!without.contains("filter_answers"), "{without}");
        assert!(silent.contains("fullview_filter_answers{} 0"), "{silent}");
        assert!(silent.contains("fullview_events_total{} 7"), "{silent}");
        assert!(!silent.contains("fullview_filter_states"), "{silent}");
    }
}
