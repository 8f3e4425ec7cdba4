//! AF_XDP sockets in a namespace with a veth pair.

use std::thread;
use std::time::{Duration, Instant};

use fullview_plane::burst::{BURST, Burst, FRAME_CAPACITY};
use fullview_plane::port::classify::{Classifier, RedirectScope};
use fullview_plane::port::link::Link;
use fullview_plane::port::umem::Umem;
use fullview_plane::port::xdp::{BusyPoll, CopyMode, CopyPolicy, XdpOptions, XdpPort};
use fullview_plane::port::{Port, PortError};
use fullview_testnet::current::{cable, ip, keep_tags, wait_until_up};
use fullview_testnet::{eventually, in_namespace};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::classify::{answers, cases, classifier, open, routing_kernel};
use crate::conformance::{
    Pool, carries_everything_in_order, carry, error_of, frame, keeps_tags, receive, send,
};

/// More packets than all ports of a test hold.
const SLOTS: usize = 3000;

/// Two connected ports for frames as long as a slot.
fn bench(umem: &Umem, options: XdpOptions) -> (Classifier, [XdpPort; 2]) {
    cable("left", "right", FRAME_CAPACITY);
    let mut classifier = Classifier::load().unwrap();
    let mut port = |number, name| {
        keep_tags(name);
        let port = XdpPort::open(number, name, umem, options).unwrap();
        classifier.redirect(port.link(), RedirectScope::All, &[port.as_fd()]).unwrap();
        port
    };
    let ports = [port(3, "left"), port(4, "right")];
    (classifier, ports)
}

#[test]
fn xdp_ports_conform() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (_classifier, [mut left, mut right]) = bench(&umem, XdpOptions::default());
        assert_eq!(left.mode(), CopyMode::Copy);
        let ports: [&mut dyn Port<'_>; 2] = [&mut left, &mut right];
        carries_everything_in_order(ports, &mut pool, 14..=FRAME_CAPACITY);
        keeps_tags(&mut left, &mut right, &mut pool);
        assert_eq!((left.overruns().unwrap(), right.overruns().unwrap()), (0, 0));
    });
}

#[test]
fn xdp_ports_conform_with_busy_polling_and_without_wakeups() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let busy_poll = Some(BusyPoll { micros: 20, budget: 64 });
        let options = XdpOptions { need_wakeup: false, busy_poll, ..XdpOptions::default() };
        let (_classifier, [mut left, mut right]) = bench(&umem, options);
        let ports: [&mut dyn Port<'_>; 2] = [&mut left, &mut right];
        carries_everything_in_order(ports, &mut pool, [14, 60, 1514, FRAME_CAPACITY].into_iter());
    });
}

#[test]
fn xdp_ports_survive_a_link_that_is_down_and_report_a_removed_one() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (_classifier, [mut left, mut right]) = bench(&umem, XdpOptions::default());
        ip("link set dev right down");
        error_of(&mut right, |error| matches!(error, PortError::Down { .. }));
        ip("link set dev right up");
        wait_until_up(&["left", "right"]);
        let frames = [frame(1, 60)];
        assert_eq!(carry(&mut left, &mut right, &mut pool, &frames), frames);
        ip("link del dev right");
        error_of(&mut right, |error| matches!(error, PortError::Removed { .. }));
        assert!(right.is_finished());
        let mut burst = pool.take(1);
        burst[0].set_frame(&frames[0]);
        assert_eq!(left.transmit(&mut burst).unwrap_err().to_string(), "interface left was removed");
    });
}

/// With busy polling each call asks the kernel, which answers that the link is down.
#[test]
fn frames_received_before_the_link_went_down_come_before_the_error() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let busy_poll = Some(BusyPoll { micros: 20, budget: 64 });
        let options = XdpOptions { busy_poll, ..XdpOptions::default() };
        let (_classifier, [mut left, mut right]) = bench(&umem, options);
        right.recycle(&mut pool.take(1));
        let mut burst = pool.take(1);
        assert!(burst[0].set_frame(&frame(1, 60)));
        send(&mut left, &mut burst);
        let mut fds = [PollFd::from_borrowed_fd(right.as_fd(), PollFlags::IN)];
        assert_eq!(poll(&mut fds, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap(), 1);
        ip("link set dev right down");
        assert_eq!((right.receive(&mut burst, BURST).unwrap(), burst[0].frame()), (1, &frame(1, 60)[..]));
        error_of(&mut right, |error| matches!(error, PortError::Down { .. }));
    });
}

#[test]
fn a_port_counts_the_frames_that_wait() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (_classifier, [mut left, mut right]) = bench(&umem, XdpOptions::default());
        right.recycle(&mut pool.take(BURST));
        let mut burst = pool.take(3);
        burst.iter_mut().for_each(|packet| assert!(packet.set_frame(&frame(1, 60))));
        send(&mut left, &mut burst);
        assert!(eventually(|| right.undated() == 3));
        assert_eq!(receive(&mut right, &mut pool, 2).len(), 2);
        assert_eq!(right.undated(), 1);
    });
}

/// The kernel sends as many frames as its ring has room to report. The others wait until the thread takes the reports, and are
/// dropped if that is late. What is sent after them comes once, and without them.
#[test]
fn frames_that_wait_while_the_thread_is_stopped_are_not_sent() {
    const RING: usize = 64;
    const WAITING: usize = 40;
    const LATER: usize = 3;
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let options = XdpOptions { ring: RING as u32, ..XdpOptions::default() };
        let (_classifier, [mut left, mut right]) = bench(&umem, options);
        for pause in [0, 1100, 0, 1100] {
            let start = Instant::now();
            send_copies(&mut left, &mut right, &mut pool, (1, RING));
            // The machine may stop the thread at any time.
            let reported = RING - left.losses().stale as usize;
            receive(&mut right, &mut pool, reported);
            send_copies(&mut left, &mut right, &mut pool, (2, WAITING));
            thread::sleep(Duration::from_millis(pause));
            reclaim(&mut left, &mut pool, RING + WAITING);
            let stale = left.losses().stale as usize;
            if pause == 0 && start.elapsed() < Duration::from_millis(800) {
                assert_eq!(stale, 0);
            } else if pause > 0 && reported == RING {
                assert_eq!(stale, WAITING);
            }
            send_copies(&mut left, &mut right, &mut pool, (3, LATER));
            reclaim(&mut left, &mut pool, LATER);
            let later = LATER - left.losses().stale as usize;
            let received = receive(&mut right, &mut pool, WAITING - stale + later);
            assert_eq!(received, [vec![frame(2, 60); WAITING - stale], vec![frame(3, 60); later]].concat());
            assert_eq!((left.has_unsent(), right.undated()), (false, 0));
        }
    });
}

/// The kernel has seen the first 32 of them.
#[test]
fn frames_that_wait_for_a_link_for_long_are_not_sent() {
    const SEEN: usize = 32;
    const UNSEEN: usize = 68;
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (_classifier, [mut left, mut right]) = bench(&umem, XdpOptions::default());
        right.recycle(&mut pool.take(SEEN + UNSEEN));
        ip("link set dev left down");
        let mut burst = pool.take(SEEN + UNSEEN);
        burst.iter_mut().for_each(|packet| assert!(packet.set_frame(&frame(1, 60))));
        assert!(matches!(left.transmit(&mut burst), Err(PortError::Down { .. })));
        assert!(!left.may_be_polled());
        thread::sleep(Duration::from_millis(1100));
        reclaim(&mut left, &mut pool, UNSEEN);
        assert_eq!(left.losses().stale as usize, UNSEEN);
        ip("link set dev left up");
        wait_until_up(&["left", "right"]);
        reclaim(&mut left, &mut pool, SEEN);
        assert_eq!(receive(&mut right, &mut pool, SEEN).len(), SEEN);
        assert_eq!((left.has_unsent(), left.may_be_polled(), right.undated()), (false, true, 0));
    });
}

/// Sends the same frame so many times from one port to another one, which gets slots for them.
fn send_copies(
    left: &mut XdpPort,
    right: &mut XdpPort,
    pool: &mut Pool<'static>,
    (number, count): (u32, usize),
) {
    let mut slots = pool.take(count);
    right.recycle(&mut slots);
    pool.give(&mut slots);
    let mut burst = pool.take(count);
    burst.iter_mut().for_each(|packet| assert!(packet.set_frame(&frame(number, 60))));
    send(left, &mut burst);
}

/// Takes so many slots back from a port.
fn reclaim(port: &mut XdpPort, pool: &mut Pool<'static>, count: usize) {
    let mut free = Burst::new();
    assert!(eventually(|| {
        port.reclaim(&mut free);
        free.len() == count
    }));
    pool.give(&mut free);
}

/// A driver may lose frames, or its link, when a program is replaced: other sockets keep the program.
#[test]
fn a_program_stays_while_its_sockets_change() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (mut classifier, [mut left, right]) = bench(&umem, XdpOptions::default());
        let link = right.link().clone();
        drop(right);
        let mut right = XdpPort::open(4, "right", &umem, XdpOptions::default()).unwrap();
        // Another program is refused, because one is attached already.
        let other = Classifier::load().unwrap().redirect(&link, RedirectScope::All, &[right.as_fd()]);
        assert!(other.is_err(), "the program is gone");
        classifier.redirect(&link, RedirectScope::All, &[right.as_fd()]).unwrap();
        let frames = [frame(1, 60), frame(2, 1000)];
        assert_eq!(carry(&mut left, &mut right, &mut pool, &frames), frames);
        classifier.release(&link);
        let others = Classifier::load().unwrap().redirect(&link, RedirectScope::All, &[right.as_fd()]);
        assert!(others.is_ok(), "the program stays behind");
    });
}

#[test]
fn impossible_options_are_refused_with_the_interface_name() {
    in_namespace(|| {
        let (umem, _packets) = Umem::new(BURST);
        cable("left", "right", 1514);
        let message = XdpPort::open(0, "left", &umem, XdpOptions::default()).err().unwrap().to_string();
        assert!(message.contains("`ethtool -K left rxvlan off`"), "{message}");
        keep_tags("left");
        let open = |options| XdpPort::open(0, "left", &umem, options);
        let refused = |options| open(options).err().unwrap().to_string();
        let message = refused(XdpOptions { copying: CopyPolicy::Never, ..XdpOptions::default() });
        assert!(message.starts_with("interface left cannot be bound to that queue by AF_XDP: "), "{message}");
        assert!(message.ends_with("this kernel or driver cannot; use another kind of port"), "{message}");
        let message = refused(XdpOptions { queue: 99, ..XdpOptions::default() });
        assert!(message.starts_with("interface left cannot be bound to that queue"), "{message}");
        let first = open(XdpOptions::default()).unwrap();
        let message = refused(XdpOptions::default());
        assert!(message.contains("another program or socket is using this interface or queue"), "{message}");
        drop(first);
        // Frames longer than a page would arrive in several buffers, which no port supports.
        for end in ["left", "right"] {
            ip(&format!("link set dev {end} mtu 9000"));
        }
        let port = open(XdpOptions::default()).unwrap();
        let attached = Classifier::load().unwrap().redirect(port.link(), RedirectScope::All, &[port.as_fd()]);
        let message = attached.unwrap_err().to_string();
        assert!(message.starts_with("interface left takes no XDP program: "), "{message}");
        assert!(message.contains("a large MTU"), "{message}");
    });
}

#[test]
fn xdp_classifies_every_frame() {
    in_namespace(|| {
        routing_kernel();
        for end in ["in", "source"] {
            ip(&format!("link set dev {end} mtu 2150"));
        }
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let mut source = open("source");
        let mut classifier = classifier();
        keep_tags("in");
        let mut port = XdpPort::open(0, "in", &umem, XdpOptions::default()).unwrap();
        let link = Link::named("in").unwrap();
        classifier.redirect(&link, RedirectScope::Forwardable, &[port.as_fd()]).unwrap();
        port.recycle(&mut pool.take(64)); // the kernel drops frames without a free slot
        for (answer, frame) in cases() {
            answers(&mut classifier, &mut source, &mut port, &mut pool, answer, &frame);
        }
    });
}

/// Slots of frames that are being sent, of frames that are not, and free slots.
#[test]
fn a_closing_port_returns_every_slot_in_copy_mode() {
    in_namespace(|| {
        let (umem, packets) = Umem::new(SLOTS);
        let mut pool = Pool::of(packets);
        let (_classifier, [mut left, right]) = bench(&umem, XdpOptions::default());
        let mut filled = pool.take(BURST);
        left.recycle(&mut filled);
        for up in [true, false] {
            if !up {
                ip("link set dev left down");
            }
            let mut burst = pool.take(BURST);
            burst.iter_mut().for_each(|packet| assert!(packet.set_frame(&frame(1, 60))));
            // A link that is down may give an error: the frames stay in the ring.
            let _ = left.transmit(&mut burst);
            assert!(burst.is_empty(), "the ring has room");
        }
        assert_eq!(left.close().len(), 3 * BURST);
        drop(right);
    });
}
