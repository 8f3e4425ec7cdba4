//! Packet sockets (AF_PACKET) as ports, for interfaces with any driver.
//!
//! The kernel copies every frame into a ring that it shares with the port, and the port copies it into a slot. The kernel
//! also receives and forwards the frame itself, unless the classifier prevents that.
//!
//! The port completes frames that never passed a network card: it inserts a VLAN tag that the kernel keeps beside the frame,
//! finishes a partial checksum, and cuts a frame of several packets (GRO, GSO). Of one that is longer than those of the ring the kernel
//! leaves the whole in the socket's queue, and its head in the ring. It does not receive frames that have waited for more than a second.

use std::ffi::c_int;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::{io, iter};

use super::frame_clock::FrameClock;
use super::large_frame::{LargeFrame, Uncut};
use super::link::Link;
use super::offload::{VirtioNetHeader, VlanTag};
use super::packet_end::packet_end;
use super::port_slots::PortSlots;
use super::spread::{Spread, by_owners};
use super::sys::{FilledFrame, PacketRing, RingSize, SendBatch, Socket, VIRTIO_HEADER};
use super::{Port, PortError, PortLosses};
use crate::burst::{Burst, FRAME_CAPACITY, Packet, Slot};

/// Bytes of a frame in the ring with its headers, which take up to 92: an odd number of whole cache lines.
const RING_FRAME: usize = 35 * 64;
const _: () = assert!(RING_FRAME - 92 >= FRAME_CAPACITY);

/// Empty receives between two checks of the link: each check is a system call.
const IDLE_CHECK: u32 = 64;

/// Consecutive frames that the kernel may drop before the port counts as full: each costs a system call.
const DROPPED_IN_A_ROW: usize = 64;

/// Bytes that may wait to be sent: some thousand small frames, more than a driver's ring holds.
const SEND_BUFFER: c_int = 4 << 20;

/// Half of the bytes of frames of several packets that may wait, which are some hundred frames: the kernel doubles it.
const RECEIVE_BUFFER: c_int = 4 << 20;

/// Options of a packet port.
#[derive(Clone, Copy, Debug)]
pub struct PacketOptions<'f> {
    /// Frames in the receive ring.
    pub ring_frames: usize,
    /// Whether frames bypass the queueing discipline, traffic shaping included.
    pub bypass_queueing: bool,
    /// A BPF program that selects the frames to receive.
    pub filter: Option<BorrowedFd<'f>>,
    /// Which port of a group gets a frame.
    pub spread: Spread,
}

impl Default for PacketOptions<'_> {
    fn default() -> Self {
        PacketOptions { ring_frames: 2048, bypass_queueing: false, filter: None, spread: Spread::Flows }
    }
}

/// A port on an interface, for one worker.
pub struct PacketPort<'a> {
    number: u16,
    link: Link,
    receiver: Socket,
    ring: PacketRing,
    sender: Socket,
    batch: SendBatch,
    slots: PortSlots<'a>,
    /// A frame of several packets that is being cut.
    large: LargeFrame,
    losses: PortLosses,
    refused: u64,
    idle: u32,
    is_finished: bool,
}

impl<'a> PacketPort<'a> {
    /// Port `number` on the interface of that name.
    pub fn open(
        number: u16,
        interface: &str,
        options: PacketOptions<'_>,
    ) -> Result<PacketPort<'a>, PortError> {
        let link = Link::named(interface)?;
        let receiver = Socket::raw(libc::AF_PACKET).map_err(link.cannot("be listened on"))?;
        let size = RingSize { frames: options.ring_frames, frame: RING_FRAME };
        let ring = PacketRing::new(&receiver, size).map_err(link.cannot("be given a receive ring"))?;
        receive_beside(&receiver).map_err(link.cannot("be given a receive buffer"))?;
        // The router does not forward what its own host sends.
        receiver
            .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)
            .map_err(link.cannot("be set to ignore what this host sends"))?;
        if let Some(filter) = options.filter {
            let filter = filter.as_raw_fd();
            receiver
                .set(libc::SOL_SOCKET, libc::SO_ATTACH_BPF, filter)
                .map_err(link.cannot("be given a filter"))?;
        }
        receiver.bind(address(&link, libc::ETH_P_ALL as u16)).map_err(link.cannot("be listened on"))?;
        let sender = sender(&link, options)?;
        let (slots, losses, batch) = (PortSlots::new(), PortLosses::default(), SendBatch::new());
        Ok(PacketPort {
            number,
            link,
            receiver,
            ring,
            sender,
            batch,
            slots,
            large: LargeFrame::new(),
            losses,
            refused: 0,
            idle: 0,
            is_finished: false,
        })
    }

    /// Ports for several workers. The kernel spreads flows over them: all packets of a flow, in both directions, go to the same
    /// port.
    pub fn open_group(
        number: u16,
        interface: &str,
        workers: usize,
        options: PacketOptions<'_>,
    ) -> Result<Vec<PacketPort<'a>>, PortError> {
        let open = || PacketPort::open(number, interface, options);
        let ports: Vec<_> = (0..workers).map(|_| open()).collect::<Result<_, _>>()?;
        let mut group = libc::PACKET_FANOUT_FLAG_UNIQUEID;
        for port in ports.iter().filter(|_| workers > 1) {
            group = port.join(group, (options.spread, workers))?;
        }
        Ok(ports)
    }

    /// Joins a fanout group, or creates one with a unique number, and returns the number.
    fn join(&self, group: u32, (spread, workers): (Spread, usize)) -> Result<u32, PortError> {
        let failed = self.link.cannot("spread its flows between several workers");
        let mode = match spread {
            Spread::Flows => libc::PACKET_FANOUT_HASH,
            Spread::Owners => libc::PACKET_FANOUT_CBPF,
        };
        // A group does not take over what its sockets have been set to ignore.
        let mode = (mode | libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING) << 16;
        let joining = if group == libc::PACKET_FANOUT_FLAG_UNIQUEID { group << 16 } else { group };
        self.receiver
            .set(libc::SOL_PACKET, libc::PACKET_FANOUT, (joining | mode) as c_int)
            .map_err(&failed)?;
        if spread == Spread::Owners {
            self.receiver.spread(&by_owners(workers)).map_err(&failed)?;
        }
        let joined: c_int = self.receiver.get(libc::SOL_PACKET, libc::PACKET_FANOUT).map_err(&failed)?;
        Ok(joined as u32 & 0xffff)
    }

    /// Closes the port and returns its slots.
    pub fn close(self) -> impl Iterator<Item = Packet<'a>> {
        self.slots.close()
    }

    /// The socket for poll or epoll to wait for packets.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Takes the next packet of a frame of several packets. `false` if there is no slot for it.
    #[cold]
    fn take_next_of_large(&mut self, burst: &mut Burst<'a>) -> bool {
        let Some(slot) = self.slots.next() else { return false };
        slot.port = self.number;
        if self.large.next(slot) {
            self.slots.fill(burst);
        }
        true
    }

    /// Checks now and then that the link still exists.
    fn check_link(&mut self) -> Result<(), PortError> {
        self.idle += 1;
        if self.idle < IDLE_CHECK {
            return Ok(());
        }
        self.idle = 0;
        self.receiver.pending_error().map_err(|error| self.failed(error))
    }

    /// Sends the first of these packets, and returns how many.
    fn send(&mut self, packets: &[Packet<'a>]) -> io::Result<usize> {
        match self.batch.send(&self.sender, packets.iter().map(|packet| packet.frame())) {
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => self.send_cut(packets[0], error),
            sent => sent,
        }
    }

    /// A packet that is too long may fit the link without the bytes behind it. They stay in its slot: it may have to wait, and its
    /// length is what the worker has counted.
    #[cold]
    fn send_cut(&mut self, packet: &Slot, too_long: io::Error) -> io::Result<usize> {
        match without_trailer(packet.frame()) {
            Some(frame) => self.batch.send(&self.sender, iter::once(frame)),
            None => Err(too_long),
        }
    }

    #[cold]
    fn failed(&mut self, error: io::Error) -> PortError {
        let error = self.link.failed(error);
        self.is_finished |= matches!(error, PortError::Removed { .. });
        error
    }
}

/// Has frames that are longer than those of the ring wait in the socket's queue.
fn receive_beside(receiver: &Socket) -> io::Result<()> {
    receiver.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)?;
    receiver.set(libc::SOL_PACKET, libc::PACKET_COPY_THRESH, 1)
}

/// A socket that only sends, because it is bound to no protocol.
fn sender(link: &Link, options: PacketOptions<'_>) -> Result<Socket, PortError> {
    let failed = link.cannot("be sent by");
    let sender = Socket::raw(libc::AF_PACKET).map_err(&failed)?;
    sender.set(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER).map_err(&failed)?;
    let bypass = c_int::from(options.bypass_queueing);
    sender.set(libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, bypass).map_err(&failed)?;
    sender.bind(address(link, 0)).map_err(&failed)?;
    Ok(sender)
}

/// The address of a protocol on the interface.
pub(super) fn address(link: &Link, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: link.index() as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

/// Copies a frame into a slot and completes it; `false` if the frame cannot be received. One of several packets is left in `large`.
/// Fails if the link has.
#[inline]
fn take(
    frame: &FilledFrame<'_>,
    now: FrameClock,
    slot: &mut Slot,
    (receiver, large): (&Socket, &mut LargeFrame),
    losses: &mut PortLosses,
) -> io::Result<bool> {
    let (header, offload) = (&frame.header, frame.virtio_header().map(VirtioNetHeader));
    if frame.is_beside() || offload.is_some_and(VirtioNetHeader::is_several_packets) {
        return take_large(frame, now, (receiver, large), losses).map(|()| false);
    }
    let Some(offload) = offload else {
        losses.damaged += 1;
        return Ok(false);
    };
    if now.is_stale(header) {
        losses.stale += 1;
        return Ok(false);
    }
    if header.tp_len > header.tp_snaplen || header.tp_len as usize > FRAME_CAPACITY {
        losses.too_long += 1;
        return Ok(false);
    }
    slot.set_frame_len(header.tp_len as usize);
    let whole = frame.copy_to(slot.frame_mut()) && offload.finish_checksum(slot.frame_mut());
    losses.damaged += u64::from(!whole);
    Ok(whole && insert_tag(frame, slot, losses))
}

/// Takes a frame of several packets, or loses it. Fails if the link has.
#[cold]
fn take_large(
    frame: &FilledFrame<'_>,
    now: FrameClock,
    (receiver, large): (&Socket, &mut LargeFrame),
    losses: &mut PortLosses,
) -> io::Result<()> {
    // In any case, as the frames behind it wait in the same queue.
    let (whole, link) = if frame.is_beside() {
        receive_large(frame, receiver, large)
    } else {
        (copy_large(frame, large), Ok(()))
    };
    let Some((offload, bytes)) = whole else {
        losses.several += 1;
        return link;
    };
    if now.is_stale(&frame.header) {
        losses.stale += 1;
        return link;
    }
    match large.read(bytes, offload, tag_of(frame)) {
        Ok(()) => {}
        Err(Uncut::Unknown) if offload.is_several_packets() => losses.several += 1,
        Err(_) => losses.too_long += 1,
    }
    link
}

/// A frame in the room of a [`LargeFrame`], and what the kernel says of it.
type Whole = (VirtioNetHeader, Range<usize>);

/// The next frame of the socket's queue, unless the kernel has lost it, and whether the link has failed.
fn receive_large(
    frame: &FilledFrame<'_>,
    receiver: &Socket,
    large: &mut LargeFrame,
) -> (Option<Whole>, io::Result<()>) {
    let (room, mut link, whole) = (large.room(), Ok(()), VIRTIO_HEADER + frame.header.tp_len as usize);
    loop {
        match receiver.receive(room) {
            Ok(len) if len == whole => {
                let offload = room.first_chunk().filter(|_| len <= room.len());
                return (offload.map(|offload| (VirtioNetHeader(*offload), VIRTIO_HEADER..len)), link);
            }
            // One that the ring does not have any more.
            Ok(_) => {}
            // An error of the link comes once, before the frame.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) && link.is_ok() => link = Err(error),
            Err(_) => return (None, link),
        }
    }
}

/// A frame of several packets that is no longer than those of the ring.
fn copy_large(frame: &FilledFrame<'_>, large: &mut LargeFrame) -> Option<Whole> {
    let len = frame.header.tp_snaplen as usize;
    let is_whole = len == frame.header.tp_len as usize && frame.copy_to(large.room().get_mut(..len)?);
    is_whole.then_some((VirtioNetHeader(frame.virtio_header()?), 0..len))
}

fn tag_of(frame: &FilledFrame<'_>) -> Option<VlanTag> {
    let header = &frame.header;
    let is_tagged = header.tp_status & libc::TP_STATUS_VLAN_VALID != 0;
    is_tagged.then_some(VlanTag { ethertype: header.tp_vlan_tpid, control: header.tp_vlan_tci })
}

#[inline]
fn insert_tag(frame: &FilledFrame<'_>, slot: &mut Slot, losses: &mut PortLosses) -> bool {
    let fits = tag_of(frame).is_none_or(|tag| tag.insert(slot));
    losses.too_long += u64::from(!fits);
    fits
}

/// A frame without the bytes behind its IP packet; `None` if there are none.
fn without_trailer(frame: &[u8]) -> Option<&[u8]> {
    let end = packet_end(frame).filter(|end| *end < frame.len())?;
    frame.get(..end)
}

impl<'a> Port<'a> for PacketPort<'a> {
    fn receive(&mut self, burst: &mut Burst<'a>, limit: usize) -> Result<usize, PortError> {
        let (wanted, before, now) = (limit.min(burst.room()), burst.len(), FrameClock::read());
        for seen in 0..wanted {
            if self.large.has_packets() {
                if !self.take_next_of_large(burst) {
                    break;
                }
                continue;
            }
            let (Some(frame), Some(slot)) = (self.ring.peek(), self.slots.next()) else {
                if seen == 0 {
                    self.check_link()?;
                }
                break;
            };
            slot.port = self.number;
            let taken = take(&frame, now, slot, (&self.receiver, &mut self.large), &mut self.losses);
            self.ring.give_back();
            match taken {
                Ok(true) => self.slots.fill(burst),
                Ok(false) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(burst.len() - before)
    }

    fn transmit(&mut self, burst: &mut Burst<'a>) -> Result<usize, PortError> {
        let limit = burst.len().min(self.slots.room_for_sent());
        let (mut taken, mut dropped) = (0, 0);
        while taken < limit && dropped < DROPPED_IN_A_ROW {
            match self.send(&burst[..limit - taken]) {
                Ok(sent) => (taken, dropped) = (taken + self.slots.sent(burst, sent), 0),
                Err(error) => match error.raw_os_error() {
                    // No room in the socket now.
                    Some(libc::EAGAIN) => break,
                    Some(libc::EINTR) => {}
                    // An egress rule (tc, nftables), the queueing discipline or the driver dropped the frame. If it were
                    // offered again, a frame that a rule rejects would block all others forever.
                    Some(libc::ENOBUFS) => {
                        self.losses.dropped += 1;
                        (taken, dropped) = (taken + self.slots.sent(burst, 1), dropped + 1);
                    }
                    // This frame can never be sent, but the next one may.
                    Some(libc::EMSGSIZE | libc::EINVAL) => {
                        self.losses.unsendable += 1;
                        taken += self.slots.sent(burst, 1);
                    }
                    _ => {
                        self.refused += burst.len() as u64;
                        return Err(self.failed(error));
                    }
                },
            }
        }
        self.refused += burst.len() as u64;
        Ok(taken)
    }

    fn reclaim(&mut self, free: &mut Burst<'a>) -> usize {
        self.slots.reclaim(free)
    }

    fn recycle(&mut self, free: &mut Burst<'a>) -> usize {
        self.slots.recycle(free)
    }

    /// Frames that the kernel had no room for in the ring. This is a system call, after which the kernel counts from zero.
    fn overruns(&mut self) -> Result<u64, PortError> {
        let asked = self.receiver.get::<libc::tpacket_stats>(libc::SOL_PACKET, libc::PACKET_STATISTICS);
        asked.map(|since| since.tp_drops.into()).map_err(|error| self.link.failed(error))
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }

    fn losses(&mut self) -> PortLosses {
        std::mem::take(&mut self.losses)
    }

    /// What is left of a frame of several packets, whose age was looked at when it came.
    fn undated(&mut self) -> usize {
        self.large.packets()
    }

    fn has_unsent(&mut self) -> bool {
        false
    }
}
