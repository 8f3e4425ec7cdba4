//! Numbered packets, about 1,000 a second, and a record of those that arrive.

use fullview_testnet::eventually;
use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A thread that sends packets until it is ended.
pub struct Sender {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Sends each number to the address that `to` returns for it, port 9.
    pub fn start(socket: UdpSocket, to: impl Fn(u32) -> Ipv4Addr + Send + 'static) -> Sender {
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::<AtomicU32>::default();
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&sent));
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for _ in 0..10 {
                    let number = count.fetch_add(1, Ordering::Relaxed);
                    socket.send_to(&number.to_be_bytes(), (to(number), 9)).unwrap();
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        Sender { stop, sent, thread }
    }

    /// Returns how many packets it has sent so far. The last one may not be sent yet.
    #[cfg(feature = "bpf")]
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ends the thread, and returns how many packets it sent.
    pub fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

/// A thread that receives packets until it is ended and no packet has arrived for a while.
pub struct Receiver {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<u32>>,
}

impl Receiver {
    pub fn start(socket: UdpSocket) -> Receiver {
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&received));
        let thread = thread::spawn(move || {
            let (mut buffer, mut numbers) = ([0; 64], Vec::new());
            loop {
                count.store(numbers.len(), Ordering::Relaxed);
                match socket.recv(&mut buffer) {
                    Ok(4) => numbers.push(u32::from_be_bytes(buffer[..4].try_into().unwrap())),
                    Ok(_) => {}
                    Err(_) if stopped.load(Ordering::Relaxed) => return numbers,
                    Err(_) => {}
                }
            }
        });
        Receiver { stop, received, thread }
    }

    /// Returns how many packets have arrived so far.
    pub fn received(&self) -> usize {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits until this number of further packets has arrived.
    pub fn wait_for(&self, more: usize) {
        let wanted = self.received() + more;
        let arrived = eventually(|| self.received() >= wanted);
        assert!(arrived, "{} packets, not {wanted}", self.received());
    }

    /// Waits until all receivers together have received this number of packets, and ends them.
    pub fn end_with(all: u32, receivers: Vec<Receiver>) -> Vec<Vec<u32>> {
        // The test itself finds out which packets are missing.
        let _ = eventually(|| receivers.iter().map(Receiver::received).sum::<usize>() >= all as usize);
        receivers.into_iter().map(Receiver::end).collect()
    }

    pub fn end(self) -> Vec<u32> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Returns the numbers that never arrived.
pub fn lost(sent: u32, arrived: &[u32]) -> Vec<u32> {
    let arrived: HashSet<u32> = arrived.iter().copied().collect();
    (0..sent).filter(|number| !arrived.contains(number)).collect()
}

/// Returns the numbers that arrived more than once.
pub fn twice(arrived: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    arrived.iter().copied().filter(|number| !seen.insert(*number)).collect()
}
