//! TAP interfaces in a namespace, with a packet socket at the kernel's end.

use std::thread;
use std::time::Duration;

use fullview_plane::burst::{Arena, BURST, Burst, FRAME_CAPACITY};
use fullview_plane::port::packet::{PacketOptions, PacketPort};
use fullview_plane::port::tap::TapPort;
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_testnet::current::{interfaces, ip};
use fullview_testnet::in_namespace;

use crate::conformance::{
    Pool, SLOTS, carries_everything_in_order, carry, error_of, frame, keeps_tags, send,
};

/// A port and the kernel's end of it.
fn bench<'a>(name: &str) -> (TapPort<'a>, PacketPort<'a>) {
    let ours = TapPort::create(6, name).unwrap();
    ip(&format!("link set dev {} mtu {} up", ours.link().name(), FRAME_CAPACITY - 14));
    let theirs = PacketPort::open(7, ours.link().name(), PacketOptions::default()).unwrap();
    (ours, theirs)
}

#[test]
fn tap_ports_conform() {
    in_namespace(|| {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut ours, mut theirs) = bench("fv%d");
        assert_eq!(ours.link().name(), "fv0");
        let ports: [&mut dyn Port<'_>; 2] = [&mut ours, &mut theirs];
        carries_everything_in_order(ports, &mut pool, 14..=FRAME_CAPACITY);
        keeps_tags(&mut ours, &mut theirs, &mut pool);
        keeps_tags(&mut theirs, &mut ours, &mut pool);
        assert_eq!(ours.losses(), PortLosses::default());
    });
}

#[test]
fn no_more_frames_wait_for_a_tap_port_than_it_says() {
    in_namespace(|| {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut ours, mut theirs) = bench("ours");
        for _ in 0..10 {
            let mut burst = pool.take(BURST / 2);
            burst.iter_mut().for_each(|packet| assert!(packet.set_frame(&frame(1, 60))));
            send(&mut theirs, &mut burst);
            theirs.reclaim(&mut burst);
            pool.give(&mut burst);
        }
        let mut waited = 0;
        loop {
            ours.recycle(&mut pool.take(BURST));
            let mut burst = Burst::new();
            let received = ours.receive(&mut burst, BURST).unwrap();
            if received == 0 {
                break;
            }
            waited += received;
            pool.give(&mut burst);
        }
        assert_eq!(waited, ours.undated(), "the queue was full");
    });
}

/// The kernel may remove an interface a moment after its file was closed.
fn goes(name: &str) -> bool {
    (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        !interfaces().iter().any(|interface| interface == name)
    })
}

#[test]
fn a_tap_interface_exists_as_long_as_its_port_which_reports_down_and_removed() {
    in_namespace(|| {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let (mut ours, mut theirs) = bench("ours");
        ip("link set dev ours down");
        let mut burst = pool.take(1);
        burst[0].set_frame(&frame(1, 60));
        assert!(matches!(ours.transmit(&mut burst), Err(PortError::Down { .. })));
        assert_eq!((burst.len(), ours.refused()), (1, 1));
        pool.give(&mut burst);
        ip("link set dev ours up");
        let frames = [frame(1, 60)];
        assert_eq!(carry(&mut ours, &mut theirs, &mut pool, &frames), frames);
        drop(ours);
        assert!(goes("ours"));
        let (mut ours, _theirs) = bench("ours");
        ip("link del dev ours");
        ours.recycle(&mut pool.take(1));
        error_of(&mut ours, |error| matches!(error, PortError::Removed { .. }));
        assert!(ours.is_finished());
    });
}

#[test]
fn a_tap_interface_has_a_queue_for_each_worker_and_long_frames_are_left_out() {
    in_namespace(|| {
        let mut arena = Arena::new(SLOTS);
        let mut pool = Pool::new(&mut arena);
        let mut workers = TapPort::create_group(1, "queues", 2).unwrap();
        ip("link set dev queues mtu 9000 up");
        ip("address add 198.18.0.1/24 dev queues");
        ip("neighbour add 198.18.0.2 lladdr 02:00:00:00:00:02 dev queues");
        for worker in &mut workers {
            worker.recycle(&mut pool.take(100));
        }
        let fits = FRAME_CAPACITY - 42;
        for (port, len) in (3000..3040).zip([fits, fits + 1].into_iter().cycle()) {
            let socket = std::net::UdpSocket::bind(("198.18.0.1", port)).unwrap();
            socket.send_to(&vec![7; len], "198.18.0.2:9").unwrap();
        }
        let mut received = [0; 2];
        for (worker, received) in workers.iter_mut().zip(&mut received) {
            let mut burst = Burst::new();
            worker.receive(&mut burst, 100).unwrap();
            assert!(burst.iter().all(|packet| packet.frame_len() == FRAME_CAPACITY && packet.port == 1));
            *received = burst.len();
        }
        assert!(received.iter().all(|count| *count > 0), "both workers receive packets: {received:?}");
        assert_eq!(received.iter().sum::<usize>(), 20);
        assert_eq!(workers.iter_mut().map(|port| port.losses().too_long).sum::<u64>(), 20);
        let error = TapPort::create(0, "a-name-of-more-than-15-bytes").err().unwrap().to_string();
        assert!(error.contains("at most 15 bytes"), "{error}");
    });
}
