//! iperf3's reports, interval by interval.

use std::time::Duration;

use serde::Deserialize;

use super::error::VethError;
use super::load::ClientTurn;
use crate::settings::ClientName;

/// What iperf3 does in the first part of a turn does not count: connections open, and TCP finds its rate.
pub const SETTLE: Duration = Duration::from_millis(200);

/// The report of a client, which contains that of its server.
#[derive(Deserialize)]
pub struct Report {
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<Interval>,
    #[serde(default)]
    server_output_json: Option<Box<Report>>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

/// The sum over all connections.
#[derive(Deserialize)]
struct Sum {
    start: f64,
    seconds: f64,
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    lost_packets: i64,
}

impl Report {
    /// Reads what the client printed.
    pub fn read(text: &[u8]) -> Result<Report, VethError> {
        let report: Report = serde_json::from_slice(text).map_err(VethError::Output)?;
        match report.error {
            Some(said) => Err(VethError::Failed { program: "iperf3", said }),
            None => Ok(report),
        }
    }

    /// What the receiving end counted, and what the sending end sent, after `lead_in` and until the end.
    pub fn turn(&self, client: ClientName, lead_in: Duration) -> Result<ClientTurn, VethError> {
        let server = self.server_output_json.as_deref().unwrap_or(self);
        let (sender, receiver) = if client == ClientName::TcpBack { (server, self) } else { (self, server) };
        let received = receiver.after(lead_in);
        let seconds: f64 = received.iter().map(|sum| sum.seconds).sum();
        if seconds == 0.0 {
            return Err(VethError::NoIntervals { after: lead_in.as_secs_f64() });
        }
        let counted = match client {
            ClientName::Udp => received.iter().map(|sum| sum.received()).sum(),
            _ => kilobits(&received),
        };
        let offered: u64 = match client {
            ClientName::Udp => sender.after(lead_in).iter().map(|sum| sum.packets).sum(),
            _ => counted,
        };
        // The two ends' clocks began at different moments.
        Ok(ClientTurn { counted, offered: offered.max(counted), time: Duration::from_secs_f64(seconds) })
    }

    fn after(&self, lead_in: Duration) -> Vec<&Sum> {
        let from = lead_in.as_secs_f64();
        // The intervals begin a few milliseconds late.
        self.intervals.iter().map(|interval| &interval.sum).filter(|sum| sum.start >= from).collect()
    }
}

impl Sum {
    /// Packets that arrived: iperf3 counts the lost ones among its packets, and takes late ones off again.
    fn received(&self) -> u64 {
        let arrived = i64::try_from(self.packets).unwrap_or(i64::MAX) - self.lost_packets;
        u64::try_from(arrived).unwrap_or(0)
    }
}

fn kilobits(sums: &[&Sum]) -> u64 {
    sums.iter().map(|sum| sum.bytes).sum::<u64>() * 8 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: &str = r#"{"intervals": [
        {"sum": {"start": 0.0, "seconds": 0.1, "bytes": 64000, "packets": 1000}},
        {"sum": {"start": 0.2, "seconds": 0.1, "bytes": 128000, "packets": 2000}}],
      "server_output_json": {"intervals": [
        {"sum": {"start": 0.0, "seconds": 0.1, "bytes": 6400, "packets": 900, "lost_packets": 800}},
        {"sum": {"start": 0.201, "seconds": 0.1, "bytes": 96000, "packets": 1900, "lost_packets": 400}}]}}"#;

    fn turn(text: &str, client: ClientName) -> Result<ClientTurn, VethError> {
        Report::read(text.as_bytes())?.turn(client, SETTLE)
    }

    #[test]
    fn what_arrived_after_the_lead_in_counts() {
        let time = Duration::from_millis(100);
        assert_eq!(turn(UDP, ClientName::Udp).unwrap(), ClientTurn { counted: 1500, offered: 2000, time });
        let tcp = turn(UDP, ClientName::Tcp).unwrap();
        assert_eq!((tcp.counted, tcp.offered), (768, 768), "kilobits at the server");
        assert_eq!(turn(UDP, ClientName::TcpBack).unwrap().counted, 1024, "kilobits at the client");
    }

    #[test]
    fn a_failure_is_told_with_its_words() {
        let error = turn(r#"{"error": "unable to connect"}"#, ClientName::Tcp).unwrap_err();
        assert!(error.to_string().contains("unable to connect"), "{error}");
        let error = turn(r#"{"intervals": []}"#, ClientName::Tcp).unwrap_err();
        assert!(error.to_string().contains("no interval"), "{error}");
        assert!(turn("iperf3: usage", ClientName::Tcp).unwrap_err().to_string().contains("3.9"));
    }
}
