//! A worker between memif ports. It ends when the other ends are gone.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
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

/// Connects the ports and forwards until the server ends.
pub fn run(forwarder: Forwarder, ports: u16, socket: &str, core: Option<&String>) -> Result<()> {
    if let Some(core) = core {
        core_affinity::set_for_current(core_affinity::CoreId { id: core.parse()? });
    }
    let connect = |number: u16| {
        Ok(Some(MemifPort::connect(number, &MemifAddress { socket, id: number.into(), secret: "" })?))
    };
    let opened = (0..=ports).map(connect).collect::<Result<Vec<_>>>()?;
    let mut arena = Arena::new(SLOTS * opened.len());
    Worker::new(forwarder, opened, arena.packets(), SendBack, Yield).run(&AtomicBool::new(false))?;
    Ok(())
}
