//! Random changes of a router, which is given to `ip` in both places alike.

use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use super::place::{FOREIGN, MAKE_FOREIGN, SIDES, STATIONS, host_mac, text};

/// One change.
#[derive(Clone, Debug)]
pub enum Change {
    /// Arguments of `ip` on the router.
    Router(String),
    /// The host at the other end of a cable goes, or comes.
    Carrier { side: usize, is_there: bool },
    /// Other fields of packets of a family, `ipv4` or `ipv6`, choose among several next hops.
    HashPolicy { family: &'static str, policy: u8 },
}

const FAMILIES: [&str; 2] = ["ipv4", "ipv6"];

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Router(line) => write!(f, "ip {line}"),
            Change::Carrier { side, is_there } => write!(f, "host {}: carrier {is_there}", side + 1),
            Change::HashPolicy { family, policy } => write!(f, "{family}: hash policy {policy}"),
        }
    }
}

impl Change {
    /// The change that a line shows, if it shows one.
    pub fn read(line: &str) -> Option<Change> {
        if let Some(line) = line.strip_prefix("  ip ") {
            return Some(Change::Router(line.into()));
        }
        if let Some((family, policy)) = line.trim().split_once(": hash policy ") {
            let family = FAMILIES.into_iter().find(|known| *known == family)?;
            return Some(Change::HashPolicy { family, policy: policy.parse().ok()? });
        }
        let (side, carrier) = line.strip_prefix("  host ")?.split_once(": carrier ")?;
        Some(Change::Carrier { side: side.parse::<usize>().ok()? - 1, is_there: carrier == "true" })
    }
}

const PREFIXES: [&str; 12] = [
    "172.16.0.0/24",
    "172.16.1.0/24",
    "172.16.2.0/24",
    "172.16.2.128/25",
    "172.16.3.0/24",
    "172.16.3.7/32",
    "172.16.0.0/20",
    "172.16.4.0/22",
    "10.0.2.64/26",
    "10.0.2.3/32",
    "10.9.2.0/24",
    "0.0.0.0/0",
];
const PREFIXES6: [&str; 9] = [
    "2001:db8:a::/48",
    "2001:db8:a:1::/64",
    "2001:db8:a:2::/64",
    "2001:db8:a:2::7/128",
    "2001:db8:b::/48",
    "2001:db8:c::/48",
    "2001:db8:2::3/128",
    "2001:db8:2:0:8000::/65",
    "::/0",
];
/// The sources that a route is for: all, or those of a side.
const SOURCES6: [&str; 8] = ["", "", "", "", "", "", " from 2001:db8:1::/64", " from 2001:db8:2::/64"];
/// The numbers of next-hop objects of IPv4 and IPv6, and of groups.
const HOPS: [u32; 4] = [1, 2, 3, 4];
const HOPS6: [u32; 3] = [21, 22, 23];
const GROUPS: [u32; 3] = [11, 12, 13];
const GROUPS6: [u32; 2] = [31, 32];
/// Those of rules.
const PRIORITIES: [u32; 3] = [100, 110, 120];

pub struct Changes(pub ChaCha8Rng);

impl Changes {
    pub fn burst(&mut self) -> Vec<Change> {
        let count = *[1, 1, 2, 3, 5, 8, 13, 30].choose(&mut self.0).unwrap();
        (0..count).map(|_| self.change()).collect()
    }

    fn change(&mut self) -> Change {
        let line = match self.0.random_range(0..100) {
            0..50 => self.route(),
            50..64 => self.next_hop(),
            64..74 => self.neighbor(),
            74..84 => self.address(),
            84..91 => self.rule(),
            91..97 => self.link(),
            97 => return Change::HashPolicy { family: self.one(&FAMILIES), policy: self.one(&[0, 1]) },
            _ => return Change::Carrier { side: self.side(), is_there: self.0.random_range(0..3) > 0 },
        };
        Change::Router(line)
    }

    fn is_inet6(&mut self) -> bool {
        self.0.random_range(0..5) < 2
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        *of.choose(&mut self.0).unwrap()
    }

    fn side(&mut self) -> usize {
        self.0.random_range(0..SIDES)
    }

    fn device(&mut self) -> String {
        match self.0.random_range(0..=SIDES) {
            SIDES => FOREIGN.to_owned(),
            side => format!("eth{}", side + 1),
        }
    }

    fn route(&mut self) -> String {
        let inet6 = self.is_inet6();
        let prefix = match inet6 {
            true => format!("{}{}", self.one(&PREFIXES6), self.one(&SOURCES6)),
            false => self.one(&PREFIXES).to_owned(),
        };
        let verbs = ["add", "add", "replace", "replace", "change", "del", "del", "append", "prepend"];
        let verb = self.one(&verbs);
        let metric = self.one(&["", "", "", " metric 5", " metric 50"]);
        let table = self.one(&["", "", "", "", " table 100"]);
        let mss = if inet6 { "" } else { self.one(&["", "", "", " advmss 1300"]) };
        if verb == "del" {
            return format!("route del {prefix}{metric}{table}");
        }
        match self.0.random_range(0..12) {
            0 => {
                let kind = self.one(&["blackhole", "unreachable", "prohibit", "throw"]);
                format!("route {verb} {kind} {prefix}{metric}{table}")
            }
            1..3 => format!("route {verb} {prefix} nhid {}{metric}{table}", self.hop_or_group(inet6)),
            3..6 => format!("route {verb} {prefix}{metric}{table} {}", self.hops(inet6)),
            6 => format!("route {verb} {prefix} dev {}{metric}{table}{mss}", self.device()),
            _ => format!("route {verb} {prefix} {}{metric}{table}{mss}", self.way(inet6)),
        }
    }

    fn hop_or_group(&mut self, inet6: bool) -> u32 {
        match (inet6, self.0.random()) {
            (false, false) => self.one(&HOPS),
            (false, true) => self.one(&GROUPS),
            (true, false) => self.one(&HOPS6),
            (true, true) => self.one(&GROUPS6),
        }
    }

    /// A gateway; one in some is a station that does not exist.
    fn gateway(&mut self, inet6: bool) -> (usize, String) {
        let (side, dead) = (self.side() + 1, self.0.random_range(0..12) == 0);
        let station = if dead { 77 } else { self.one(&STATIONS) };
        let address =
            if inet6 { format!("2001:db8:{side}::{station}") } else { format!("10.0.{side}.{station}") };
        (side, address)
    }

    fn way(&mut self, inet6: bool) -> String {
        let (side, gateway) = self.gateway(inet6);
        match self.0.random_range(0..8) {
            0 if !inet6 => {
                let (_, gateway6) = self.gateway(true);
                let side = gateway6.split(':').nth(2).unwrap_or("1");
                format!("via inet6 {gateway6} dev eth{side}")
            }
            1..4 => format!("via {gateway}"),
            4 => format!("via {gateway} dev eth{side} onlink"),
            _ => format!("via {gateway} dev eth{side}"),
        }
    }

    fn hops(&mut self, inet6: bool) -> String {
        let count = self.0.random_range(2..4);
        let hop = |_| {
            let (side, gateway) = self.gateway(inet6);
            let weight = self.0.random_range(1..3);
            match self.0.random_range(0..8) {
                0 if inet6 => format!("nexthop via fe80::{side} dev {FOREIGN} weight {weight}"),
                0 => format!("nexthop dev {FOREIGN} weight {weight}"),
                _ => format!("nexthop via {gateway} dev eth{side} weight {weight}"),
            }
        };
        (0..count).map(hop).collect::<Vec<_>>().join(" ")
    }

    fn next_hop(&mut self) -> String {
        let inet6 = self.is_inet6();
        let (hops, groups) = if inet6 { (&HOPS6[..], &GROUPS6[..]) } else { (&HOPS[..], &GROUPS[..]) };
        let verb = self.one(&["add", "replace", "replace", "del"]);
        let is_group = self.0.random_range(0..5) < 2;
        let id = if is_group { self.one(groups) } else { self.one(hops) };
        match (verb, is_group) {
            ("del", _) => format!("nexthop del id {id}"),
            (_, true) => {
                let count = self.0.random_range(1..=hops.len());
                let chosen: Vec<u32> = hops.sample(&mut self.0, count).copied().collect();
                let members = chosen.iter().map(|hop| format!("{hop},{}", self.0.random_range(1..3)));
                format!("nexthop {verb} id {id} group {}", members.collect::<Vec<_>>().join("/"))
            }
            _ if !inet6 && self.0.random_range(0..6) == 0 => format!("nexthop {verb} id {id} blackhole"),
            _ => {
                let (side, gateway) = self.gateway(inet6);
                format!("nexthop {verb} id {id} via {gateway} dev eth{side}")
            }
        }
    }

    fn neighbor(&mut self) -> String {
        let inet6 = self.is_inet6();
        let (side, address) = self.gateway(inet6);
        let mac = match self.0.random_range(0..4) {
            0 => format!("02:00:00:00:99:{:02x}", self.0.random_range(0..4)),
            _ => text(host_mac(side - 1)),
        };
        match self.0.random_range(0..4) {
            0 => format!("neigh del {address} dev eth{side}"),
            _ => format!("neigh replace {address} lladdr {mac} dev eth{side} nud permanent"),
        }
    }

    fn address(&mut self) -> String {
        let (side, verb) = (self.side() + 1, self.one(&["add", "add", "add", "del"]));
        if self.is_inet6() {
            let address = self.one(&["1/64", "11/64", "9:1/112"]);
            return format!(
                "addr {verb} 2001:db8:{side}::{address} dev eth{side}{}",
                if verb == "add" { " nodad" } else { "" }
            );
        }
        let address = match self.one(&[0, 1, 2, 3]) {
            0 => format!("10.0.{side}.11/24"),
            1 => format!("10.9.{side}.1/24"),
            2 => format!("10.0.{side}.65/26"),
            _ => format!("10.0.{side}.1/24"),
        };
        format!("addr {verb} {address} dev eth{side}")
    }

    fn rule(&mut self) -> String {
        let inet6 = self.is_inet6();
        let (family, priority) = (if inet6 { "-6 " } else { "" }, self.one(&PRIORITIES));
        if self.0.random_range(0..5) < 2 {
            return format!("{family}rule del pref {priority}");
        }
        let not = self.one(&["", "", "", "not "]);
        let selector = self.selector(inet6);
        format!("{family}rule add {not}{selector} {} pref {priority}", self.target())
    }

    /// The packets that a rule selects; one in some kinds the router leaves to the kernel.
    fn selector(&mut self, inet6: bool) -> String {
        let side = self.side() + 1;
        let (from, to) = match inet6 {
            false => (format!("10.0.{side}.0/24"), self.one(&PREFIXES)),
            true => (format!("2001:db8:{side}::/64"), self.one(&PREFIXES6)),
        };
        match self.0.random_range(0..16) {
            0..3 => format!("iif eth{side}"),
            3..6 => format!("from {from}"),
            6..8 => format!("to {to}"),
            8 => format!("from {from} to {to}"),
            9 => format!("iif eth{side} to {to}"),
            10 => "fwmark 7".into(),
            11 => format!("from {from} ipproto {}", self.one(&["udp", "tcp"])),
            12 => format!("to {to} tos 0x10"),
            // Half of many flows, which then use all hops of a route.
            13 => format!("from {from} ipproto udp sport {}", self.one(&["7", "1000-2031"])),
            14 => format!("to {to} ipproto udp dport {}", self.one(&["7", "9-40000"])),
            _ => "from all".into(),
        }
    }

    fn target(&mut self) -> String {
        match self.0.random_range(0..18) {
            0..7 => "lookup 100".into(),
            7 => "lookup 100 suppress_prefixlength 0".into(),
            8..10 => "lookup main".into(),
            10 => "lookup 200".into(),
            11 | 16 => "lookup main suppress_prefixlength 0".into(),
            17 => format!("lookup main suppress_prefixlength {}", self.one(&[16, 24])),
            12..14 => format!("goto {}", self.one(&[110, 120, 32_766])),
            14 => "nop".into(),
            _ => self.one(&["blackhole", "unreachable", "prohibit"]).into(),
        }
    }

    fn link(&mut self) -> String {
        let side = self.side() + 1;
        match self.0.random_range(0..15) {
            10..12 => format!("link set dev {FOREIGN} down"),
            12 => format!("link set dev {FOREIGN} up"),
            13 => format!("link del dev {FOREIGN}"),
            14 => MAKE_FOREIGN.to_owned(),
            0..2 => format!("link set dev eth{side} down"),
            2 => format!("link set dev eth{side} mtu {}", self.one(&[1400, 1500])),
            3 => format!(
                "link set dev eth{side} address 02:00:00:00:1{}:{side:02x}",
                self.0.random_range(0..2)
            ),
            _ => format!("link set dev eth{side} up"),
        }
    }
}
