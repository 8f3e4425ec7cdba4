//! Changes around the router: routes, neighbours, the link to the host `beside`.

use std::thread::sleep;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::frames::{CHANGING, CHANGING6};
use super::place::{Place, STABLE};

/// The number of changes by one command.
const AT_ONCE: usize = 400;

/// The number of prefixes of each family whose routes change.
const PREFIXES: u32 = 2000;

/// Changes routes and neighbours. Some routes are more specific than those that the flows use, for other addresses.
pub struct Routes<'p> {
    place: &'p Place,
    random: ChaCha8Rng,
    pub changes: usize,
}

impl<'p> Routes<'p> {
    pub fn new(place: &'p Place) -> Routes<'p> {
        Routes { place, random: ChaCha8Rng::seed_from_u64(0xc4), changes: 0 }
    }

    pub fn round(&mut self) {
        let lines: Vec<String> = (0..AT_ONCE).map(|_| self.change()).collect();
        self.changes += lines.len();
        self.place.batch(lines.into_iter());
    }

    fn change(&mut self) -> String {
        let n = self.random.random_range(0..PREFIXES);
        match self.random.random_range(0..20) {
            0..8 => self.route(&format!("{}/24", std::net::Ipv4Addr::from(CHANGING + (n << 8))), false),
            8..12 => {
                let prefix = CHANGING6.to_bits() + (u128::from(n) << 80);
                self.route(&format!("{}/48", std::net::Ipv6Addr::from(prefix)), true)
            }
            12..15 => self.route(&format!("20.0.{}.64/26", n % u32::from(STABLE)), false),
            15 => self.route(&format!("2001:db8:{:x}:8000::/49", 0x2000 + n % u32::from(STABLE)), true),
            16 => self.next_hop(),
            _ => self.neighbour(n % 20),
        }
    }

    fn route(&mut self, prefix: &str, is_inet6: bool) -> String {
        let [right, beside] =
            if is_inet6 { ["2001:db8:2::2", "2001:db8:3::2"] } else { ["10.0.2.2", "10.0.3.2"] };
        match self.random.random_range(0..10) {
            0..3 => format!("route del {prefix}"),
            3..5 => format!("route replace {prefix} via {right}"),
            5..7 => format!("route replace {prefix} via {beside}"),
            7 => format!("route replace {prefix} nexthop via {right} weight 2 nexthop via {beside}"),
            8 => format!("route replace {prefix} nhid {}", if is_inet6 { 80 } else { 70 }),
            _ => format!("route replace blackhole {prefix}"),
        }
    }

    fn next_hop(&mut self) -> String {
        match self.random.random_range(0..6) {
            0 => "nexthop replace id 71 via 10.0.2.2 dev eth2".into(),
            1 => "nexthop replace id 72 via 10.0.3.2 dev eth3".into(),
            2 => "nexthop replace id 70 group 71/72,3".into(),
            3 => "nexthop replace id 70 group 71".into(),
            4 => "nexthop replace id 80 via 2001:db8:2::2 dev eth2".into(),
            _ => "nexthop del id 80".into(),
        }
    }

    /// Changes neighbours that receive no packets, and the host `beside`, whose address is sometimes wrong.
    fn neighbour(&mut self, n: u32) -> String {
        let state = ["permanent", "reachable", "stale"][self.random.random_range(0..3)];
        match self.random.random_range(0..6) {
            0 => format!("neigh del 10.0.2.{} dev eth2", 200 + n),
            1 => format!(
                "neigh replace 2001:db8:2::{:x} lladdr 02:00:00:00:00:{n:02x} dev eth2 nud {state}",
                0x200 + n
            ),
            2 => format!("neigh replace 10.0.3.2 lladdr 02:00:00:00:00:{n:02x} dev eth3 nud stale"),
            3 => "neigh del 10.0.3.2 dev eth3".into(),
            _ => {
                format!("neigh replace 10.0.2.{} lladdr 02:00:00:00:00:{n:02x} dev eth2 nud {state}", 200 + n)
            }
        }
    }
}

/// Sets the link to the host `beside` down and up; sometimes removes it or changes its MTU.
pub struct Link<'p> {
    place: &'p Place,
    pub flaps: usize,
}

impl<'p> Link<'p> {
    pub fn new(place: &'p Place) -> Link<'p> {
        Link { place, flaps: 0 }
    }

    pub fn round(&mut self) {
        self.flaps += 1;
        match self.flaps % 6 {
            // Without the classifier, nothing forwards while the workers restart.
            0 if cfg!(feature = "bpf") => {
                self.place.lab.router.ip("link del eth3");
                sleep(Duration::from_millis(200));
                self.place.plug_beside();
            }
            3 => self.place.batch(
                [
                    "link set dev eth3 mtu 1400",
                    "link add link eth3 name eth3.7 type vlan id 7",
                    "link set eth3.7 up",
                    "addr add 10.0.7.1/24 dev eth3.7",
                    "link set dev eth3 mtu 1300",
                    "link del eth3.7",
                ]
                .into_iter()
                .map(str::to_owned),
            ),
            _ => {
                self.place.lab.router.ip("link set dev eth3 down");
                sleep(Duration::from_millis(200));
                self.place.lab.router.ip("link set dev eth3 up");
                self.place.lab.router.ip("addr replace 2001:db8:3::1/64 dev eth3 nodad");
            }
        }
        sleep(Duration::from_millis(600));
    }
}
