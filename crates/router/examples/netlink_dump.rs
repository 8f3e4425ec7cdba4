//! Dumps the kernel's IPv4 routes and decodes them in two ways: attribute by attribute, as the router does, and by the
//! messages of `netlink-packet-route`, which the router does not use because one odd attribute rejects a whole message.
//! The dumps of both take turns; the figures are medians of the processor time that this thread used, the kernel's part
//! of it included, so that other programs disturb them little.
//!
//! `cargo run --release -p fullview-router --example netlink_dump -- ROUNDS`, in a network namespace with many routes.
#![allow(clippy::unwrap_used, clippy::panic)] // a measurement fails by panicking

use std::hint::black_box;
use std::time::Duration;

use fullview_router::netlink::decode::{self, Messages};
use fullview_router::netlink::event::DumpPart;
use fullview_router::netlink::request::NetlinkRequest;
use fullview_router::netlink::socket::{Received, RouteSocket};
use fullview_router::netlink::uapi;
use netlink_packet_core::{NetlinkBuffer, NetlinkMessage, Parseable};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::time::{ClockId, clock_gettime};

type Decoder = fn(&NetlinkBuffer<&[u8]>);

const DECODERS: [(&str, Decoder); 2] = [("attributes", by_attribute), ("messages", by_message)];

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(11, |rounds| rounds.parse().unwrap());
    let mut times = [const { Vec::new() }; DECODERS.len()];
    for round in 0..rounds {
        for turn in 0..DECODERS.len() {
            let decoder = (turn + round) % DECODERS.len();
            times[decoder].push(dump(DECODERS[decoder].1));
        }
    }
    for ((name, _), mut times) in DECODERS.into_iter().zip(times) {
        times.sort_unstable();
        let (time, routes) = times[times.len() / 2];
        println!("{name:12} {routes} routes in {:.3} s", time.as_secs_f64());
    }
}

/// The time that a dump and its decoding took, and the number of routes.
fn dump(decode: Decoder) -> (Duration, usize) {
    let mut socket = RouteSocket::open(&[], None).unwrap();
    let (start, mut routes) = (processor_time(), 0);
    socket.send(&NetlinkRequest::dump(DumpPart::Inet).message(uapi::NLM_F_DUMP, 1)).unwrap();
    loop {
        match socket.receive().unwrap() {
            Received::Nothing => std::thread::yield_now(),
            Received::Lost => panic!("the kernel dropped a part of a dump"),
            Received::Some(bytes) => {
                for message in Messages(bytes) {
                    if message.message_type() == uapi::NLMSG_DONE {
                        return (processor_time() - start, routes);
                    }
                    decode(&message);
                    routes += 1;
                }
            }
        }
    }
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn by_attribute(message: &NetlinkBuffer<&[u8]>) {
    black_box(decode::event(message).unwrap());
}

fn by_message(message: &NetlinkBuffer<&[u8]>) {
    let buffer = NetlinkBuffer::new_checked(&message.buffer).unwrap();
    black_box(NetlinkMessage::<RouteNetlinkMessage>::parse(&buffer).unwrap());
}
