//! One trial: what was offered, and what came out.

use serde::{Deserialize, Serialize};

use super::error::RatesError;

/// The share of its schedule that a generator may miss in a trial that counts.
pub const MOST_BEHIND: f64 = 0.005;

/// What the generator did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    pub planned: u64,
    /// Packets given to the link, whether or not the device had room for them; without those that the sender's own card
    /// dropped.
    pub sent: u64,
}

/// What one trial counted.
#[derive(Clone, Copy, Debug)]
pub struct RateTrial {
    pub offered: Offered,
    pub received: u64,
}

impl Offered {
    /// The share of the schedule that was not sent.
    pub fn behind(self) -> f64 {
        1.0 - self.sent as f64 / self.planned.max(1) as f64
    }
}

impl RateTrial {
    /// Refuses a trial in which more came out than was sent.
    pub fn new(offered: Offered, received: u64) -> Result<RateTrial, RatesError> {
        if received > offered.sent {
            return Err(RatesError::Foreign { sent: offered.sent, received });
        }
        Ok(RateTrial { offered, received })
    }

    /// Whether the generator kept its schedule.
    pub fn counts(self) -> bool {
        self.offered.behind() <= MOST_BEHIND
    }

    /// The share of the sent packets that did not come out.
    pub fn loss_ratio(self) -> f64 {
        1.0 - self.received as f64 / self.offered.sent.max(1) as f64
    }
}
