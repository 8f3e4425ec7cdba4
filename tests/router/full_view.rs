//! A whole table from BIRD to BIRD to the kernel to us: every route is there, and answered as the kernel answers.
//!
//! `FULLVIEW_TABLE=full` takes the real full view where it is at hand, else a made one of that size, and tells how long
//! it took.

use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fullview_table::feed::synthetic::Synthetic;
use fullview_table::feed::write::{Dialect, Numbers, write};
use fullview_table::feed::{self, Options};
use fullview_table::{Address, Rib, Table};
use fullview_testnet::{Node, cable, may_run, shared};

use crate::bird::Bird;
use crate::lab::{forward, prepare};
use crate::watch::Watch;

/// Addresses asked for, of each family.
const SAMPLE: usize = 3_000;

fn table() -> Table {
    let full = std::env::var_os("FULLVIEW_TABLE").is_some_and(|value| value == "full");
    match full.then(|| shared::find("tables/full-view-2025.txt.gz")) {
        Some(Some(real)) => feed::load(&real, &Options::default()).unwrap().table,
        Some(None) => Synthetic::default().table().unwrap(),
        None => Synthetic { inet: 20_000, inet6: 5_000, ..Synthetic::default() }.table().unwrap(),
    }
}

/// Speaker 1 has the routes, 2 hands them to its kernel.
pub fn speaker(me: u8, rest: &str, policy: &str) -> String {
    let other = 3 - me;
    let session = |family: &str, own: String, peer: String| {
        format!(
            "protocol bgp {family}_peer {{ local {own} as 6450{me}; neighbor {peer} as 6450{other}; direct;\n\
             connect delay time 1; connect retry time 1; error wait time 1, 2; graceful restart on;\n\
             {family} {{ next hop keep; {policy}; }}; }}\n"
        )
    };
    let inet = session("ipv4", format!("198.18.255.{me}"), format!("198.18.255.{other}"));
    let inet6 = session("ipv6", format!("2001:2::ff0{me}"), format!("2001:2::ff0{other}"));
    format!("router id 198.18.255.{me};\n{rest}\n{inet}{inet6}")
}

/// Hands everything to the kernel, and takes nothing from it.
pub const TO_KERNEL: &str = "graceful restart wait 30;\n\
    protocol kernel { persist; graceful restart; scan time 3600; ipv4 { export all; import none; }; }\n\
    protocol kernel { persist; graceful restart; scan time 3600; ipv6 { export all; import none; }; }";

/// The two of them, with a cable in the networks of the test addresses.
pub fn pair() -> (Node, Node) {
    let (upstream, router) = (Node::new(), Node::new());
    prepare(&router);
    cable((&upstream, "eth0"), (&router, "eth1"));
    for (node, name, me) in [(&upstream, "eth0", 1), (&router, "eth1", 2)] {
        node.ip(&format!("addr add 198.18.255.{me}/15 dev {name}"));
        node.ip(&format!("addr add 2001:2::ff0{me}/48 dev {name} nodad"));
    }
    (upstream, router)
}

fn write_routes(table: &Table, folder: &Path) -> PathBuf {
    let path = folder.join("routes.conf");
    let mut out = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    write(table, Dialect::Bird(Numbers::TestAddresses), &mut out).unwrap();
    out.flush().unwrap();
    path
}

fn sample<A: Address>(rib: &Rib<A>) -> Vec<IpAddr> {
    let step = (rib.len() / SAMPLE).max(1);
    let some = rib.iter().step_by(step).flat_map(|route| [route.prefix.first(), route.prefix.last()]);
    some.map(|address| address.to_ip().into()).filter(is_plain).collect()
}

/// Addresses that mean something to the kernel before it asks its tables.
fn is_plain(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            !ip.is_multicast() && !ip.is_loopback() && ip.octets()[0] != 0 && ip.octets()[0] < 224
        }
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

#[test]
fn a_table_from_bgp_is_answered_as_the_kernel_answers() {
    if !may_run(&["ip", "bird", "birdc", "setpriv"]) {
        return;
    }
    let table = table();
    let folder = tempfile::tempdir().unwrap();
    let routes = write_routes(&table, folder.path());
    let (upstream, router) = pair();
    let mut watch = Watch::new(&router, &["eth1"], 64 << 20);
    let began = Instant::now();
    let _sender = Bird::start(
        &upstream,
        &speaker(1, &format!("include \"{}\";", routes.display()), "import none; export all"),
    );
    let receiver = Bird::start(&router, &speaker(2, TO_KERNEL, "import all; export none"));
    let (inet, inet6) = (table.inet.len(), table.inet6.len());
    receiver.wait_for("master4", inet);
    receiver.wait_for("master6", inet6);
    println!("BIRD has {inet} + {inet6} routes after {:.1} s", began.elapsed().as_secs_f64());

    let is_there =
        watch.settle_until(|mirror| mirror.report().inet >= inet && mirror.report().inet6 >= inet6);
    assert!(is_there, "{:?}", watch.mirror.report());
    println!("so have we after {:.1} s: {:?}", began.elapsed().as_secs_f64(), watch.statistics());
    assert_holds(&watch, &table);
    assert!(watch.compare(&router, &sample(&table.inet)) > 0);
    assert!(watch.compare(&router, &sample(&table.inet6)) > 0);

    let began = Instant::now();
    let program = forward(&router, "eth1", &[]);
    println!(
        "the program has everything after {:.2} s, in {}",
        began.elapsed().as_secs_f64(),
        memory(program.id())
    );
    let (code, said) = program.end("TERM");
    assert_eq!(code, Some(0), "{said}");
    println!("{said}");
}

/// Every route that was sent, and those of the link and the host.
fn assert_holds(watch: &Watch, table: &Table) {
    let tables = watch.mirror.tables();
    let (inet, inet6) = (tables.inet.rib(254).unwrap(), tables.inet6.rib(254).unwrap());
    let missing = table.inet.iter().filter(|route| inet.get(route.prefix).is_none()).count();
    let missing6 = table.inet6.iter().filter(|route| inet6.get(route.prefix).is_none()).count();
    assert_eq!((missing, missing6), (0, 0));
}

/// What the system counts as the program's own.
fn memory(id: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().to_owned()
}
