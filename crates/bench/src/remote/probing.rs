//! A load with probes that an agent sends and receives: both ends have its clock.

use std::sync::atomic::AtomicBool;

use fullview_table::Family;

use super::offers::{OfferError, offer_marked};
use super::protocol::{OfferRequest, ProbeRequest, Traffic};
use crate::rates::{Delays, Offered, ProbeMarker, RatesError, open_capture, read_delays};

/// What was sent, and the delays of the probes.
pub struct ProbedPackets {
    pub offered: Offered,
    pub probes: u64,
    pub delays: Delays,
}

/// Offers the loads, and reads the probes when `settle` has waited for the last packet.
pub fn probe<E: From<OfferError> + From<RatesError>>(
    request: &ProbeRequest,
    traffic: &Traffic,
    lost: &AtomicBool,
    settle: impl FnOnce() -> Result<(), E>,
) -> Result<ProbedPackets, E> {
    let family = request.offers.first().map_or(Family::Inet, |offer| offer.hosts.family());
    let mut capture = open_capture(&request.receiving, family)?;
    let all: f64 = request.offers.iter().map(packets).sum();
    let seeds = request.seed..;
    let mut markers: Vec<ProbeMarker> =
        seeds.zip(&request.offers).map(|(seed, _)| ProbeMarker::new(family, all, seed)).collect();
    let offered = offer_marked(&request.offers, traffic, &mut markers, lost)?;
    settle()?;
    if markers.iter().any(|marker| marker.clocks().was_set()) {
        return Err(RatesError::ClockSet.into());
    }
    let probes = markers.iter().map(ProbeMarker::marked).sum();
    Ok(ProbedPackets { offered, probes, delays: read_delays(&mut capture, family)? })
}

fn packets(request: &OfferRequest) -> f64 {
    request.load * request.nanoseconds as f64 / 1e9
}
