use std::num::NonZeroU32;
use std::time::Duration;

use fullview_plane::interface::SourceCheck;
use fullview_plane::verdict::LimitedReason;

use super::to_options::{port_options, threads_only};
use super::*;
use crate::error::message;
use crate::options::{PortName, PuntRates};

const SMALL: &str = "[router]\ninterfaces = [\"eth1\", \"eth2\"]\n";

fn refused(text: &str) -> String {
    message(&parse(text).unwrap_err())
}

#[test]
fn a_wrong_value_is_refused_with_its_place() {
    let unknown = refused(&format!("{SMALL}speed = 9\n"));
    assert!(unknown.contains("line 3, column 1") && unknown.contains("`speed`"), "{unknown}");
    assert!(refused("[router]\ninterfaces = \"eth1\"\n").contains("line 2, column 14"));
    assert!(refused(&format!("{SMALL}[interface.eth3]\n")).contains("interface.eth3"));
    assert!(refused(&format!("{SMALL}[interface.eth1]\nsource-check = \"often\"\n")).contains("line 4"));
    assert!(refused(&format!("{SMALL}algorithm = \"fastest\"\n")).contains("\"fastest\""));
    assert!(refused(&format!("{SMALL}[metrics]\nlisten = \"9100\"\n")).contains("line 4, column 10"));
    assert!(refused(&format!("{SMALL}[export]\nsflow = \"192.0.2.9\"\n")).contains("line 4, column 9"));
    let no_port = format!("{SMALL}[export]\nsflow = \"192.0.2.9:0\"\n");
    assert!(refused(&no_port).contains("export.sflow: 192.0.2.9:0 has no port"));
    let never = format!("{SMALL}[export]\nsflow = \"192.0.2.9:6343\"\nsample = 0\n");
    assert!(refused(&never).contains("line 5, column 10"));
    let nowhere = format!("{SMALL}[export]\nsample = 9\n");
    assert!(refused(&nowhere).contains("export: name a collector, sflow or ipfix"));
    assert!(refused("[router]\ninterfaces = [\"eth1\", \"eth1\"]\n").contains("named twice"));
    assert!(refused(&format!("{SMALL}workers = 257\n")).contains("1 to 256"));
    assert!(refused(&format!("{SMALL}netlink-buffer = 2_147_483_648\n")).contains("2147483647 bytes"));
    let busy = |key: &str| refused(&format!("{SMALL}port = \"xdp\"\n[xdp]\n{key}\n"));
    assert!(busy("busy-poll-us = 2_147_483_648").contains("2147483647 at most"));
    assert!(busy("busy-poll-budget = 65_536").contains("65535 at most"));
    assert!(refused(&format!("{SMALL}[control]\nname = \"../edge\"\n")).contains("without /"));
    assert!(refused(&format!("{SMALL}[interface.\"eth1.7\"]\nport = \"xdp\"\n")).contains("a VLAN has"));
    assert!(refused(&format!("{SMALL}[xdp]\nneed-wakeup = false\n")).contains("there are none"));
    assert!(refused(&format!("{SMALL}[punt]\nno-route = 0\n")).contains("line 4, column 12"));
}

#[test]
fn what_the_kernel_has_is_refused_beside_it() {
    for setting in ["mtu = 1400", "redirects = true", "address = [\"192.0.2.1/24\"]"] {
        let said = refused(&format!("{SMALL}[interface.eth1]\n{setting}\n"));
        let key = setting.split(' ').next().unwrap();
        assert!(said.contains(&format!("interface.eth1.{key}: the kernel has that")), "{said}");
    }
}

#[test]
fn each_core_is_named_once() {
    let said = refused(&format!("{SMALL}workers = 2\ncores = [0, 0]\n"));
    assert!(said.contains("router.cores: core 0 is there twice"), "{said}");
}

#[test]
fn what_only_threads_have_is_refused_with_a_program() {
    for engine in ["tc", "xdp", "xdp-generic"] {
        for (settings, key) in [
            ("port = \"auto\"\n", "router.port"),
            ("[interface.eth1]\nport = \"packet\"\n", "router.port"),
            ("workers = 2\n", "router.workers"),
            ("cores = [0]\n", "router.cores"),
            ("algorithm = \"dxr\"\n", "router.algorithm"),
            ("[filter]\nlanguage = \"pf\"\nfile = \"pf.conf\"\n", "filter"),
        ] {
            let said = refused(&format!("{SMALL}engine = \"{engine}\"\n{settings}"));
            assert!(said.contains(&format!("{key}: only threads have that")), "{said}");
        }
    }
}

#[test]
fn packets_are_captured_and_sampled_with_every_engine() {
    for engine in ["threads", "tc", "xdp", "xdp-generic", "auto"] {
        for settings in ["[capture]\ndrops = \"drops.pcapng\"\n", "[export]\nipfix = \"192.0.2.9:4739\"\n"] {
            let config = parse(&format!("{SMALL}engine = \"{engine}\"\n{settings}")).unwrap();
            assert_eq!(threads_only(&config), None, "{engine}: {settings}");
        }
    }
}

#[test]
fn the_kernel_gets_as_many_packets_as_configured_or_usual() {
    let rates = |text: &str| router_options(&parse(&format!("{SMALL}{text}")).unwrap()).unwrap().punts;
    let of = |rates: &PuntRates| {
        LimitedReason::ALL
            .iter()
            .map(|reason| (rates.of_worker(*reason).get(), rates.of_program(*reason).map(NonZeroU32::get)))
            .collect::<Vec<_>>()
    };
    let usual = PuntRates::USUAL.get();
    assert_eq!(
        of(&rates("")),
        [(usual, None), (usual, Some(usual)), (usual, None), (usual, None), (usual, None)]
    );
    let all = "[punt]\nno-route = 1\nttl-expired = 2\ndiscarded = 3\nno-neighbor = 4\ntoo-big = 5\n";
    let configured = [(1, Some(1)), (2, Some(2)), (3, Some(3)), (4, None), (5, None)];
    assert_eq!(of(&rates(all)), configured);
}

#[test]
fn a_reload_may_change_some_keys_and_not_others() {
    let before = parse(SMALL).unwrap();
    let after = parse(&format!(
        "{SMALL}algorithm = \"poptrie\"\n[interface.\"eth1.7\"]\nsource-check = \"strict\"\n[framework]\nmax-sync-delay-ms = 5\n"
    ))
    .unwrap();
    assert!(frozen_differences(&before, &after).is_empty());
    let live = live_options(&after).unwrap();
    assert_eq!(live.algorithm.as_deref(), Some("poptrie"));
    assert_eq!(live.framework.max_sync_delay, Duration::from_millis(5));
    assert_eq!(live.policies["eth1.7"].source_check, SourceCheck::Strict);
    let socket = parse(&format!("{SMALL}[interface.eth2]\nport = \"xdp\"\n")).unwrap();
    assert_eq!(port_options(&socket).kinds, [PortName::Packet, PortName::Xdp]);
    assert_eq!(frozen_differences(&before, &socket), ["interface.eth2.port"]);
    let usual = parse(&format!("{SMALL}[interface.eth2]\nport = \"packet\"\n")).unwrap();
    assert_eq!(frozen_differences(&before, &usual), ["interface.eth2.port"]);
    let engine = parse(&format!("{SMALL}engine = \"xdp\"\n")).unwrap();
    assert_eq!(frozen_differences(&before, &engine), ["router.engine"]);
    let punts = parse(&format!("{SMALL}[punt]\ntoo-big = 9\n")).unwrap();
    assert_eq!(frozen_differences(&before, &punts), ["punt"]);
    let other =
        parse("[router]\ninterfaces = [\"eth1\"]\nworkers = 2\n[control]\nname = \"edge\"\n").unwrap();
    assert_eq!(frozen_differences(&before, &other), ["router.interfaces", "router.workers", "control"]);
    let filter = |keys: &str| {
        parse(&format!("{SMALL}[filter]\nlanguage = \"pf\"\nfile = \"pf.conf\"\n{keys}")).unwrap()
    };
    assert_eq!(frozen_differences(&filter(""), &filter("kernel-flows = 0\n")), ["filter.kernel-flows"]);
}
