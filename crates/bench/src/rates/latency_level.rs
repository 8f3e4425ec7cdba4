//! The loads at which latency is measured.

use serde::{Deserialize, Serialize};

/// A load at which latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LatencyLevel {
    #[serde(rename = "pdr-10")]
    Pdr10,
    #[serde(rename = "pdr-50")]
    Pdr50,
    #[serde(rename = "pdr-90")]
    Pdr90,
    /// The largest load.
    #[serde(rename = "overload")]
    Overload,
}

impl LatencyLevel {
    pub const ALL: [LatencyLevel; 4] =
        [LatencyLevel::Pdr10, LatencyLevel::Pdr50, LatencyLevel::Pdr90, LatencyLevel::Overload];

    /// The part of the names of its files.
    pub fn word(self) -> &'static str {
        match self {
            LatencyLevel::Pdr10 => "pdr-10",
            LatencyLevel::Pdr50 => "pdr-50",
            LatencyLevel::Pdr90 => "pdr-90",
            LatencyLevel::Overload => "overload",
        }
    }

    /// Words for a reader.
    pub fn title(self) -> &'static str {
        match self {
            LatencyLevel::Pdr10 => "10 % of the PDR",
            LatencyLevel::Pdr50 => "50 % of the PDR",
            LatencyLevel::Pdr90 => "90 % of the PDR",
            LatencyLevel::Overload => "the largest load",
        }
    }

    fn share(self) -> Option<f64> {
        match self {
            LatencyLevel::Pdr10 => Some(0.1),
            LatencyLevel::Pdr50 => Some(0.5),
            LatencyLevel::Pdr90 => Some(0.9),
            LatencyLevel::Overload => None,
        }
    }
}

/// The loads of a device, without those that depend on a PDR that is missing or 0.
pub fn loads(pdr: Option<f64>, largest: f64) -> Vec<(LatencyLevel, f64)> {
    let of = |level: LatencyLevel| match level.share() {
        Some(share) => pdr.filter(|pdr| *pdr > 0.0).map(|pdr| (level, share * pdr)),
        None => Some((level, largest)),
    };
    LatencyLevel::ALL.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_follow_the_pdr_if_there_is_one() {
        let of = |pdr| loads(pdr, 2000.0).into_iter().map(|(_, load)| load).collect::<Vec<_>>();
        assert_eq!(of(Some(1000.0)), [100.0, 500.0, 900.0, 2000.0]);
        assert_eq!(of(Some(0.0)), [2000.0]);
        assert_eq!(of(None), [2000.0]);
    }

    #[test]
    fn a_level_is_named_alike_in_files_and_data() {
        for level in LatencyLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.word());
        }
    }
}
