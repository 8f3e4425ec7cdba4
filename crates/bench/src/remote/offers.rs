//! Loads that an agent offers, each by a thread of its own, which alone is tied to a core.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use super::protocol::{OfferRequest, Traffic};
use crate::rates::{
    Offered, PacketMark, RatesError, TimedLoad, TrafficAddresses, Unmarked, keep_real_time, send_marked,
};
use fullview_plane::wire::ethernet::MacParseError;

/// Why a load is not offered.
#[derive(Debug, thiserror::Error)]
pub enum OfferError {
    #[error("an Ethernet address: {0}")]
    Mac(#[from] MacParseError),
    #[error("{0}")]
    Rates(#[from] RatesError),
}

/// Offers these loads at once, until the connection is lost.
pub fn offer(requests: &[OfferRequest], traffic: &Traffic, lost: &AtomicBool) -> Result<Offered, OfferError> {
    let mut marks: Vec<Unmarked> = requests.iter().map(|_| Unmarked).collect();
    offer_marked(requests, traffic, &mut marks, lost)
}

/// The same with marks in the packets of each.
pub fn offer_marked<M: PacketMark + Send>(
    requests: &[OfferRequest],
    traffic: &Traffic,
    marks: &mut [M],
    lost: &AtomicBool,
) -> Result<Offered, OfferError> {
    let sent = thread::scope(|scope| {
        let loads = requests.iter().zip(marks);
        let offer = |(request, mark)| scope.spawn(move || offer_one(request, traffic, mark, lost));
        let threads: Vec<_> = loads.map(offer).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect::<Result<Vec<Offered>, OfferError>>()
    })?;
    let sum = |of: fn(&Offered) -> u64| sent.iter().map(of).sum();
    Ok(Offered { planned: sum(|one| one.planned), sent: sum(|one| one.sent) })
}

fn offer_one(
    request: &OfferRequest,
    traffic: &Traffic,
    mark: &mut impl PacketMark,
    lost: &AtomicBool,
) -> Result<Offered, OfferError> {
    let [from, to] = &request.macs;
    let addresses = TrafficAddresses { from: from.parse()?, to: to.parse()?, hosts: request.hosts };
    let duration = Duration::from_nanos(request.nanoseconds);
    keep_real_time(request.core)?;
    let Traffic { size, destinations } = traffic;
    let load = TimedLoad { load: request.load, size: *size, destinations, duration, stop: lost };
    Ok(send_marked(&request.interface, &addresses, load, mark)?)
}
