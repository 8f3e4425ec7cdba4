//! A worker that drives its host stack, between memory ports.

use fullview_plane::wire::icmp::Icmpv4Kind;
use std::time::Duration;

use fullview_plane::burst::{Arena, BURST, Burst};
use fullview_plane::forward::Forwarder;
use fullview_plane::interface::Interface;
use fullview_plane::port::Port;
use fullview_plane::port::memory::{MemoryPort, pair};
use fullview_plane::wire::arp::ArpOperation;
use fullview_plane::worker::{Rejected, SlowPath, Worker, Yield};
use fullview_router::host::HostStack;
use fullview_router::host::config::StaticNeighbor;
use fullview_router::host::local_host::LocalHost;
use fullview_router::host::output::Output;

use crate::support::*;

/// The frames that arrived at the far end of a cable.
fn received(port: &mut MemoryPort<'_>) -> Vec<Vec<u8>> {
    let mut burst = Burst::new();
    port.receive(&mut burst, BURST).unwrap();
    let frames = burst.iter().map(|packet| packet.frame().to_vec()).collect();
    port.recycle(&mut burst);
    frames
}

#[test]
fn a_worker_answers_through_its_host_stack() {
    let mut arena = Arena::new(64);
    let ((inside, mut outside), (other_inside, mut other_outside)) = (pair([0, 9], 64), pair([1, 9], 64));
    let mut packets = arena.packets();
    let mut sent = Burst::new();
    let requests = [
        arp(ArpOperation::Request, "10.0.0.9", "10.0.0.1"),
        echo("10.0.0.9", "10.0.0.1"),
        inet("10.0.0.9", "198.18.0.1", 1),
        inet("10.0.0.9", "198.18.0.1", 9),
    ];
    for (slot, frame) in packets.by_ref().zip(&requests) {
        slot.set_frame(frame);
        sent.push(slot).unwrap();
    }
    let host = HostStack::new(Duration::ZERO, &config()).unwrap();
    let forwarder = Forwarder::new(host.reader());
    let local_host = LocalHost::new(host, || Duration::from_millis(1));
    let mut worker =
        Worker::new(forwarder, vec![Some(inside), Some(other_inside)], packets, local_host, Yield);

    let mut announced = (0, 0);
    for _ in 0..20 {
        assert_eq!(worker.round().unwrap(), 0);
        announced.0 += received(&mut outside).len();
        announced.1 += received(&mut other_outside).len();
    }
    assert_eq!(announced, (6, 3), "addresses are announced as slots become free");
    outside.transmit(&mut sent).unwrap();
    assert_eq!(worker.round().unwrap(), requests.len());
    let out = received(&mut outside);
    let [answer, reply, error] = &out[..] else { panic!("{out:?}") };
    assert_eq!(arp_of(answer).sender, v4("10.0.0.1").to_bits());
    assert_eq!((icmp_of(reply).2, icmp_of(error).2), (Icmpv4Kind::EchoReply, Icmpv4Kind::TimeExceeded));
    let request = received(&mut other_outside);
    assert_eq!((request.len(), arp_of(&request[0]).target), (1, v4("10.0.1.2").to_bits()), "the gateway");
    assert_eq!(worker.slow().frames_dropped(), 0);
}

/// Counts the redirect candidates that the worker reports.
struct CandidateCount(usize);

impl SlowPath for CandidateCount {
    fn take(&mut self, rejected: Rejected<'_, '_>) {
        self.0 += rejected.redirects.len();
    }
}

#[test]
fn a_redirect_candidate_is_reported_once() {
    let mut arena = Arena::new(16);
    let (inside, mut outside) = pair([0, 9], 16);
    let mut packets = arena.packets();
    let mut redirecting = config();
    redirecting.interfaces[0] = Interface { redirects: true, ..interface(0) };
    redirecting.neighbors.push(StaticNeighbor { interface: 0, ip: v4("10.0.0.8").into(), mac: STATION });
    let mut host = HostStack::new(Duration::ZERO, &redirecting).unwrap();
    host.tick(Duration::from_secs(1), &mut Output::default());
    let forwarder = Forwarder::new(host.reader());
    let mut sent = Burst::new();
    let slot = packets.next().unwrap();
    slot.set_frame(&inet("10.0.0.9", "10.0.0.8", 9));
    sent.push(slot).unwrap();
    outside.transmit(&mut sent).unwrap();
    let mut worker = Worker::new(forwarder, vec![Some(inside)], packets, CandidateCount(0), Yield);
    let rounds: usize = (0..9).map(|_| worker.round().unwrap()).sum();
    assert_eq!((rounds, received(&mut outside).len(), worker.slow().0), (1, 1, 1));
}
