//! Packets that are sent and received with a stamp in each, on the machine of an agent.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fullview_plane::port::timed::TimedCapture;
use fullview_table::Family;

use super::offers::{OfferError, offer_marked};
use super::protocol::{OfferRequest, TracedLoad, Traffic};
use crate::rates::{PacketTimes, RatesError, open_capture, read_stamps};

/// What arrives at two interfaces.
pub struct StampCaptures {
    captures: [TimedCapture; 2],
    family: Family,
}

impl StampCaptures {
    pub fn open([one, other]: &[String; 2], family: Family) -> Result<StampCaptures, RatesError> {
        Ok(StampCaptures { captures: [open_capture(one, family)?, open_capture(other, family)?], family })
    }

    /// The stamps of both.
    pub fn read(mut self) -> Result<[Vec<u64>; 2], RatesError> {
        let ([one, other], family) = (&mut self.captures, self.family);
        let read = |capture| {
            let stamps = read_stamps(capture, family)?;
            Ok::<_, RatesError>(stamps.into_iter().map(nanoseconds).collect())
        };
        Ok([read(one)?, read(other)?])
    }
}

/// Offers a load.
pub fn trace(request: &OfferRequest, traffic: &Traffic, lost: &AtomicBool) -> Result<TracedLoad, OfferError> {
    let mut times = [PacketTimes::new(request.hosts.family())];
    let offered = offer_marked(std::slice::from_ref(request), traffic, &mut times, lost)?;
    let [times] = times;
    let stamps = times.sent(offered)?.into_iter().map(nanoseconds).collect();
    Ok(TracedLoad { offered, stamps })
}

/// The time of day.
pub fn now() -> u64 {
    nanoseconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
