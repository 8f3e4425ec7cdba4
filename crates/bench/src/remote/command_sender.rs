//! Loads that a line of the inventory sends with pkt-gen, on a node where this program does not run.

use std::time::Duration;

use super::bed::RemoteBed;
use super::error::RemoteError;
use super::pkt_gen::PktGenSum;
use super::timed_command::TimedCommand;
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

/// The line that sends, if the inventory has one.
pub struct LoadCommand<'b> {
    bed: &'b RemoteBed,
    port: PortPlace,
    line: &'b str,
    size: FrameSize,
}

impl<'b> LoadCommand<'b> {
    pub fn of(bed: &'b RemoteBed, size: FrameSize) -> Option<LoadCommand<'b>> {
        let &port = bed.wiring.sending.first()?;
        let line = bed.wiring.node(port).send.as_deref()?;
        Some(LoadCommand { bed, port, line, size })
    }

    /// Sends a load. The schedule is as long as the run took, so that a run that was late is behind it.
    pub fn offer(&self, load: f64, duration: Duration) -> Result<Offered, RemoteError> {
        let packets = ((load * duration.as_secs_f64()).round() as u64).max(1);
        let sum = self.run(load.round() as u64, packets, duration)?;
        if sum.seconds < (1.0 - FASTER) * sum.packets as f64 / load - LAST_BURST {
            let (node, rate) = (self.node().to_owned(), sum.packets as f64 / sum.seconds);
            return Err(RemoteError::Ahead { node, command: self.line.into(), rate, load });
        }
        let planned = packets.max(sum.packets).max((load * sum.seconds) as u64);
        Ok(Offered { planned, sent: sum.packets })
    }

    /// The rate without a limit, in packets per second.
    pub fn fastest(&self, duration: Duration) -> Result<f64, RemoteError> {
        let (mut packets, mut rate) = (FIRST, 0.0);
        for _ in 0..ATTEMPTS {
            let sum = self.run(0, packets, duration)?;
            rate = sum.packets as f64 / sum.seconds;
            if sum.seconds >= duration.as_secs_f64() / 2.0 {
                break;
            }
            packets = (rate * duration.as_secs_f64()).ceil() as u64;
        }
        Ok(rate)
    }

    fn run(&self, pps: u64, packets: u64, takes: Duration) -> Result<PktGenSum, RemoteError> {
        let (line, seconds) = (self.filled(pps, packets)?, (takes + BEYOND).as_secs());
        let end = TimedCommand::start(&self.bed.nodes[self.port.node].host, &line, seconds)?.wait()?;
        let sum = PktGenSum::of(&end.text).filter(|sum| sum.packets > 0 && sum.seconds > 0.0);
        let failure = end.failure().or_else(|| sum.is_none().then(|| end.without("what pkt-gen sent")));
        sum.filter(|_| failure.is_none()).ok_or_else(|| {
            let (node, failure) = (self.node().to_owned(), failure.unwrap_or_default());
            RemoteError::TrafficCommand { node, command: line, failure }
        })
    }

    fn filled(&self, pps: u64, packets: u64) -> Result<String, RemoteError> {
        let (bed, wiring) = (self.bed, &self.bed.wiring);
        let address = |port| wiring.interface(port).address.address.to_string();
        let peer = wiring.peer(self.port).unwrap_or(self.port);
        let bytes = lengths(self.size, wiring.family())[0];
        let values = [
            ("interface", wiring.interface(self.port).name.clone()),
            ("pps", pps.to_string()),
            ("packets", packets.to_string()),
            ("bytes", bytes.to_string()),
            ("source", address(self.port)),
            ("destination", address(wiring.receiving)),
            ("source-mac", bed.mac(self.port)?),
            ("next-hop-mac", bed.mac(peer)?),
        ];
        Ok(fill(self.line, &values))
    }

    fn node(&self) -> &str {
        &self.bed.wiring.node(self.port).name
    }
}
