//! A whole table goes from BIRD to BIRD, to the kernel and to us: we have every route, and our lookups agree with the
//! kernel's.
//!
//! With `FULLVIEW_TABLE=full`, the test uses the real full view if the data is there, else a synthetic one of that size. It
//! prints how long each step took.

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

/// The number of addresses that are looked up, of each family.
const SAMPLE: usize = 3_000;

pub fn table() -> Table {
    let full = std::env::var_os("FULLVIEW_TABLE").is_some_and(|value| value == "full");
    match full.then(|| shared::find("tables/full-view-2025.txt.gz")) {
        Some(Some(real)) => feed::load(&real, &Options::default()).unwrap().table,
        Some(None) => Synthetic::default().table().unwrap(),
        None => Synthetic { inet: 20_000, inet6: 5_000, ..Synthetic::default() }.table().unwrap(),
    }
}

/// Returns the configuration of a BGP speaker. Speaker 1 has the routes; speaker 2 exports them to its kernel.
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

/// Exports everything to the kernel, and imports nothing from it.
pub const TO_KERNEL: &str = "graceful restart wait 30;\n\
    protocol kernel { persist; graceful restart; scan time 3600; ipv4 { export all; import none; }; }\n\
    protocol kernel { persist; graceful restart; scan time 3600; ipv6 { export all; import none; }; }";

/// Makes two nodes with a cable, whose networks are those of the test addresses.
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

pub fn write_routes(table: &Table, folder: &Path) -> PathBuf {
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

/// Returns whether the kernel looks up an address in its tables, and does not treat it specially before.
fn is_plain(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            !ip.is_multicast() && !ip.is_loopback() && ip.octets()[0] != 0 && ip.octets()[0] < 224
        }
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

#[test]
fn lookups_in_a_table_from_bgp_agree_with_the_kernel() {
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
    println!("we have them after {:.1} s: {:?}", began.elapsed().as_secs_f64(), watch.statistics());
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

/// Checks that our tables hold every route that was sent.
fn assert_holds(watch: &Watch, table: &Table) {
    let tables = watch.mirror.tables();
    let (inet, inet6) = (tables.inet.rib(254).unwrap(), tables.inet6.rib(254).unwrap());
    let missing = table.inet.iter().filter(|route| inet.get(route.prefix).is_none()).count();
    let missing6 = table.inet6.iter().filter(|route| inet6.get(route.prefix).is_none()).count();
    assert_eq!((missing, missing6), (0, 0));
}

/// Returns the resident memory of a process.
fn memory(id: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().to_owned()
}
