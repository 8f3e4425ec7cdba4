//! What the kernel itself forwards.

use std::fs;

use fullview_table::Family;

use super::error::RatesError;
use crate::testbed::Namespace;

/// Packets of a family that the kernel of a namespace has forwarded.
pub fn forwarded(namespace: &Namespace, family: Family) -> Result<u64, RatesError> {
    let (path, count): (_, fn(&str) -> Option<u64>) = match family {
        Family::Inet => ("/proc/thread-self/net/snmp", forwarded_datagrams),
        Family::Inet6 => ("/proc/thread-self/net/snmp6", forwarded_datagrams6),
    };
    let text = namespace.within(|| Ok(fs::read_to_string(path).unwrap_or_default()))?;
    count(&text).ok_or(RatesError::NoForwardingCounter)
}

/// The counter stands in the line after that of its name, at the same place.
fn forwarded_datagrams(text: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let place = lines.next()?.split_ascii_whitespace().position(|name| name == "ForwDatagrams")?;
    lines.next()?.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// The counter stands after its name.
fn forwarded_datagrams6(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("Ip6OutForwDatagrams"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_found_by_its_name() {
        let text = "Ip: Forwarding DefaultTTL ForwDatagrams\nIp: 1 64 17\nIcmp: ForwDatagrams\nIcmp: 5\n";
        assert_eq!(forwarded_datagrams(text), Some(17));
        assert_eq!(forwarded_datagrams("Ip: Forwarding\nIp: 1\n"), None);
        let text = "Ip6InReceives   \t9\nIp6OutForwDatagrams             \t17\nIp6OutRequests 3\n";
        assert_eq!(forwarded_datagrams6(text), Some(17));
        assert_eq!(forwarded_datagrams6("Ip6InReceives 9\n"), None);
    }
}
