//! Loads that lines of the inventory send with pkt-gen, on nodes where this program does not run.

use std::thread;
use std::time::{Duration, Instant};

use super::bed::RemoteBed;
use super::command_run::{CommandRun, FinishedRun};
use super::error::RemoteError;
use super::pkt_gen::PktGenSum;
use super::traffic_line::fill;
use super::wiring::PortPlace;
use crate::rates::{Offered, lengths};
use crate::traffic::frame::FrameSize;

/// What a run may take beyond the time of its load: pkt-gen waits for its link first.
const BEYOND: Duration = Duration::from_secs(60);
/// The first run without a limit; how many follow from its rate takes long enough.
const FIRST: u64 = 100_000;
const ATTEMPTS: u32 = 5;
/// pkt-gen does not wait after its last burst, which has a 300th of a second of its rate.
const LAST_BURST: f64 = 0.01;
/// The share by which a run may be faster than it was asked.
const FASTER: f64 = 0.005;
/// What the clocks of hosts may differ by, in seconds, with the error of how that is found.
const CLOCKS: f64 = 0.05;

/// The lines that send, if the inventory has some.
pub struct LoadCommands<'b> {
    bed: &'b RemoteBed,
    size: FrameSize,
}

impl<'b> LoadCommands<'b> {
    pub fn of(bed: &'b RemoteBed, size: FrameSize) -> Option<LoadCommands<'b>> {
        bed.wiring.has_send_line().then_some(LoadCommands { bed, size })
    }

    /// Sends a load, in equal parts from every interface that sends. The schedule is as long as the runs took together, so that one
    /// that was late, or began after the others, is behind it.
    pub fn offer(&self, load: f64, duration: Duration) -> Result<Offered, RemoteError> {
        let part = load / self.bed.wiring.sending.len() as f64;
        let packets = ((part * duration.as_secs_f64()).round() as u64).max(1);
        let runs = self.run_all(part.round() as u64, packets, duration)?;
        let ports = self.bed.wiring.sending.iter();
        ports.zip(&runs).try_for_each(|(port, run)| self.check_rate(*port, &run.sum, part))?;
        let late = (load * self.apart(&runs)?) as u64;
        let planned = |sum: &PktGenSum| packets.max(sum.packets).max((part * sum.seconds) as u64);
        let sums = || runs.iter().map(|run| &run.sum);
        Ok(Offered {
            planned: late + sums().map(planned).sum::<u64>(),
            sent: sums().map(|sum| sum.packets).sum(),
        })
    }

    /// The rate of all without a limit, in packets per second.
    pub fn fastest(&self, duration: Duration) -> Result<f64, RemoteError> {
        let (mut packets, mut rates) = (FIRST, 0.0);
        for _ in 0..ATTEMPTS {
            let sums: Vec<PktGenSum> =
                self.run_all(0, packets, duration)?.into_iter().map(|run| run.sum).collect();
            let rate = |sum: &PktGenSum| sum.packets as f64 / sum.seconds;
            let fastest = sums.iter().map(rate).fold(0.0, f64::max);
            rates = sums.iter().map(rate).sum();
            if sums.iter().all(|sum| sum.seconds >= duration.as_secs_f64() / 2.0) {
                break;
            }
            packets = (fastest * duration.as_secs_f64()).ceil() as u64;
        }
        Ok(rates)
    }

    /// The time between the first and the last beginning, in seconds: about none, or a whole second if one began between them.
    fn apart(&self, runs: &[FinishedRun]) -> Result<f64, RemoteError> {
        if runs.len() == 1 {
            return Ok(0.0);
        }
        let silent = self.senders().zip(runs).find(|(_, run)| run.began.is_none());
        if let Some((node, _)) = silent {
            return Err(RemoteError::NoBeginning { node });
        }
        let began = || runs.iter().filter_map(|run| run.began);
        let apart = began().fold(f64::NEG_INFINITY, f64::max) - began().fold(f64::INFINITY, f64::min);
        if (apart - apart.round()).abs() > CLOCKS {
            let nodes = self.senders().collect::<Vec<_>>().join(", ");
            return Err(RemoteError::Apart { nodes, apart: apart * 1000.0 });
        }
        Ok(apart)
    }

    fn senders(&self) -> impl Iterator<Item = String> {
        self.bed.wiring.sending.iter().map(|port| self.bed.wiring.node(*port).name.clone())
    }

    fn run_all(&self, pps: u64, packets: u64, takes: Duration) -> Result<Vec<FinishedRun>, RemoteError> {
        let (ports, origin) = (self.bed.wiring.sending.iter(), Instant::now());
        let runs = ports
            .map(|port| self.command(*port, origin, [pps, packets], takes))
            .collect::<Result<Vec<_>, _>>()?;
        thread::scope(|scope| {
            let threads: Vec<_> = runs.into_iter().map(|run| scope.spawn(move || run.run())).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }

    fn command(
        &self,
        port: PortPlace,
        origin: Instant,
        [pps, packets]: [u64; 2],
        takes: Duration,
    ) -> Result<CommandRun<'b>, RemoteError> {
        let (bed, wiring) = (self.bed, &self.bed.wiring);
        let address = |port| wiring.interface(port).address.address.to_string();
        let peer = wiring.peer(port).unwrap_or(port);
        let bytes = lengths(self.size, wiring.family())[0];
        let values = [
            ("interface", wiring.interface(port).name.clone()),
            ("pps", pps.to_string()),
            ("packets", packets.to_string()),
            ("bytes", bytes.to_string()),
            ("source", address(port)),
            ("destination", address(wiring.receiving)),
            ("source-mac", bed.mac(port)?),
            ("next-hop-mac", bed.mac(peer)?),
        ];
        let line = fill(wiring.node(port).send.as_deref().unwrap_or_default(), &values);
        let (host, seconds) = (&bed.nodes[port.node].host, (takes + BEYOND).as_secs());
        Ok(CommandRun { host, line, seconds, origin })
    }

    /// Refuses a run that was faster than it was asked.
    fn check_rate(&self, port: PortPlace, sum: &PktGenSum, load: f64) -> Result<(), RemoteError> {
        if sum.seconds >= (1.0 - FASTER) * sum.packets as f64 / load - LAST_BURST {
            return Ok(());
        }
        let node = self.bed.wiring.node(port);
        let (command, rate) = (node.send.clone().unwrap_or_default(), sum.packets as f64 / sum.seconds);
        Err(RemoteError::Ahead { node: node.name.clone(), command, rate, load })
    }
}
