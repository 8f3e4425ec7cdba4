//! A worker between memif ports. It ends when the other ends are gone.

use std::sync::atomic::AtomicBool;

use anyhow::{Result, ensure};
use fullview_plane::burst::{Arena, BURST};
use fullview_plane::forward::Forwarder;
use fullview_plane::port::memif::{MemifAddress, MemifPort};
use fullview_plane::worker::{Rejected, SlowPath, Worker, Yield};

/// Slots of packet memory for each port.
const SLOTS: usize = 2 * BURST;

/// Sends packets without a route back by port 0, as the bed wants them.
struct SendBack;

impl SlowPath for SendBack {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        let Rejected { packets, out, .. } = rejected;
        out[0].fill(std::iter::from_fn(|| packets.pop()));
    }
}

/// Connects the ports and forwards until the server ends. Beside port 0, where packets arrive, there are `ports`.
pub fn run(forwarder: Forwarder, ports: u16, burst: usize, socket: &str, core: Option<usize>) -> Result<()> {
    ensure!((1..=BURST).contains(&burst), "bursts of {burst}: give 1 to {BURST}");
    if let Some(id) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id });
    }
    let connect = |number: u16| {
        Ok(Some(MemifPort::connect(number, &MemifAddress { socket, id: number.into(), secret: "" })?))
    };
    let opened = (0..=ports).map(connect).collect::<Result<Vec<_>>>()?;
    let mut arena = Arena::new(SLOTS * opened.len());
    let mut worker = Worker::new(forwarder, opened, arena.packets(), SendBack, Yield);
    worker.receive_at_most(burst);
    worker.run(&AtomicBool::new(false))?;
    Ok(())
}
