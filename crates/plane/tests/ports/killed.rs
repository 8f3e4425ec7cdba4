//! A killed process leaves no program and no TAP interface behind, and the kernel forwards again.

use std::thread;
use std::time::Duration;

use fullview_plane::burst::Arena;
use fullview_plane::port::classify::RedirectScope;
use fullview_plane::port::tap::TapPort;
use fullview_plane::port::umem::Umem;
use fullview_plane::port::xdp::{XdpOptions, XdpPort};
use fullview_testnet::current::{interfaces, keep_tags};
use fullview_testnet::{Program, in_namespace};

use crate::classify::{arrived, classifier, open, open_in, plain, put, routing_kernel};
use crate::conformance::Pool;

/// Marks the child process.
const CHILD: &str = "FULLVIEW_TEST_HOLDS_PORTS";

const TEST: &str = "killed::a_process_that_is_killed_leaves_nothing_behind";

#[test]
fn a_process_that_is_killed_leaves_nothing_behind() {
    if std::env::var_os(CHILD).is_some() {
        return hold_ports_until_killed();
    }
    in_namespace(|| {
        routing_kernel();
        ["in", "out"].iter().for_each(|interface| keep_tags(interface));
        let mut arena = Arena::new(1000);
        let mut pool = Pool::new(&mut arena);
        let (mut source, mut sink) = (open("source"), open("sink"));
        // A child is in the namespace of the thread that starts it.
        let this = std::env::current_exe().unwrap();
        let arguments = [&format!("{CHILD}=1"), this.to_str().unwrap(), "--exact", TEST, "--nocapture"];
        let mut child = Program::start("env", &arguments);
        child.wait_for("ports are open");
        put(&mut source, &mut pool, &plain());
        let forwarded = arrived(&mut sink, &mut pool);
        let there = interfaces().contains(&"ours".to_owned());
        child.end("KILL");
        assert!(there && forwarded.is_empty(), "the child had taken over: {forwarded:02x?}");

        let gone = (0..200).any(|_| {
            put(&mut source, &mut pool, &plain());
            thread::sleep(Duration::from_millis(5));
            arrived(&mut sink, &mut pool).len() == plain().len() && !interfaces().contains(&"ours".to_owned())
        });
        assert!(gone, "the kernel forwards again");
        // The next process can take the interfaces over.
        let (umem, _packets) = Umem::new(1);
        let mut classifier = classifier();
        for interface in ["in", "out"] {
            let port = XdpPort::open(0, interface, &umem, XdpOptions::default()).unwrap();
            classifier.redirect(port.link(), RedirectScope::Forwardable, &[port.as_fd()]).unwrap();
        }
    });
}

/// Takes the packets of `in` by a packet socket, and those of `out` by AF_XDP.
fn hold_ports_until_killed() {
    let mut classifier = classifier();
    let (umem, _packets) = Umem::new(100);
    let xdp = XdpPort::open(1, "out", &umem, XdpOptions::default()).unwrap();
    classifier.redirect(xdp.link(), RedirectScope::Forwardable, &[xdp.as_fd()]).unwrap();
    let _packet = open_in(&mut classifier);
    let _tap = TapPort::create(2, "ours").unwrap();
    println!("ports are open");
    thread::sleep(Duration::from_secs(600)); // the test kills this process long before
}
