//! `[export]`: sends samples of packets and counts of interfaces to collectors, from a thread of its own.

mod collector;
mod fate;
mod ipfix;
mod port;
mod sflow;

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fullview_plane::sample::PacketSample;

use super::error::OperationsError;
use super::inspect;
use crate::daemon::{QueryHandle, WatchHub};
use crate::log;
use crate::options::ExportOptions;
use ipfix::IpfixExporter;
use port::SampledPorts;
use sflow::SflowExporter;

/// How often samples are fetched from the workers.
const TICK: Duration = Duration::from_millis(20);

/// A running export. It ends when this is dropped, after it has sent all samples.
pub struct FlowExport {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FlowExport {
    /// `ports` are the names of the interfaces, by port.
    pub fn start(
        options: ExportOptions,
        ports: &[String],
        queries: &QueryHandle,
        hub: &Arc<WatchHub>,
    ) -> Result<FlowExport, OperationsError> {
        log_collectors(&options);
        let (end, ended) = sync_channel(0);
        let (queries, hub, interval) = (queries.clone(), Arc::clone(hub), options.counters);
        let mut exporter = Exporter::new(&options, ports);
        let thread = Builder::new().name("export".into()).spawn(move || {
            let (mut goes_on, mut next_counters) = (true, Instant::now());
            while goes_on {
                goes_on = ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout);
                // The counts come first: they bring the templates without which a new collector cannot read samples.
                if goes_on && Instant::now() >= next_counters {
                    next_counters = Instant::now() + interval;
                    exporter.add_counts(&queries);
                }
                exporter.add_samples(&hub.take_samples());
                exporter.flush();
            }
        });
        let thread = thread.map_err(OperationsError::Thread)?;
        Ok(FlowExport { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for FlowExport {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn log_collectors(options: &ExportOptions) {
    let collectors = [("sFlow", options.sflow), ("IPFIX", options.ipfix)];
    for (protocol, address) in collectors.into_iter().filter_map(|(name, address)| Some((name, address?))) {
        log::line(&format!("export: {protocol} to {address}, one packet in {}", options.sample));
    }
}

/// What is exported, and to which collectors.
struct Exporter {
    ports: SampledPorts,
    sflow: Option<SflowExporter>,
    ipfix: Option<IpfixExporter>,
}

impl Exporter {
    fn new(options: &ExportOptions, ports: &[String]) -> Exporter {
        let sflow = options.sflow.map(|address| SflowExporter::new(address, options, ports.len()));
        let ipfix = options.ipfix.map(|address| IpfixExporter::new(address, options.sample));
        Exporter { ports: SampledPorts::new(ports), sflow, ipfix }
    }

    fn add_samples(&mut self, samples: &[PacketSample]) {
        if !samples.is_empty() {
            self.ports.find_indices_again();
        }
        for sample in samples {
            self.ports.count(sample);
            self.sflow.iter_mut().for_each(|sflow| sflow.add_sample(&self.ports, sample));
            self.ipfix.iter_mut().for_each(|ipfix| ipfix.add_sample(&self.ports, sample));
        }
    }

    fn add_counts(&mut self, queries: &QueryHandle) {
        self.ports.find_indices();
        self.ipfix.iter_mut().for_each(|ipfix| ipfix.add_counts(&self.ports));
        let Some(sflow) = &mut self.sflow else { return };
        // A router that is busy or ends does not answer: the counters go with the next ones.
        let Ok(Ok(interfaces)) = queries.ask(|state| inspect::interfaces(state)) else { return };
        sflow.add_counters(&self.ports, &interfaces);
    }

    fn flush(&mut self) {
        self.sflow.iter_mut().for_each(SflowExporter::flush);
        self.ipfix.iter_mut().for_each(IpfixExporter::flush);
    }
}
