//! What the kernel itself forwards.

use std::fs;

use super::error::RatesError;
use crate::testbed::Namespace;

/// IPv4 packets that the kernel of a namespace has forwarded.
pub fn forwarded(namespace: &Namespace) -> Result<u64, RatesError> {
    let text =
        namespace.within(|| Ok(fs::read_to_string("/proc/thread-self/net/snmp").unwrap_or_default()))?;
    forwarded_datagrams(&text).ok_or(RatesError::NoForwardingCounter)
}

/// The counter stands in the line after that of its name, at the same place.
fn forwarded_datagrams(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let place = lines.next()?.split_ascii_whitespace().position(|name| name == "ForwDatagrams")?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_by_its_name() {
        let text = "Ip: Forwarding DefaultTTL ForwDatagrams\nIp: 1 64 17\nIcmp: ForwDatagrams\nIcmp: 5\n";
        assert_eq!(forwarded_datagrams(text), Some(17));
        assert_eq!(forwarded_datagrams("Ip: Forwarding\nIp: 1\n"), None);
    }
}
