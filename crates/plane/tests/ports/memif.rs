//! memif ports: at their other end is a switch in this process, which accesses the shared memory only through its file, or
//! DPDK.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use fullview_plane::burst::{Arena, Burst, FRAME_CAPACITY};
use fullview_plane::port::memif::{MemifAddress, MemifPort};
use fullview_plane::port::{Port, PortError, PortLosses};
use fullview_testnet::{find, has, while_no_program_starts};
use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendFlags,
    SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, recvmsg, sendmsg, socket_with,
};

use crate::conformance::{Pool, SLOTS, carries_everything_in_order, frame, keeps_tags};

const ACK: u16 = 1;
const HELLO: u16 = 2;
const CONNECTED: u16 = 7;
const DISCONNECT: u16 = 8;

/// A socket in the abstract namespace that no other test has.
fn socket_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("@fv{}-memif-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn server(name: &str) -> OwnedFd {
    let server = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    bind(&server, &SocketAddrUnix::new_abstract_name(&name.as_bytes()[1..]).unwrap()).unwrap();
    listen(&server, 4).unwrap();
    server
}

/// Closed in other tests' children, which would keep the connection alive.
fn accept_client(server: &OwnedFd) -> OwnedFd {
    accept_with(server, SocketFlags::CLOEXEC).unwrap()
}

fn say(socket: &OwnedFd, kind: u16, fields: &[(usize, &[u8])]) {
    let mut message = [0u8; 128];
    message[..2].copy_from_slice(&kind.to_ne_bytes());
    for (at, field) in fields {
        message[*at..at + field.len()].copy_from_slice(field);
    }
    let none = &mut SendAncillaryBuffer::default();
    sendmsg(socket, &[IoSlice::new(&message)], none, SendFlags::NOSIGNAL).unwrap();
}

fn say_hello(socket: &OwnedFd, version: u16) {
    let version = version.to_ne_bytes();
    say(socket, HELLO, &[(34, &version), (36, &version), (44, &[9])]);
}

fn hear(socket: &OwnedFd) -> ([u8; 128], Option<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut along = RecvAncillaryBuffer::new(&mut space);
    let mut message = [0; 128];
    let parts = &mut [IoSliceMut::new(&mut message)];
    assert_eq!(recvmsg(socket, parts, &mut along, RecvFlags::empty()).unwrap().bytes, 128);
    let file = along.drain().find_map(|with| match with {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    (message, file)
}

fn half(message: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([message[at], message[at + 1]])
}

/// A server's end of a connection.
struct Peer {
    socket: OwnedFd,
    memory: File,
    /// The offsets of the ring from the client and the one to it, and their number of entries.
    rings: [u64; 2],
    size: u16,
    taken: u16,
    filled: u16,
}

impl Peer {
    /// Waits for a client and grants its requests.
    fn accept(server: &OwnedFd) -> Peer {
        let socket = accept_client(server);
        say_hello(&socket, 0x0200);
        let (init, _) = hear(&socket);
        assert_eq!((half(&init, 0), half(&init, 2), init[8]), (3, 0x0200, 0));
        say(&socket, ACK, &[]);
        let (region, memory) = hear(&socket);
        assert_eq!((half(&region, 0), half(&region, 2)), (4, 0));
        say(&socket, ACK, &[]);
        let (mut rings, mut size) = ([0; 2], 0);
        for _ in 0..2 {
            let (ring, wake) = hear(&socket);
            assert_eq!((half(&ring, 0), wake.is_some()), (5, true));
            let offset = u32::from_ne_bytes(ring[8..12].try_into().unwrap());
            rings[if half(&ring, 2) == 1 { 0 } else { 1 }] = offset.into();
            size = 1 << ring[12];
            say(&socket, ACK, &[]);
        }
        assert_eq!(half(&hear(&socket).0, 0), 6);
        let peer = Peer { socket, memory: memory.unwrap().into(), rings, size, taken: 0, filled: 0 };
        for ring in peer.rings {
            assert_eq!(peer.read::<4>(ring), 0x03e3_1f20u32.to_ne_bytes(), "the cookie");
            peer.write(ring + 6, &[0; 2]);
            peer.write(ring + 64, &[0; 2]);
        }
        say(&peer.socket, CONNECTED, &[]);
        peer
    }

    fn read<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, at).unwrap();
        bytes
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).unwrap();
    }

    fn descriptor(&self, ring: usize, number: u16) -> u64 {
        self.rings[ring] + 128 + 16 * u64::from(number & (self.size - 1))
    }

    /// The next frame from the client.
    fn take(&mut self) -> Option<Vec<u8>> {
        if u16::from_ne_bytes(self.read(self.rings[0] + 6)) == self.taken {
            return None;
        }
        let at = self.descriptor(0, self.taken);
        let (len, offset) = (u32::from_ne_bytes(self.read(at + 4)), u32::from_ne_bytes(self.read(at + 8)));
        let mut frame = vec![0; len as usize];
        self.memory.read_exact_at(&mut frame, offset.into()).unwrap();
        self.taken = self.taken.wrapping_add(1);
        self.write(self.rings[0] + 64, &self.taken.to_ne_bytes());
        Some(frame)
    }

    /// Puts a frame into the client's next buffer, with these flags; `false` if there is no buffer.
    fn put(&mut self, frame: &[u8], flags: u16) -> bool {
        if u16::from_ne_bytes(self.read(self.rings[1] + 6)) == self.filled {
            return false;
        }
        let at = self.descriptor(1, self.filled);
        let (room, offset) = (u32::from_ne_bytes(self.read(at + 4)), u32::from_ne_bytes(self.read(at + 8)));
        assert!(frame.len() <= room as usize);
        self.write(offset.into(), frame);
        self.write(at, &flags.to_ne_bytes());
        self.write(at + 4, &(frame.len() as u32).to_ne_bytes());
        self.filled = self.filled.wrapping_add(1);
        self.write(self.rings[1] + 64, &self.filled.to_ne_bytes());
        true
    }
}

fn connect<'a>(number: u16, socket: &str) -> Result<MemifPort<'a>, PortError> {
    MemifPort::connect(number, &MemifAddress { socket, id: 7, secret: "" })
}

/// A port and a server's end of it.
fn bench<'a>() -> (MemifPort<'a>, Peer) {
    let name = socket_name();
    let server = server(&name);
    thread::scope(|scope| {
        let peer = scope.spawn(|| Peer::accept(&server));
        (connect(3, &name).unwrap(), peer.join().unwrap())
    })
}

/// Sets a flag at the end of a scope, after a panic too.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Passes frames from each of two clients to the other.
fn switch(mut peers: [Peer; 2], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for from in 0..2 {
            while let Some(frame) = peers[from].take() {
                idle = false;
                while !peers[1 - from].put(&frame, 0) && !stop.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
        }
        if idle {
            thread::yield_now();
        }
    }
}

#[test]
fn memif_ports_conform() {
    let ((mut left, left_peer), (mut right, right_peer)) = (bench(), bench());
    let (mut arena, stop) = (Arena::new(SLOTS), AtomicBool::new(false));
    let mut pool = Pool::new(&mut arena);
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| switch([left_peer, right_peer], &stop));
        carries_everything_in_order([&mut left, &mut right], &mut pool, 14..=FRAME_CAPACITY);
        keeps_tags(&mut left, &mut right, &mut pool);
        assert_eq!([left.losses(), right.losses()], [PortLosses::default(); 2]);
    });
}

#[test]
fn a_full_ring_leaves_the_rest_with_the_caller() {
    let (mut port, mut peer) = bench();
    let mut arena = Arena::new(2 * SLOTS);
    let mut pool = Pool::new(&mut arena);
    let mut sent = 0;
    loop {
        let mut burst = pool.take(64);
        burst.iter_mut().for_each(|slot| assert!(slot.set_frame(&frame(1, 60))));
        let taken = port.transmit(&mut burst).unwrap();
        sent += taken;
        pool.give(&mut burst);
        if taken < 64 {
            break;
        }
        while port.reclaim(&mut burst) > 0 {
            pool.give(&mut burst);
        }
    }
    // The server allows rings of 2^9 entries.
    assert_eq!((sent, port.refused()), (512, 64));
    assert_eq!(std::iter::from_fn(|| peer.take()).count(), 512);
    let mut burst = Burst::new();
    while port.reclaim(&mut burst) > 0 {
        pool.give(&mut burst);
    }
    assert_eq!(pool.distinct(), 2 * SLOTS);
}

#[test]
fn frames_longer_than_a_slot_are_counted_and_left_out() {
    let (mut port, mut peer) = bench();
    let mut arena = Arena::new(8);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    assert_eq!(port.recycle(&mut burst), 8);
    let (part, whole) = (vec![1; 2000], frame(5, 60));
    for (bytes, flags) in [(&part, 1), (&part, 1), (&part, 0), (&whole, 0)] {
        assert!(peer.put(bytes, flags));
    }
    assert_eq!((port.receive(&mut burst, 8).unwrap(), port.losses().too_long), (1, 1));
    assert_eq!((burst[0].frame(), burst[0].port), (&whole[..], 3));
}

/// The server can write to the shared memory at any time.
#[test]
fn random_bytes_in_the_shared_memory_do_no_harm() {
    let (mut port, peer) = bench();
    let mut arena = Arena::new(64);
    let mut burst = Burst::new();
    burst.fill(arena.packets());
    port.recycle(&mut burst);
    for number in 0..peer.size {
        peer.write(peer.descriptor(1, number), &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }
    peer.write(peer.rings[1] + 64, &0x9999u16.to_ne_bytes());
    for _ in 0..512 / 64 {
        assert_eq!(port.receive(&mut burst, 64).unwrap(), 0);
    }
    assert_eq!(port.losses().too_long, 512);
    // The buffers that are offered again were never written: they hold old bytes, but valid frames.
    for _ in 0..100 {
        port.receive(&mut burst, 64).unwrap();
        assert!(burst.iter().all(|packet| packet.frame_len() <= FRAME_CAPACITY));
        port.recycle(&mut burst);
    }
    peer.write(peer.rings[0] + 64, &0x9999u16.to_ne_bytes());
    let mut filler = Arena::new(1);
    burst.fill(filler.packets());
    let sent = port.transmit(&mut burst).unwrap();
    assert_eq!(sent + burst.len(), 1);
}

#[test]
fn a_port_is_finished_when_its_server_ends() {
    for says_so in [true, false] {
        let (mut port, peer) = bench();
        let mut burst = Burst::new();
        assert!((0..2000).all(|_| port.receive(&mut burst, 1).unwrap() == 0));
        assert!(!port.is_finished());
        let Peer { socket, .. } = peer;
        if says_so {
            say(&socket, DISCONNECT, &[(6, b"maintenance")]);
        } else {
            drop(socket);
        }
        // A child process that another test starts may hold the socket for a moment.
        let ends = (0..1000).any(|_| {
            (0..2000).for_each(|_| assert_eq!(port.receive(&mut burst, 1).unwrap(), 0));
            thread::sleep(Duration::from_millis(10 * u64::from(!port.is_finished())));
            port.is_finished()
        });
        assert!(ends);
    }
}

#[test]
fn a_failed_connection_names_the_reason() {
    let error = connect(1, "/nonexistent/memif.sock").err().unwrap().to_string();
    assert!(error.contains("memif /nonexistent/memif.sock, id 7 cannot connect"), "{error}");
    assert!(error.contains("role=server"), "{error}");
    type Answering = fn(&OwnedFd);
    let cases: [(Answering, &str); 3] = [
        (|socket| say_hello(socket, 0x0300), "does not support version 2"),
        (
            |socket| {
                say_hello(socket, 0x0200);
                hear(socket);
                say(socket, DISCONNECT, &[(6, b"ID not found")]);
            },
            "it refused: ID not found",
        ),
        (|socket| say(socket, ACK, &[]), "Ack where another message was expected"),
    ];
    for (answer, expected) in cases {
        let name = socket_name();
        let server = server(&name);
        let error = thread::scope(|scope| {
            scope.spawn(|| answer(&accept_client(&server)));
            connect(1, &name).err().unwrap().to_string()
        });
        assert!(error.contains(expected), "{error}");
    }
}

/// DPDK's testpmd, which returns every frame by the port that received it.
struct Testpmd(Child);

impl Testpmd {
    fn start(socket: &str) -> Testpmd {
        let memif = format!("net_memif0,role=server,id=7,socket={socket},socket-abstract=no");
        let cores = rustix::thread::sched_getaffinity(None).unwrap();
        let core = (0..1024).find(|core| cores.is_set(*core)).unwrap();
        let mut command = Command::new("dpdk-testpmd");
        command
            .args([
                "--no-pci",
                "--no-huge",
                "--no-shconf",
                "--no-telemetry",
                "-m",
                "64",
                "--lcores",
                &format!("(0,1)@{core}"),
            ])
            .args(["--vdev", &memif, "--", "--forward-mode=io", "--port-topology=loop"])
            .args(["--total-num-mbufs=2048", "--nb-cores=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Testpmd(while_no_program_starts(|| command.spawn()).unwrap())
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A testpmd and a port to it. One that refuses all connections, as has happened on a busy machine, is started anew.
fn connected_testpmd<'a>(folder: &Path) -> (Testpmd, MemifPort<'a>) {
    let started = (0..3).find_map(|attempt| {
        let socket = folder.join(format!("memif-{attempt}.sock")).display().to_string();
        let testpmd = Testpmd::start(&socket);
        Some((testpmd, connect_patiently(&socket)?))
    });
    started.unwrap()
}

/// A port to a server that needs time to start.
fn connect_patiently<'a>(socket: &str) -> Option<MemifPort<'a>> {
    (0..400).find_map(|_| {
        let port = connect(2, socket).ok();
        port.is_none().then(|| thread::sleep(Duration::from_millis(100)));
        port
    })
}

#[test]
fn dpdk_sends_back_what_it_is_sent() {
    if !has(find("dpdk-testpmd").is_some(), "dpdk-testpmd: install dpdk-dev") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_testpmd, mut port) = connected_testpmd(folder.path());
    let mut arena = Arena::new(SLOTS);
    let mut pool = Pool::new(&mut arena);
    await_echo(&mut port, &mut pool);
    let frames: Vec<_> = (0..).zip(14..=2048).map(|(number, len)| frame(number, len)).collect();
    for wave in frames.chunks(32) {
        assert_eq!(echo(&mut port, &mut pool, wave), wave);
    }
}

/// Before it forwards, testpmd discards an unknown number of frames.
fn await_echo<'a>(port: &mut MemifPort<'a>, pool: &mut Pool<'a>) {
    let (probe, last) = (frame(0, 60), frame(1, 60));
    let forwards = (0..600).any(|_| {
        send(port, pool, &probe);
        thread::sleep(Duration::from_millis(100));
        !heard(port, pool).is_empty()
    });
    assert!(forwards, "testpmd returns no frame");
    // Frames that testpmd has not returned yet come before this one.
    send(port, pool, &last);
    let ended = (0..600).any(|_| {
        thread::sleep(Duration::from_millis(100));
        heard(port, pool).contains(&last)
    });
    assert!(ended, "testpmd does not return the last probe");
}

fn send<'a>(port: &mut MemifPort<'a>, pool: &mut Pool<'a>, frame: &[u8]) {
    let mut burst = pool.take(1);
    assert!(burst[0].set_frame(frame));
    crate::conformance::send(port, &mut burst);
    port.reclaim(&mut burst);
    pool.give(&mut burst);
}

/// The frames that have arrived.
fn heard<'a>(port: &mut MemifPort<'a>, pool: &mut Pool<'a>) -> Vec<Vec<u8>> {
    let mut burst = pool.take(64);
    port.recycle(&mut burst);
    pool.give(&mut burst);
    port.receive(&mut burst, 64).unwrap();
    let frames = burst.iter().map(|packet| packet.frame().to_vec()).collect();
    pool.give(&mut burst);
    frames
}

fn echo<'a>(port: &mut MemifPort<'a>, pool: &mut Pool<'a>, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut free = pool.take(frames.len());
    port.recycle(&mut free);
    pool.give(&mut free);
    let mut burst = pool.take(frames.len());
    for (slot, frame) in burst.iter_mut().zip(frames) {
        assert!(slot.set_frame(frame));
    }
    crate::conformance::send(port, &mut burst);
    let back = crate::conformance::receive(port, pool, frames.len());
    while port.reclaim(&mut burst) > 0 {
        pool.give(&mut burst);
    }
    back
}
