//! The Linux kernel as a router: the oracle.

use crate::catalogue::Catalogue;
use crate::dut::{Dut, Output};
use crate::testbed::Testbed;
use crate::topology::{
    self, LINK_LENGTHS, LINK_LOCAL, NARROW, ROUTER, ROUTES, SIDES, STATION, STATION_LOCAL, To,
};

/// Parameters that are set before there are interfaces, so that interfaces inherit them.
const SETTINGS: [(&str, &str); 14] = [
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    ("ipv6/conf/default/forwarding", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    // Interfaces make no link-local addresses; the topology gives them theirs.
    ("ipv6/conf/default/addr_gen_mode", "1"),
    // Answers are compared one by one: the kernel withholds none, and writes no random flow label.
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_ratemask", "0"),
    ("ipv6/icmp/ratelimit", "0"),
    ("ipv4/icmp_msgs_per_sec", "1000000"),
    ("ipv4/icmp_msgs_burst", "1000000"),
    ("ipv6/auto_flowlabels", "0"),
    // In seconds: the kernel sends no error for fragments that a case leaves behind while it plays later cases.
    ("ipv4/ipfrag_time", "3600"),
    ("ipv6/ip6frag_time", "3600"),
];

/// The switches of redirects of IPv4; Linux has none for IPv6.
const REDIRECTS: [&str; 2] = ["ipv4/conf/all/send_redirects", "ipv4/conf/default/send_redirects"];

/// A kernel between the stations of a test bed.
pub struct Kernel(Testbed);

impl Kernel {
    /// Makes the namespaces, addresses, neighbours and routes.
    pub fn new(catalogue: Catalogue) -> Kernel {
        let value = if catalogue.redirects() { "1" } else { "0" };
        let redirects = REDIRECTS.map(|name| (name, value));
        let mut testbed = Testbed::new(&[&SETTINGS[..], &redirects].concat());
        (0..SIDES.len()).for_each(|side| set_neighbor_times(&testbed, side));
        configure(&testbed);
        testbed.wait_until_up();
        Kernel(testbed)
    }

    #[cfg(feature = "bpf")]
    pub fn testbed(&mut self) -> &mut Testbed {
        &mut self.0
    }
}

/// Sets the times of an interface's neighbours: a test can wait for them, and none is so short that it would pass on a
/// slow machine.
fn set_neighbor_times(testbed: &Testbed, side: usize) {
    let interface = SIDES[side].name;
    // Where no station answers, three requests in six seconds; elsewhere one request, however long the answer takes.
    let retransmit = if side == NARROW { "2000" } else { "60000" };
    for (family, variable, value) in [
        ("ipv4", "retrans_time_ms", retransmit),
        ("ipv6", "retrans_time_ms", retransmit),
        // Zero delay: the kernel answers for other hosts at once.
        ("ipv6", "proxy_delay", "0"),
        // In hundredths of a second: a neighbour's address does not change within a minute.
        ("ipv4", "locktime", "6000"),
        // In seconds: the kernel does not probe whether a neighbour is still there.
        ("ipv4", "delay_first_probe_time", "60"),
        ("ipv6", "delay_first_probe_time", "60"),
    ] {
        testbed.router.sysctl(&format!("{family}/neigh/{interface}/{variable}"), value);
    }
}

impl Dut for Kernel {
    fn exchange(&mut self, side: usize, frame: &[u8]) -> Output {
        self.0.exchange(side, frame)
    }

    fn wait(&mut self, awaited: [usize; SIDES.len()]) -> Output {
        self.0.collect(awaited)
    }
}

/// Configures the router's namespace by `ip` as [`crate::topology`] says: links, addresses, neighbours, routes.
pub fn configure(testbed: &Testbed) {
    let router = &testbed.router;
    for (number, side) in SIDES.iter().enumerate() {
        let (name, mac) = (side.name, topology::station_mac(number));
        let (inet, inet6) = (topology::inet(number, ROUTER), topology::inet6(number, ROUTER.into()));
        router.ip(&format!("link set {name} up"));
        router.ip(&format!("addr add {inet}/{} brd + dev {name}", LINK_LENGTHS.0));
        router.ip(&format!("addr add {inet6}/{} dev {name} nodad", LINK_LENGTHS.1));
        router.ip(&format!("addr add {LINK_LOCAL}/64 dev {name} nodad"));
        let local = STATION_LOCAL.to_string();
        for station in stations(number).iter().chain([&local]) {
            router.ip(&format!("neigh add {station} lladdr {mac} dev {name} nud permanent"));
        }
    }
    ROUTES.iter().for_each(|(prefix, to)| _ = router.ip(&route(prefix, *to)));
}

fn stations(side: usize) -> [String; 2] {
    [topology::inet(side, STATION).to_string(), topology::inet6(side, STATION.into()).to_string()]
}

fn route(prefix: &str, to: To) -> String {
    let [inet, inet6] = if let To::Station(side) = to { stations(side) } else { Default::default() };
    let via = if prefix.contains(':') { inet6 } else { inet };
    match to {
        To::LinkLocal(side) => format!("route add {prefix} via {STATION_LOCAL} dev {}", SIDES[side].name),
        To::Station(_) => format!("route add {prefix} via {via}"),
        To::Blackhole => format!("route add blackhole {prefix}"),
        To::Unreachable => format!("route add unreachable {prefix}"),
        To::Prohibit => format!("route add prohibit {prefix}"),
    }
}
