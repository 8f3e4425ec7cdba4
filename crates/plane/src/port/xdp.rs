//! AF_XDP sockets as ports: frames move between the driver and the slots without the kernel's network stack.
//!
//! A port receives frames once a `Classifier` redirects them to its socket; each queue of a card has a socket. With a driver
//! that supports zero copy, the card writes into the slots; otherwise the kernel copies each frame once. [`XdpPort::mode`]
//! returns the mode.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use libc::xdp_desc;

use super::link::Link;
use super::sys::{KernelSlots, Socket, XdpRings};
use super::umem::Umem;
use super::{Port, PortError, PortLosses};
use crate::burst::{BURST, Burst, FRAME_CAPACITY, Packet};
use crate::report_time::ReportTime;
use crate::wire::ethernet;

/// Empty receives between two checks of the link: each check is a system call.
const IDLE_CHECK: u32 = 64;

/// How often, and how far apart, binding to a queue in use is tried: the kernel releases the queue of a closed socket in
/// deferred work, on a busy machine after more than a second.
const BIND_TRIES: usize = 100;
const BIND_PAUSE: Duration = Duration::from_millis(20);

/// System calls to send one burst.
const KICKS: usize = 16;

/// In copy mode the kernel gets so many frames before each call, as many as it sends in one (`TX_BATCH_SIZE`). The others can be
/// dropped if the thread is stopped meanwhile.
const HANDED_OVER: u32 = 32;

/// How often, and how far apart, a closing port checks whether its last frames are sent.
const CLOSE_CHECKS: usize = 50;
const CLOSE_PAUSE: Duration = Duration::from_millis(2);

/// Whether the kernel may copy frames between the card's memory and the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyPolicy {
    /// Only if the driver does not support zero copy.
    #[default]
    IfNeeded,
    /// Always.
    Always,
    /// Never: a driver without zero copy is refused.
    Never,
}

/// The mode of an open port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMode {
    /// The card reads and writes the slots.
    ZeroCopy,
    /// The kernel copies each frame once.
    Copy,
}

impl fmt::Display for CopyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CopyMode::ZeroCopy => "zero copy",
            CopyMode::Copy => "copy mode: the driver has no zero copy, or zero copy was not requested",
        })
    }
}

/// Busy polling: the worker does the work of the card's interrupts when it receives.
#[derive(Clone, Copy, Debug)]
pub struct BusyPoll {
    /// The longest duration of one poll in microseconds.
    pub micros: u32,
    /// The highest number of frames of one poll.
    pub budget: u32,
}

/// Options of an XDP port.
#[derive(Clone, Copy, Debug)]
pub struct XdpOptions {
    /// The queue of the card, from 0.
    pub queue: u32,
    /// Slots on each side, and entries of each ring: a power of two.
    pub ring: u32,
    /// Whether the kernel may copy frames.
    pub copying: CopyPolicy,
    /// Whether the driver sleeps until a system call wakes it, instead of polling the rings.
    pub need_wakeup: bool,
    /// Busy polling, which needs `gro_flush_timeout` and `napi_defer_hard_irqs` of the interface to suppress interrupts.
    pub busy_poll: Option<BusyPoll>,
}

impl Default for XdpOptions {
    fn default() -> Self {
        XdpOptions { queue: 0, ring: 2048, copying: CopyPolicy::IfNeeded, need_wakeup: true, busy_poll: None }
    }
}

/// A port on one queue of an interface, for one worker.
pub struct XdpPort {
    number: u16,
    link: Link,
    mode: CopyMode,
    umem: Umem,
    socket: Socket,
    rings: XdpRings,
    /// Slots that the kernel writes received frames into.
    filling: KernelSlots,
    /// Slots of frames that the kernel sends, or gets later.
    sending: KernelSlots,
    /// Whether the kernel may be at work on frames that it has not taken from the ring.
    is_begun: bool,
    /// Whether it refused the last call, as the link is down.
    is_refused: bool,
    is_polled: bool,
    losses: PortLosses,
    /// Packets that cannot be sent, to be reclaimed.
    lost: Vec<Packet<'static>>,
    /// Overruns that earlier calls reported.
    overruns_reported: u64,
    refused: u64,
    /// Since when the frames that the kernel has not got wait, at the earliest.
    sent_at: ReportTime,
    idle: u32,
    is_finished: bool,
}

impl XdpPort {
    /// Port `number` on a queue of the interface of that name.
    pub fn open(
        number: u16,
        interface: &str,
        umem: &Umem,
        options: XdpOptions,
    ) -> Result<XdpPort, PortError> {
        let link = Link::named(interface)?;
        let socket = Socket::raw(libc::AF_XDP).map_err(link.cannot("be given an AF_XDP socket"))?;
        if link.strips_tags()? {
            return Err(PortError::StripsTags { interface: interface.to_owned() });
        }
        socket
            .set(libc::SOL_XDP, libc::XDP_UMEM_REG, umem.registration())
            .map_err(link.cannot("be given the packet memory (AF_XDP, unaligned chunks)"))?;
        let rings = XdpRings::new(&socket, options.ring)
            .map_err(link.cannot("be given the rings of an AF_XDP socket"))?;
        set_busy_poll(&socket, options.busy_poll).map_err(link.cannot("be polled by the worker"))?;
        bind(&socket, address(&link, options)).map_err(link.cannot("be bound to that queue by AF_XDP"))?;
        let mode = mode(&socket).map_err(link.cannot("be asked for its AF_XDP mode"))?;
        let (filling, sending) = (umem.kernel_slots(), umem.kernel_slots());
        let (umem, is_polled) = (umem.clone(), options.busy_poll.is_some());
        Ok(XdpPort {
            number,
            link,
            mode,
            umem,
            socket,
            rings,
            filling,
            sending,
            is_begun: false,
            is_refused: false,
            is_polled,
            losses: PortLosses::default(),
            lost: Vec::with_capacity(BURST),
            overruns_reported: 0,
            refused: 0,
            sent_at: ReportTime::coarse(),
            idle: 0,
            is_finished: false,
        })
    }

    /// Whether the kernel copies frames.
    pub fn mode(&self) -> CopyMode {
        self.mode
    }

    /// Closes the port and returns the slots that are safe to use again. With zero copy, no slot of the kernel comes back,
    /// because the network card may use it for a while. In copy mode the kernel writes into no slot after the socket is
    /// closed, so the slots of the receive side come back. But a driver may still read frames to send: with drivers that
    /// allow it (`IFF_TX_SKB_NO_LINEAR`) the kernel sends from these pages without a copy, and closing does not wait for
    /// that. So this waits for frames that are being sent, and never reuses the slots of those that the kernel does not
    /// report as sent.
    pub fn close(mut self) -> Vec<Packet<'static>> {
        let mut packets = std::mem::take(&mut self.lost);
        let has_copies = self.mode == CopyMode::Copy;
        if has_copies {
            self.settle(&mut packets);
        }
        let XdpPort { socket, rings, mut filling, .. } = self;
        drop((rings, socket));
        if has_copies {
            packets.extend(filling.take_all());
        }
        packets
    }

    /// Takes back the frames that the kernel has not begun to send, and waits for the others.
    fn settle(&mut self, packets: &mut Vec<Packet<'static>>) {
        packets.extend(std::iter::from_fn(|| self.withdraw()));
        if !self.is_begun {
            packets.extend(std::iter::from_fn(|| {
                self.rings.send.recall().and_then(|frame| self.sent(frame.addr))
            }));
        }
        for _ in 0..CLOSE_CHECKS {
            while let Some(place) = self.rings.completion.pop() {
                packets.extend(self.sent(place));
            }
            if self.sending.is_empty() {
                return;
            }
            thread::sleep(CLOSE_PAUSE);
        }
    }

    /// The packet of a frame that has been sent.
    #[inline]
    fn sent(&mut self, place: u64) -> Option<Packet<'static>> {
        let (slot, _) = self.umem.locate(place)?;
        self.sending.take(slot)
    }

    /// Its interface.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The socket, for the classifier to redirect frames to, and for poll or epoll to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether poll and epoll may wait on the socket. They also send what is in the ring. While the link is down they may not: if
    /// it came up, [`Self::close`] could not know that they had begun.
    pub fn may_be_polled(&self) -> bool {
        !self.is_refused
    }

    /// Puts a packet into the transmit ring.
    #[inline]
    fn queue(&mut self, packet: Packet<'static>) {
        let len = packet.frame_len();
        if len < ethernet::HEADER {
            self.losses.unsendable += 1;
            return self.lost.push(packet);
        }
        match self.sending.put(packet) {
            Ok(slot) => {
                self.rings.send.push(xdp_desc { addr: self.umem.frame(slot), len: len as u32, options: 0 });
            }
            Err(foreign) => {
                self.losses.unsendable += 1;
                self.lost.push(foreign);
            }
        }
    }

    /// Makes the kernel send the frames of the transmit ring, as far as it can now.
    #[inline]
    fn kick(&mut self) -> Result<(), PortError> {
        for _ in 0..KICKS {
            if self.rings.send.is_drained() {
                return Ok(());
            }
            let now = ReportTime::coarse();
            self.drop_stale(now);
            self.hand_over(now);
            if self.rings.send.is_taken() || !self.needs_call() {
                return Ok(());
            }
            let sent = self.socket.kick_send();
            self.is_refused = matches!(&sent, Err(error) if has_sent_nothing(error));
            self.is_begun |= !self.is_refused;
            match sent {
                Ok(()) => {}
                // The kernel sent its share, or has no room: the rest stays in the ring.
                Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
                Err(error) if is_temporary(&error) => return Ok(()),
                Err(error) => return Err(self.failed(error)),
            }
            self.sent_at = now;
        }
        Ok(())
    }

    /// Whether the kernel sends only in a call.
    #[inline]
    fn needs_call(&self) -> bool {
        self.mode == CopyMode::Copy || self.rings.send.needs_wakeup()
    }

    /// Lets the kernel see frames of the transmit ring: in copy mode as many as it will send in one call, once it has sent those before.
    #[inline]
    fn hand_over(&mut self, now: ReportTime) {
        let before = self.rings.send.unpublished();
        if self.mode == CopyMode::ZeroCopy {
            self.rings.send.publish();
        } else if before > 0 && self.rings.send.is_taken() {
            self.rings.send.publish_up_to(HANDED_OVER.min(self.rings.room_to_report()));
            self.is_begun = false;
        }
        if self.rings.send.unpublished() < before {
            self.sent_at = now;
        }
    }

    /// Drops what the kernel has not got yet if that waits for too long: the thread was stopped, as a call ended, or the link is down.
    /// In zero copy the kernel gets all frames at once.
    #[inline]
    fn drop_stale(&mut self, now: ReportTime) {
        if self.sent_at.is_silence_until(now) {
            while let Some(packet) = self.withdraw() {
                self.losses.stale += 1;
                self.lost.push(packet);
            }
            self.sent_at = now;
        }
    }

    /// Takes back the last frame that the kernel has not got yet.
    fn withdraw(&mut self) -> Option<Packet<'static>> {
        let frame = self.rings.send.withdraw()?;
        self.sent(frame.addr)
    }

    /// Wakes a driver that waits for a call, and checks now and then that the link still exists.
    #[inline]
    fn poll_kernel(&mut self, is_idle: bool) -> Result<(), PortError> {
        self.idle = if is_idle { self.idle + 1 } else { 0 };
        if self.idle < IDLE_CHECK && !self.is_polled && !self.rings.fill.needs_wakeup() {
            return Ok(());
        }
        self.idle = 0;
        match self.socket.kick_receive() {
            Err(error) if !is_temporary(&error) && error.raw_os_error() != Some(libc::EAGAIN) => {
                Err(self.failed(error))
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn failed(&mut self, error: io::Error) -> PortError {
        let error = self.link.failed(error);
        self.is_finished |= matches!(error, PortError::Removed { .. });
        error
    }

    /// The packet of a received frame; `None` for an address that was not given to the kernel.
    #[inline]
    fn received(&mut self, frame: xdp_desc) -> Option<Packet<'static>> {
        let (slot, shift) = self.umem.locate(frame.addr)?;
        let packet = self.filling.take(slot)?;
        packet.port = self.number;
        packet.set_frame_len(shift + frame.len as usize);
        if shift > 0 {
            // Some cards write a timestamp before the frame.
            packet.frame_mut().copy_within(shift.min(FRAME_CAPACITY).., 0);
            packet.set_frame_len(frame.len as usize);
        }
        Some(packet)
    }
}

fn set_busy_poll(socket: &Socket, busy_poll: Option<BusyPoll>) -> io::Result<()> {
    let Some(busy_poll) = busy_poll else { return Ok(()) };
    socket.set(libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL, 1)?;
    socket.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL, busy_poll.micros as c_int)?;
    socket.set(libc::SOL_SOCKET, libc::SO_BUSY_POLL_BUDGET, busy_poll.budget as c_int)
}

/// Binds the socket. A socket that was just closed, perhaps by a killed process, releases its queue a little later.
fn bind(socket: &Socket, address: libc::sockaddr_xdp) -> io::Result<()> {
    for _ in 0..BIND_TRIES {
        match socket.bind(address) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => thread::sleep(BIND_PAUSE),
            bound => return bound,
        }
    }
    socket.bind(address)
}

fn mode(socket: &Socket) -> io::Result<CopyMode> {
    let options: libc::xdp_options = socket.get(libc::SOL_XDP, libc::XDP_OPTIONS)?;
    let zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
    Ok(if zero_copy { CopyMode::ZeroCopy } else { CopyMode::Copy })
}

fn address(link: &Link, options: XdpOptions) -> libc::sockaddr_xdp {
    let wakeup = if options.need_wakeup { libc::XDP_USE_NEED_WAKEUP } else { 0 };
    let copying = match options.copying {
        CopyPolicy::IfNeeded => 0,
        CopyPolicy::Always => libc::XDP_COPY,
        CopyPolicy::Never => libc::XDP_ZEROCOPY,
    };
    libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: wakeup | copying,
        sxdp_ifindex: link.index(),
        sxdp_queue_id: options.queue,
        sxdp_shared_umem_fd: 0,
    }
}

/// Whether the kernel refused a call before it looked at the first frame.
fn has_sent_nothing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENETDOWN | libc::ENXIO))
}

/// Whether the call may succeed later.
fn is_temporary(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::EBUSY | libc::EINTR))
}

impl Port<'static> for XdpPort {
    fn receive(&mut self, burst: &mut Burst<'static>, limit: usize) -> Result<usize, PortError> {
        let (wanted, before) = (limit.min(burst.room()), burst.len());
        for _ in 0..wanted {
            let Some(frame) = self.rings.receive.pop() else { break };
            burst.fill(self.received(frame).into_iter());
        }
        let received = burst.len() - before;
        if received > 0 {
            self.rings.receive.give_back();
        }
        match self.poll_kernel(received == 0) {
            // The next call reports it.
            Err(_) if received > 0 => Ok(received),
            polled => polled.map(|()| received),
        }
    }

    fn transmit(&mut self, burst: &mut Burst<'static>) -> Result<usize, PortError> {
        self.drop_stale(ReportTime::coarse());
        let count = burst.len().min(self.rings.send.room(burst.len()));
        for packet in burst.drain_front(count) {
            self.queue(packet);
        }
        self.refused += burst.len() as u64;
        self.kick()?;
        Ok(count)
    }

    fn reclaim(&mut self, free: &mut Burst<'static>) -> usize {
        // Sends what the kernel had no room for before; if the link is gone, `receive` reports it.
        let _ = self.kick();
        let before = free.len();
        free.fill(std::iter::from_fn(|| self.lost.pop()));
        while free.room() > 0 {
            let Some(place) = self.rings.completion.pop() else { break };
            free.fill(self.sent(place).into_iter());
        }
        self.rings.completion.give_back();
        free.len() - before
    }

    fn recycle(&mut self, free: &mut Burst<'static>) -> usize {
        let count = free.len().min(self.rings.fill.room(free.len()));
        for packet in free.drain_front(count) {
            match self.filling.put(packet) {
                Ok(slot) => self.rings.fill.push(self.umem.chunk(slot)),
                Err(foreign) => self.lost.push(foreign),
            }
        }
        self.rings.fill.publish();
        count
    }

    /// Frames without a free slot (in copy mode; otherwise the card counts them) or without room in the ring. This is a
    /// system call.
    fn overruns(&mut self) -> Result<u64, PortError> {
        let counts: io::Result<libc::xdp_statistics> = self.socket.get(libc::SOL_XDP, libc::XDP_STATISTICS);
        let counts = counts.map_err(|error| self.link.failed(error))?;
        let all = counts.rx_dropped + counts.rx_ring_full;
        Ok(all.saturating_sub(std::mem::replace(&mut self.overruns_reported, all)))
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

    fn undated(&mut self) -> usize {
        self.rings.receive.waiting()
    }

    fn has_unsent(&mut self) -> bool {
        !self.rings.send.is_drained()
    }
}
