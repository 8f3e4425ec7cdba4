//! Ranges of addresses and ports, as netmap's pkt-gen takes them after `-s` and `-d`.
//!
//! `198.18.10.1:2000-198.18.10.20` is twenty addresses and one port: a port left out on the right is the one on the
//! left, one left out on both is 1234. IPv6 addresses with a port stand in brackets:
//! `[2001:2:0:10::1]:2000-[2001:2:0:10::14]`. pkt-gen swaps reversed ends and takes what is no address as 0; both are
//! refused here, because either would send other flows than the report names.

use std::fmt::{self, Display};
use std::str::FromStr;

use fullview_table::{Address, Family};

/// The port pkt-gen sends from and to when none is given.
const DEFAULT_PORT: u16 = 1234;

/// Addresses times ports, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointRange<A> {
    addresses: (A, A),
    ports: (u16, u16),
}

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Not an address of the family.
    #[error("range {range:?}: {text:?} is not an {family} address; write {}", example(*family))]
    Address {
        /// The whole text.
        range: String,
        /// The part that is wrong.
        text: String,
        /// The family asked for.
        family: Family,
    },
    /// Not a number from 0 to 65535.
    #[error("range {range:?}: port {text:?} is not a number from 0 to 65535")]
    Port {
        /// The whole text.
        range: String,
        /// The part that is wrong.
        text: String,
    },
    /// The last address or port lies before the first.
    #[error("range {0:?}: it ends before it begins; swap the two sides")]
    Reversed(String),
}

fn example(family: Family) -> &'static str {
    match family {
        Family::Inet => "198.18.10.1:2000-198.18.10.20",
        Family::Inet6 => "[2001:2:0:10::1]:2000-[2001:2:0:10::14]",
    }
}

impl<A: Address> EndpointRange<A> {
    /// All addresses and ports from the first of each to the last; `None` if an end lies before its beginning.
    pub fn new(addresses: (A, A), ports: (u16, u16)) -> Option<Self> {
        (addresses.0 <= addresses.1 && ports.0 <= ports.1).then_some(EndpointRange { addresses, ports })
    }

    /// How many endpoints these are; `u128::MAX` when there are more.
    pub fn count(&self) -> u128 {
        #[allow(clippy::expect_used)] // addresses are unsigned integers of at most 128 bits
        let last = (self.addresses.1 - self.addresses.0).to_u128().expect("fits");
        last.saturating_add(1).saturating_mul(u128::from(self.ports.1 - self.ports.0) + 1)
    }

    /// Every endpoint; the port counts up first, as pkt-gen does it.
    pub fn endpoints(&self) -> impl Iterator<Item = (A, u16)> + Clone {
        let (ports, last) = (self.ports, self.addresses.1);
        let addresses = std::iter::successors(Some(self.addresses.0), move |addr| {
            (*addr < last).then(|| *addr + A::one())
        });
        addresses.flat_map(move |addr| (ports.0..=ports.1).map(move |port| (addr, port)))
    }
}

impl<A: Address> FromStr for EndpointRange<A> {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (first, Some(last)),
            None => (text, None),
        };
        let (first, port) = endpoint::<A>(text, first)?;
        let port = port.unwrap_or(DEFAULT_PORT);
        let (last, last_port) = last.map_or(Ok((first, None)), |last| endpoint::<A>(text, last))?;
        EndpointRange::new((first, last), (port, last_port.unwrap_or(port)))
            .ok_or_else(|| RangeError::Reversed(text.into()))
    }
}

/// One side: an address, and a port if there is one. `range` is the whole text, for messages.
fn endpoint<A: Address>(range: &str, text: &str) -> Result<(A, Option<u16>), RangeError> {
    let (addr, port) = split_port(text, A::FAMILY);
    let ip = addr.parse::<A::Ip>().map_err(|_| RangeError::Address {
        range: range.into(),
        text: addr.into(),
        family: A::FAMILY,
    })?;
    let port = port.map(|port| parse_port(range, port)).transpose()?;
    Ok((A::from_ip(ip), port))
}

fn split_port(text: &str, family: Family) -> (&str, Option<&str>) {
    let split = match (family, text.strip_prefix('[')) {
        (Family::Inet6, Some(inside)) => {
            return match inside.split_once("]:") {
                Some((addr, port)) => (addr, Some(port)),
                None => (inside.strip_suffix(']').unwrap_or(text), None),
            };
        }
        (Family::Inet6, None) => None,
        (Family::Inet, _) => text.split_once(':'),
    };
    split.map_or((text, None), |(addr, port)| (addr, Some(port)))
}

/// Digits only: `str::parse` would also take a sign.
fn parse_port(range: &str, text: &str) -> Result<u16, RangeError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = if digits { text.parse().ok() } else { None };
    port.ok_or_else(|| RangeError::Port { range: range.into(), text: text.into() })
}

impl<A: Address> Display for EndpointRange<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if A::FAMILY == Family::Inet6 { ("[", "]") } else { ("", "") };
        let ((first, last), (port, last_port)) = (self.addresses, self.ports);
        write!(f, "{open}{}{close}:{port}-{open}{}{close}:{last_port}", first.to_ip(), last.to_ip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inet(text: &str) -> Result<EndpointRange<u32>, RangeError> {
        text.parse()
    }

    fn inet6(text: &str) -> Result<EndpointRange<u128>, RangeError> {
        text.parse()
    }

    #[test]
    fn the_forms_of_pkt_gen() {
        assert_eq!(
            inet("198.18.10.1:2000-198.18.10.20").unwrap().to_string(),
            "198.18.10.1:2000-198.18.10.20:2000"
        );
        assert_eq!(inet("10.0.0.1").unwrap().to_string(), "10.0.0.1:1234-10.0.0.1:1234");
        assert_eq!(inet("10.0.0.1:5-10.0.0.1:9").unwrap().count(), 5);
        let six = "[2001:2:0:10::1]:2000-[2001:2:0:10::14]:2000";
        assert_eq!(inet6("[2001:2:0:10::1]:2000-[2001:2:0:10::14]").unwrap().to_string(), six);
        assert_eq!(inet6("2001:2::1-2001:2::f").unwrap().count(), 15);
    }

    #[test]
    fn ports_count_up_before_addresses() {
        let range = inet("10.0.0.1:1-10.0.0.2:2").unwrap();
        let endpoints: Vec<_> = range.endpoints().collect();
        assert_eq!(endpoints, [(0x0a00_0001, 1), (0x0a00_0001, 2), (0x0a00_0002, 1), (0x0a00_0002, 2)]);
    }

    #[test]
    fn the_edges_of_the_address_space() {
        assert_eq!(inet("255.255.255.255:1-255.255.255.255").unwrap().endpoints().count(), 1);
        assert_eq!(inet("0.0.0.0:0-255.255.255.255:65535").unwrap().count(), 1 << 48);
        assert_eq!(inet6("[::]:0-[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:1").unwrap().count(), u128::MAX);
    }

    #[test]
    fn bad_ranges_name_the_bad_part() {
        for (text, part) in [
            ("", "\"\" is not an inet address"),
            ("10.0.0.1-", "\"\" is not an inet address"),
            ("10.0.0.1:-10.0.0.2", "port \"\""),
            ("10.0.0.1:+5", "port \"+5\""),
            ("10.0.0.1:65536", "port \"65536\""),
            ("10.0.0.300", "\"10.0.0.300\""),
            ("10.0.0.2-10.0.0.1", "swap"),
            ("10.0.0.1:9-10.0.0.1:8", "swap"),
            ("2001:2::1", "inet address"),
        ] {
            let error = inet(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(inet6("[2001:2::1").is_err());
        assert!(inet6("10.0.0.1").is_err());
    }
}
