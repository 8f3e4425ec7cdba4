//! The loop between two calls of the bed: receive a burst, forward it, transmit it port by port.

use anyhow::{Result, ensure};
use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::forward::Forwarder;

use crate::ffi::Bed;

/// The number of packet buffers, the same for every router, unless `BED_BUFFERS` says another.
const BUFFERS: usize = 2048;

/// No packet waits for more than so many bursts: some 50 microseconds for bursts of 32, where l3fwd has 100.
const MOST_ROUNDS: usize = 64;

/// Forwards until the last command.
pub fn run(mut forwarder: Forwarder, ports: u16, burst_size: usize) -> Result<()> {
    ensure!((1..=BURST).contains(&burst_size), "bursts of {burst_size}: give 1 to {BURST}");
    let buffers = std::env::var("BED_BUFFERS").map_or(Ok(BUFFERS), |buffers| buffers.parse())?;
    let mut arena = Arena::new(buffers);
    let mut bed = Bed::open(arena.packets());
    let (mut burst, mut rejected) = (Burst::new(), Burst::new());
    let mut egress: Vec<Burst<'_>> = (0..=ports).map(|_| Burst::new()).collect();
    let mut rounds = 0_usize;
    while !bed.is_over() {
        bed.receive(&mut burst, burst_size);
        let (received, is_last) = (burst.len(), rounds % MOST_ROUNDS == 0);
        forwarder.process(&mut burst, egress.as_mut_slice(), &mut rejected);
        let most_kept = if received == 0 || is_last { 0 } else { kept(burst_size) };
        for (port, leaving) in (0..).zip(&mut egress) {
            if leaving.len() > most_kept {
                bed.transmit(port, leaving);
            }
        }
        // Without a route: to the bed such a packet left by port 0.
        bed.transmit(0, &mut rejected);
        rounds += 1;
    }
    Ok(())
}

/// How many packets of a port wait for more: fewer than a whole burst, as in l3fwd, and so few that the next burst has room behind
/// them.
fn kept(burst_size: usize) -> usize {
    (burst_size - 1).min(BURST - burst_size)
}
