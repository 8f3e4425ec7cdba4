use fullview_plane::interface::SourceCheck;

use super::macs;
use crate::config::{frozen_differences, live_options, parse};
use crate::error::message;
use crate::options::plan::{self, Plan};
use crate::route::{MAIN_TABLE as MAIN, RouteAction};

const SMALL: &str = r#"[router]
kernel = false
interfaces = ["t0", "t1"]
port = "tap"

[interface.t0]
address = ["192.0.2.1/24", "2001:db8::1/64"]

[interface.t1]
address = ["198.51.100.1/31"]
mtu = 9000
"#;

/// The number of lines of `SMALL`.
const LINES: usize = 11;

fn small() -> String {
    SMALL.replace("9000", "2000")
}

fn refused(more: &str) -> String {
    message(&parse(&(small() + more)).unwrap_err())
}

fn plan(more: &str) -> Plan {
    super::plan(&parse(&(small() + more)).unwrap()).unwrap()
}

#[test]
fn interfaces_are_ports_and_vlans_of_them() {
    let plan =
        plan("[interface.\"t1.100\"]\naddress = [\"10.0.0.1/8\"]\ntable = 7\nsource-check = \"strict\"\n");
    let names: Vec<_> =
        plan.interfaces.iter().map(|of| (&*of.name, of.port, of.vlan, of.mtu, of.table)).collect();
    assert_eq!(
        names,
        [("t0", 0, None, 1500, MAIN), ("t1", 1, None, 2000, MAIN), ("t1.100", 1, Some(100), 2000, 7)]
    );
    let config =
        parse(&(small() + "[interface.t0]\nsource-check = \"loose\"\n").replacen("[interface.t0]\n", "", 1));
    assert!(config.is_err(), "what stands before the first section of an interface belongs to the router");
    let config = parse(&small().replace("mtu = 2000", "source-check = \"loose\"")).unwrap();
    assert_eq!(live_options(&config).unwrap().policies["t1"].source_check, SourceCheck::Loose);
}

#[test]
fn routes_find_the_links_of_their_gateways() {
    let plan = plan(
        "[[route]]\nto = \"0.0.0.0/0\"\nvia = \"198.51.100.0\"\n\
         [[route]]\nto = \"::/0\"\nvia = \"fe80::9\"\ndev = \"t1\"\n\
         [[route]]\nto = \"10.0.0.0/8\"\ndev = \"t1\"\n\
         [[route]]\nto = \"10.1.0.0/16\"\nways = [{ via = \"192.0.2.9\", weight = 3 }, { dev = \"t1\" }]\n\
         [[route]]\nto = \"10.2.0.0/16\"\nkind = \"prohibit\"\n",
    );
    let links = [plan::port_link(0), plan::port_link(1)];
    let ways = |number: usize| match &plan.routes[number].action {
        RouteAction::Forward(set) => set
            .hops()
            .iter()
            .map(|way| (way.link, way.gateway.map(|ip| ip.to_string()), way.weight))
            .collect(),
        other => panic!("{other:?}"),
    };
    let way = |link: usize, gateway: Option<&str>, weight| (links[link], gateway.map(str::to_owned), weight);
    let one: Vec<_> = ways(0);
    assert_eq!(one, [way(1, Some("198.51.100.0"), 1)]);
    assert_eq!(ways(1), [way(1, Some("fe80::9"), 1)]);
    assert_eq!(ways(2), [way(1, None, 1)]);
    assert_eq!(ways(3), [way(0, Some("192.0.2.9"), 3), way(1, None, 1)]);
    assert_eq!(plan.routes[4].action, RouteAction::Prohibit);
}

/// Texts added to a correct file, the line and column of the mistake in each, and words of the message.
const REFUSED: [(&str, usize, usize, &str); 18] = [
    ("[[route]]\nto = \"10.0.0.1/8\"\nvia = \"192.0.2.9\"\n", 2, 6, "10.0.0.0/8"),
    (
        "[[route]]\nto = \"10.0.0.0/8\"\nvia = \"10.9.9.9\"\n",
        2,
        6,
        "in no network of an interface of table 254",
    ),
    ("[[route]]\nto = \"10.0.0.0/8\"\nvia = \"192.0.2.1\"\n", 2, 6, "this router itself"),
    ("[[route]]\nto = \"10.0.0.0/8\"\nvia = \"2001:db8::9\"\n", 2, 6, "other family"),
    ("[[route]]\nto = \"10.0.0.0/8\"\n", 2, 6, "give via, dev or both"),
    ("[[route]]\nto = \"10.0.0.0/8\"\ndev = \"t9\"\n", 2, 6, "no interface t9"),
    (
        "[[route]]\nto = \"10.0.0.0/8\"\ndev = \"t0\"\nkind = \"blackhole\"\n",
        2,
        6,
        "neither via, dev nor ways",
    ),
    ("[[route]]\nto = \"10.0.0.0/8\"\nvia = \"192.0.2.9\"\nkind = \"loop\"\n", 4, 8, "unknown variant"),
    ("[[route]]\nto = \"10.0.0.0/8\"\nways = [{ dev = \"t0\", weight = 0 }]\n", 2, 6, "weight 0"),
    (
        "[[route]]\nto = \"10.0.0.0/8\"\nways = [{ dev = \"t0\", weight = 9999 }, { dev = \"t1\" }]\n",
        2,
        6,
        "too uneven",
    ),
    ("[[route]]\nto = \"10.0.0.0/8\"\nways = [{ dev = \"t0\" }, { dev = \"t0\" }]\n", 2, 6, "there twice"),
    ("[[route]]\nto = \"::/0\"\nvia = \"fe80::9\"\n", 2, 6, "on every link; give dev"),
    (
        "[[neighbor]]\naddress = \"192.0.2.1\"\ndev = \"t0\"\nmac = \"02:00:00:00:00:09\"\n",
        2,
        11,
        "not another station's",
    ),
    (
        "[[neighbor]]\naddress = \"192.0.2.9\"\ndev = \"t7\"\nmac = \"02:00:00:00:00:09\"\n",
        2,
        11,
        "no interface t7",
    ),
    (
        "[[neighbor]]\naddress = \"192.0.2.9\"\ndev = \"t0\"\nmac = \"01:00:00:00:00:09\"\n",
        4,
        7,
        "not a station's",
    ),
    ("[icmp]\nspeed = 9\n", 2, 1, "unknown field `speed`"),
    ("[neighbors]\nretransmit-ms = 0\n", 2, 17, "nonzero"),
    ("[neighbors]\nquestions = 4294967295\n", 2, 13, "u8"),
];

#[test]
fn impossible_values_are_refused_with_their_place() {
    let at = |line: usize, column: usize| format!("line {}, column {column}", LINES + line);
    for (more, line, column, words) in REFUSED {
        let message = refused(more);
        assert!(message.contains(&at(line, column)) && message.contains(words), "{more}: {message}");
    }
    let twice = "[[route]]\nto = \"10.0.0.0/8\"\ndev = \"t0\"\n".repeat(2);
    let message = refused(&twice);
    assert!(message.contains(&at(5, 6)) && message.contains("a second route"), "{message}");
    assert!(refused("[punt]\nno-route = 5\n").contains("limits what a kernel gets"));
}

#[test]
fn keys_of_a_router_with_a_kernel_are_refused() {
    for setting in ["wait = true", "bypass-filters = true", "netlink-buffer = 4096"] {
        let text = small().replace("kernel = false\n", &format!("kernel = false\n{setting}\n"));
        let key = setting.split(' ').next().unwrap();
        let said = message(&parse(&text).unwrap_err());
        assert!(said.contains(&format!("router.{key}: without a kernel it has no effect")), "{said}");
    }
    let filter = "[filter]\nlanguage = \"pf\"\nfile = \"rules\"\nkernel-flows = 0\n";
    assert!(refused(filter).contains("filter.kernel-flows: without a kernel"));
}

#[test]
fn impossible_interfaces_are_refused() {
    let with = |from: &str, to: &str| {
        let text = small().replace(from, to);
        message(&parse(&text).unwrap_err())
    };
    for (from, to, words) in [
        ("mtu = 2000", "mtu = 9000", "interface.t1.mtu: 9000 is not possible"),
        ("mtu = 2000", "table = 255", "255 cannot be a table's"),
        ("mtu = 2000", "mac = \"03:00:00:00:00:01\"", "not a station's address"),
        ("198.51.100.1/31", "198.51.100.1/33", "198.51.100.1/33"),
        ("198.51.100.1/31", "224.0.0.1/24", "not a station's address"),
        ("198.51.100.1/31", "198.51.100.0/24", "address of the network or its broadcast"),
        ("198.51.100.1/31", "192.0.2.1/24", "another interface has 192.0.2.1 already"),
        ("port = \"tap\"", "port = \"packet\"", "`tap` ports"),
        ("port = \"tap\"", "port = \"tap\"\nengine = \"xdp\"", "only `threads`"),
        ("port = \"tap\"", "port = \"auto\"", "`tap` ports"),
        ("mtu = 2000", "port = \"xdp\"\nmac = \"02:00:00:00:00:01\"", "the card has one"),
        ("kernel = false", "", "only a router with `kernel = false`"),
        ("\"t0\", ", "\"../../x\", \"t0\", ", "\"../../x\" cannot be"),
        ("port = \"tap\"", "port = \"tap\"\nworkers = 2\ncores = [0]", "router.cores: name as many"),
        ("port = \"tap\"", "port = \"tap\"\ncores = [100000]", "may not run on core 100000"),
    ] {
        let message = with(from, to);
        assert!(message.contains(words), "{to}: {message}");
    }
    assert!(refused("[interface.\"t1.05\"]\n").contains("nor a VLAN of one"));
    let neighbor = "[[neighbor]]\naddress = \"192.0.2.9\"\ndev = \"t0\"\nmac = \"02:00:00:00:00:09\"\n";
    assert!(refused(&neighbor.repeat(2)).contains("a second neighbor"));
    assert!(refused("[interface.\"t1.4095\"]\n").contains("nor a VLAN of one"));
    assert!(
        refused("[interface.\"t1.5\"]\nmac = \"02:00:00:00:00:09\"\n").contains("has the port and the MAC")
    );
    assert!(refused("[feed]\nfile = \"x\"\ngateways = [\"10.9.9.9\"]\n").contains("in no network"));
}

#[test]
fn the_same_addresses_may_stand_in_two_tables() {
    let plan = plan(
        "[interface.\"t1.5\"]\naddress = [\"192.0.2.1/24\"]\ntable = 5\n[[route]]\nto = \"0.0.0.0/0\"\nvia = \"192.0.2.9\"\ntable = 5\n",
    );
    let RouteAction::Forward(ways) = &plan.routes[0].action else { panic!("it forwards") };
    assert_eq!(ways.hops()[0].link, plan::vlan_link(1, 5));
}

#[test]
fn a_reload_cannot_change_the_mac_or_the_mtu() {
    let before = parse(&small()).unwrap();
    let same = parse(&(small() + "[[route]]\nto = \"10.0.0.0/8\"\nkind = \"blackhole\"\n")).unwrap();
    assert!(frozen_differences(&before, &same).is_empty());
    let differs = |text: &str| frozen_differences(&before, &parse(text).unwrap());
    assert_eq!(differs(&small().replace("2000", "1400")), ["interface.t1.mtu"]);
    assert_eq!(differs(&(small() + "mac = \"02:00:00:00:00:07\"\n")), ["interface.t1.mac"]);
    assert_eq!(differs(&(small() + "[icmp]\nrate = 5\n")), ["icmp"]);
    assert_eq!(differs(&(small() + "[neighbors]\nquestions = 5\n")), ["neighbors"]);
    let given = macs(&parse(&(small() + "mac = \"02:00:00:00:00:07\"\n")).unwrap());
    assert_eq!(given, [None, Some("02:00:00:00:00:07".parse().unwrap())]);
}
