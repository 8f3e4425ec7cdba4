//! What forwarding costs by real ports, beside a loop that only moves packets from port to port.
//!
//!     cargo run --release --features bpf --example port_rates
//!
//! Generator, router and receiver take turns in one thread, in a network namespace of their own, over two cables (veth);
//! the router's turns are timed, receiving and sending included. Loop and forwarding alternate by slices. A frame is
//! 60 bytes (without FCS), IPv4; 5,000 destinations. Needs root,
//! `ip` and `ethtool`.

// An example fails by panicking.
#![allow(clippy::unwrap_used, clippy::panic)]

#[cfg(not(all(feature = "bpf", target_os = "linux")))]
fn main() {
    eprintln!("needs Linux and the feature bpf: cargo run --release --features bpf --example port_rates");
    std::process::exit(2);
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
fn main() {
    std::thread::spawn(bench::run).join().unwrap();
}

#[cfg(all(feature = "bpf", target_os = "linux"))]
mod bench {
    use std::collections::HashMap;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use fullview_plane::adjacency::{Adjacencies, Adjacency};
    use fullview_plane::burst::{Burst, Packet};
    use fullview_plane::forward::Forwarder;
    use fullview_plane::interface::Interface;
    use fullview_plane::port::Port;
    use fullview_plane::port::classify::{Classifier, IngressKey, IngressSettings, RedirectScope};
    use fullview_plane::port::link::Link;
    use fullview_plane::port::packet::{PacketOptions, PacketPort};
    use fullview_plane::port::umem::Umem;
    use fullview_plane::port::xdp::{XdpOptions, XdpPort};
    use fullview_plane::view::{TableReaders, View, ViewParts, ViewReader};
    use fullview_plane::wire::checksum::Sum;
    use fullview_plane::wire::ethernet::Mac;
    use fullview_table::fib::{Algorithm, bsearch::Bsearch, dir18::Dir18};
    use fullview_table::simd::IsaChoice;
    use fullview_table::{NextHop, Rib};

    /// Packets of a round.
    const WAVE: usize = 64;
    const ROUNDS: usize = 1000;
    const SLICES: usize = 15;
    const DESTINATIONS: u32 = 5000;
    const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 0xaa];

    pub fn run() {
        namespace();
        let (umem, mut pool) = Umem::new(8 * WAVE);
        let mut source = XdpPort::open(0, "source", &umem, XdpOptions::default()).unwrap();
        let mut classifier = Classifier::load().unwrap();
        let station = IngressSettings {
            mac: Mac(ROUTER),
            forwards_inet: true,
            forwards_inet6: true,
            leaves_tcp: false,
        };
        let place = IngressKey { interface: Link::named("in").unwrap().index(), vlan: None };
        classifier.set_ingress(&HashMap::from([(place, station)])).unwrap();
        // A socket without free slots: it drops and counts, which is the cheapest receiver there is.
        let mut sink = XdpPort::open(0, "sink", &umem, XdpOptions::default()).unwrap();
        classifier.redirect(sink.link(), RedirectScope::All, &[sink.as_fd()]).unwrap();
        {
            let mut ports = [0, 1].map(|number| {
                let name = ["in", "out"][usize::from(number)];
                XdpPort::open(number, name, &umem, XdpOptions::default()).unwrap()
            });
            let link = ports[0].link().clone();
            classifier.redirect(&link, RedirectScope::Forwardable, &[ports[0].as_fd()]).unwrap();
            println!("AF_XDP ({}):", ports[0].mode());
            compare(&mut source, &mut ports, &mut sink, &mut pool);
            classifier.release(&link);
            pool.extend(ports.into_iter().flat_map(XdpPort::close));
        }
        let filter = classifier.filter().unwrap();
        let options = PacketOptions { filter: Some(filter), ..PacketOptions::default() };
        let mut ports =
            [PacketPort::open(0, "in", options), PacketPort::open(1, "out", options)].map(Result::unwrap);
        classifier.take_from_kernel(&Link::named("in").unwrap()).unwrap();
        println!("AF_PACKET:");
        compare(&mut source, &mut ports, &mut sink, &mut pool);
    }

    /// Both ways of going from port to port, by turns.
    fn compare<P: Port<'static>>(
        source: &mut XdpPort,
        ports: &mut [P; 2],
        sink: &mut XdpPort,
        pool: &mut Vec<Packet<'static>>,
    ) {
        let mut free = Burst::new();
        free.fill(pool.drain(pool.len() - 3 * WAVE..));
        ports[0].recycle(&mut free);
        let mut router = forwarder();
        let mut forward =
            |burst: &mut Burst<'static>, out: &mut [Burst<'static>], rejected: &mut Burst<'static>| {
                router.process(burst, out, rejected);
            };
        let mut pass = |burst: &mut Burst<'static>, out: &mut [Burst<'static>], _: &mut Burst<'static>| {
            out[1].fill(burst.drain());
        };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..SLICES {
            sink.overruns().unwrap();
            times[0].push(slice(source, ports, pool, &mut pass));
            times[1].push(slice(source, ports, pool, &mut forward));
            let arrived = sink.overruns().unwrap();
            assert_eq!(arrived, 2 * (WAVE * ROUNDS) as u64, "every packet arrived");
        }
        let [pass, forward] = times.map(median);
        println!("  port to port: {pass:6.0} ns a packet, {:.3} Mpps", 1e3 / pass);
        println!("  forwarded:    {forward:6.0} ns a packet, {:.3} Mpps", 1e3 / forward);
        println!("  ratio of rates: {:.3}", pass / forward);
        let mut rest = Burst::new();
        while ports[1].reclaim(&mut rest) > 0 {
            pool.extend(rest.drain());
        }
    }

    /// The router's nanoseconds a packet.
    fn slice<P: Port<'static>>(
        source: &mut XdpPort,
        ports: &mut [P; 2],
        pool: &mut Vec<Packet<'static>>,
        route: &mut dyn FnMut(&mut Burst<'static>, &mut [Burst<'static>], &mut Burst<'static>),
    ) -> f64 {
        let (mut burst, mut out, mut free) = (Burst::new(), [Burst::new(), Burst::new()], Burst::new());
        let (mut generated, mut spent, mut next) = (Burst::new(), Duration::ZERO, 0);
        let template = template();
        for _ in 0..ROUNDS {
            generated.fill(pool.drain(pool.len() - WAVE..));
            for packet in generated.iter_mut() {
                packet.set_frame(&template);
                address(packet.frame_mut(), next);
                next = (next + 1) % DESTINATIONS;
            }
            source.transmit(&mut generated).unwrap();
            assert!(generated.is_empty());
            let begin = Instant::now();
            let mut received = 0;
            while received < WAVE {
                received += ports[0].receive(&mut burst, WAVE).unwrap();
                route(&mut burst, &mut out, &mut free);
                ports[1].transmit(&mut out[1]).unwrap();
                ports[1].reclaim(&mut free);
                ports[0].recycle(&mut free);
                assert!(begin.elapsed() < Duration::from_secs(5), "{received} of {WAVE} packets arrived");
            }
            spent += begin.elapsed();
            while pool.len() < 2 * WAVE && source.reclaim(&mut generated) > 0 {
                pool.extend(generated.drain());
            }
        }
        spent.as_nanos() as f64 / (ROUNDS * WAVE) as f64
    }

    fn forwarder() -> Forwarder {
        let mut rib = Rib::<u32>::default();
        rib.announce("198.19.0.0/16".parse().unwrap(), NextHop(1));
        let mut adjacencies = Adjacencies::new();
        adjacencies.set(NextHop(1), Adjacency::Neighbor { interface: 1, mac: Mac([2, 0, 0, 0, 0, 0xbb]) });
        let interfaces = [0, 1].map(|port| Interface::new(port, Mac(ROUTER)));
        let inet = Dir18(IsaChoice::Best).compile(&rib).unwrap().fib();
        let inet6 = Bsearch.compile(&Rib::<u128>::default()).unwrap().fib();
        let parts = ViewParts::new(interfaces.into(), adjacencies, TableReaders::fixed(inet, inet6));
        Forwarder::new(ViewReader::fixed(View::new(parts).unwrap()))
    }

    fn template() -> [u8; 60] {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&ROUTER);
        frame[6..16].copy_from_slice(&[2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0]);
        frame[16..24].copy_from_slice(&[0, 46, 0, 7, 0, 0, 64, 17]);
        frame[26..32].copy_from_slice(&[198, 18, 0, 1, 198, 19]);
        frame
    }

    fn address(frame: &mut [u8], number: u32) {
        frame[32..34].copy_from_slice(&(number as u16).to_be_bytes());
        frame[24..26].copy_from_slice(&[0, 0]);
        let checksum = Sum::ZERO.bytes(&frame[14..34]).checksum();
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    }

    fn median(mut times: Vec<f64>) -> f64 {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }

    #[allow(deprecated)] // it is unsafe only where file descriptors or memory are unshared
    fn namespace() {
        rustix::thread::unshare(rustix::thread::UnshareFlags::NEWNET).unwrap();
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        for arguments in [
            "link add in address 02:00:00:00:00:aa type veth peer name source",
            "link add out address 02:00:00:00:00:aa type veth peer name sink",
        ] {
            ip(arguments);
        }
        for interface in ["in", "source", "out", "sink"] {
            ip(&format!("link set dev {interface} up"));
            run_program("ethtool", &format!("-K {interface} rxvlan off"));
        }
    }

    fn ip(arguments: &str) {
        run_program("ip", arguments);
    }

    fn run_program(program: &str, arguments: &str) {
        let status = Command::new(program).args(arguments.split_whitespace()).status().unwrap();
        assert!(status.success(), "{program} {arguments}");
    }
}
