//! The program is attached to one interface, or detached from it: those at the others stay.

use std::collections::BTreeMap;
use std::fs;

use fullview_plane::engine::{Engine, XdpPlace};
use fullview_table::Rib;
use fullview_testnet::current::ip;
use fullview_testnet::{in_namespace, may_load_programs, may_run, own_descriptors};

use super::dut::{plan, tables};

/// Indices that no other test of this process has.
const INDICES: [u32; 3] = [7001, 7002, 7003];

/// The numbers of the link and of the program by the index of the interface.
fn links() -> BTreeMap<u32, [u32; 2]> {
    let files = fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    // Other tests of this process close files meanwhile.
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let links = texts.filter_map(|text| Some((number(&text, "ifindex")?, link(&text)?)));
    links.filter(|(index, _)| INDICES.contains(index)).collect()
}

fn link(text: &str) -> Option<[u32; 2]> {
    Some([number(text, "link_id")?, number(text, "prog_id")?])
}

fn number(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t")?.parse().ok())
}

fn add(index: u32) {
    ip(&format!("link add d{index} index {index} type veth peer name p{index}"));
}

/// Runs a test in a namespace, if this machine can load programs.
fn with_programs(test: impl FnOnce() + Send) {
    if may_load_programs() && may_run(&["ip"]) {
        in_namespace(test);
    }
}

fn other_links_stay(attach: fn(&mut Engine, u32)) {
    let [one, other, third] = INDICES;
    INDICES.into_iter().for_each(add);
    let mut engine = Engine::load().unwrap();
    INDICES.into_iter().for_each(|index| attach(&mut engine, index));
    assert_eq!(links(), BTreeMap::new(), "there are no tables yet");
    engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]).unwrap();
    let all = links();
    assert!(all.keys().eq(&INDICES), "{all:?}");
    let stay = BTreeMap::from([one, third].map(|index| (index, all[&index])));
    engine.detach(other);
    assert_eq!(links(), stay);
    engine.sync().unwrap();
    assert_eq!(links(), stay, "nothing attaches it again");
    ip(&format!("link del d{other}"));
    add(other);
    attach(&mut engine, other);
    let again = links();
    assert!(again.keys().eq(&INDICES) && again[&other] != all[&other], "{again:?}");
    assert!(stay.iter().all(|(index, link)| again[index] == *link), "{again:?}");
    INDICES.iter().for_each(|index| _ = ip(&format!("link del d{index}")));
}

#[test]
fn programs_at_other_interfaces_stay() {
    with_programs(|| {
        other_links_stay(|engine, index| engine.attach(index, XdpPlace::Driver).unwrap());
        other_links_stay(|engine, index| engine.attach_at_tcx(index).unwrap());
        if Engine::load().unwrap().reads_stripped_tags() {
            other_links_stay(|engine, index| engine.attach_reading_tags(index).unwrap());
        }
    });
}

fn serving() -> Engine {
    let mut engine = Engine::load().unwrap();
    engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]).unwrap();
    engine
}

/// An interface that goes while it is attached to is no reason to load the program for large frames, which would stay.
#[test]
fn an_interface_that_is_gone_costs_no_program() {
    with_programs(|| {
        let [there, gone, _] = INDICES;
        add(there);
        let mut engine = serving();
        engine.attach(there, XdpPlace::Driver).unwrap();
        let before = own_descriptors();
        assert!(engine.attach(gone, XdpPlace::Driver).is_err());
        assert_eq!(own_descriptors(), before);
    });
}

#[test]
fn an_interface_with_large_frames_has_the_program_for_them() {
    with_programs(|| {
        let [usual, large, _] = INDICES;
        [usual, large].into_iter().for_each(add);
        ip(&format!("link set dev p{large} mtu 9000"));
        let mut engine = serving();
        [usual, large].into_iter().for_each(|index| engine.attach(index, XdpPlace::Driver).unwrap());
        let links = links();
        assert!(links.keys().eq(&[usual, large]) && links[&usual][1] != links[&large][1], "{links:?}");
    });
}

/// Each call attaches the program where it was asked to, whatever other interfaces refuse.
#[test]
fn an_interface_that_is_refused_keeps_no_other_one_from_the_program() {
    with_programs(|| {
        let [gone, there, _] = INDICES;
        add(there);
        let mut engine = Engine::load().unwrap();
        engine.attach(gone, XdpPlace::Driver).unwrap();
        let published = engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]);
        assert!(published.is_err(), "it is refused now");
        engine.attach(there, XdpPlace::Driver).unwrap();
        assert!(links().keys().eq(&[there]), "{:?}", links());
    });
}
