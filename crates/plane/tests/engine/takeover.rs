//! A program of another engine, as of another process, takes the place of a program by its link.

use fullview_plane::engine::{Engine, XdpPlace};
use fullview_plane::port::link::Link;
use fullview_table::Rib;
use fullview_testnet::current::command;
use fullview_testnet::{in_namespace, may_load_programs, may_run};

use super::dut::{plan, tables};

/// The number of the program on the device.
fn on_device() -> Option<u32> {
    let shown = command("ip link show d0");
    shown.split("prog/xdp id ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok())
}

fn number(engine: &mut Engine) -> Option<u32> {
    Some(engine.program().unwrap().info().unwrap().id())
}

fn publish(engine: &mut Engine) {
    engine.publish(&plan(1), vec![tables(&Rib::default(), &Rib::default())]).unwrap();
}

#[test]
fn a_program_takes_anothers_place_and_gives_it_back() {
    if !(may_load_programs() && may_run(&["ip"])) {
        return;
    }
    in_namespace(|| {
        command("ip link add d0 type veth peer name d1");
        let index = Link::named("d0").unwrap().index();
        let (mut running, mut next) = (Engine::load().unwrap(), Engine::load().unwrap());
        running.attach(index, XdpPlace::Driver).unwrap();
        publish(&mut running);
        assert_eq!(on_device(), number(&mut running));
        assert!(running.link(index + 1).unwrap().is_none());
        next.await_links();
        next.attach(index, XdpPlace::Driver).unwrap();
        publish(&mut next);
        assert_eq!(on_device(), number(&mut running), "the other program waits for the link");
        let link = running.link(index).unwrap().unwrap();
        next.take_links([(index, link)].into()).unwrap();
        assert_eq!(on_device(), number(&mut next));
        running.settle().unwrap();
        running.take_back().unwrap();
        assert_eq!(on_device(), number(&mut running));
        let link = running.link(index).unwrap().unwrap();
        drop(next);
        assert_eq!(on_device(), number(&mut running), "the link has another owner");
        let mut last = Engine::load().unwrap();
        last.await_links();
        last.attach(index, XdpPlace::Driver).unwrap();
        publish(&mut last);
        last.take_links([(index, link)].into()).unwrap();
        drop(running);
        assert_eq!(on_device(), number(&mut last));
        drop(last);
        assert_eq!(on_device(), None);
    });
}
