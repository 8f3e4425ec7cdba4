//! Messages in which another station claims an address of the router. It keeps its addresses, but an operator has to know.

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::time::Duration;

use fullview_plane::wire::ethernet::Mac;
use rustc_hash::FxHashMap;

/// A conflict about one address is reported at most this often.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// The most reports that wait to be taken.
const PENDING: usize = 64;

/// A station that claims an address of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressConflict {
    /// The name of the interface that received the message.
    pub interface: String,
    pub ip: IpAddr,
    pub mac: Mac,
}

impl Display for AddressConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AddressConflict { interface, ip, mac } = self;
        write!(f, "{interface}: the station {mac} claims {ip}, an address of this router; change one of them")
    }
}

#[derive(Default)]
pub(super) struct ConflictLog {
    count: u64,
    /// When each address was last reported.
    reported: FxHashMap<IpAddr, Duration>,
    pending: Vec<AddressConflict>,
}

impl ConflictLog {
    /// Counts a message, and keeps a report if the last one about the address is old enough.
    pub fn record(&mut self, now: Duration, interface: &str, ip: IpAddr, mac: Mac) {
        self.count += 1;
        let last = self.reported.get(&ip);
        let is_due = last.is_none_or(|last| now.saturating_sub(*last) >= REPORT_INTERVAL);
        if is_due && self.pending.len() < PENDING {
            self.reported.retain(|_, last| now.saturating_sub(*last) < REPORT_INTERVAL);
            self.reported.insert(ip, now);
            self.pending.push(AddressConflict { interface: interface.to_owned(), ip, mac });
        }
    }

    /// All messages, whether or not they were reported.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the reports since the last call.
    pub fn take(&mut self) -> Vec<AddressConflict> {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_reported_once_an_interval() {
        let (mut log, mac) = (ConflictLog::default(), Mac([2, 0, 0, 0, 0, 9]));
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let at = Duration::from_secs;
        (0..60).for_each(|second| log.record(at(second), "left", one, mac));
        log.record(at(59), "left", other, mac);
        let reports = log.take();
        assert_eq!(reports.iter().map(|report| report.ip).collect::<Vec<_>>(), [one, other]);
        assert_eq!(
            reports[0].to_string(),
            "left: the station 02:00:00:00:00:09 claims 192.0.2.1, an address of this router; change one of them"
        );
        (60..62).for_each(|second| log.record(at(second), "left", one, mac));
        assert_eq!((log.take().len(), log.take().len(), log.count()), (1, 0, 63));
    }
}
