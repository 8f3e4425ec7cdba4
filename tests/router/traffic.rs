//! Packets with numbers, about 1,000 a second, and which of them came.

use fullview_testnet::eventually;
use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Sends until it is ended.
pub struct Sender {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Sender {
    /// Each number to the address it is for, port 9.
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

    /// How many it has sent so far; the last of them may be about to be.
    #[cfg(feature = "bpf")]
    pub fn sent(&self) -> u32 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many it sent.
    pub fn end(self) -> u32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.sent.load(Ordering::Relaxed)
    }
}

/// Hears until it is ended, and nothing has come for a while.
pub struct Receiver {
    stop: Arc<AtomicBool>,
    heard: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<u32>>,
}

impl Receiver {
    pub fn start(socket: UdpSocket) -> Receiver {
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 16 << 20).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let (stop, heard) = (Arc::new(AtomicBool::new(false)), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&heard));
        let thread = thread::spawn(move || {
            let (mut heard, mut numbers) = ([0; 64], Vec::new());
            loop {
                count.store(numbers.len(), Ordering::Relaxed);
                match socket.recv(&mut heard) {
                    Ok(4) => numbers.push(u32::from_be_bytes(heard[..4].try_into().unwrap())),
                    Ok(_) => {}
                    Err(_) if stopped.load(Ordering::Relaxed) => return numbers,
                    Err(_) => {}
                }
            }
        });
        Receiver { stop, heard, thread }
    }

    /// How many have come so far.
    pub fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    /// Until so many more have come.
    pub fn wait_for(&self, more: usize) {
        let heard = || self.heard();
        let wanted = heard() + more;
        assert!(eventually(|| heard() >= wanted), "{} packets, not {wanted}", heard());
    }

    /// When so many have come, which with others is all there are; or when nothing comes any more.
    pub fn end_with(all: u32, receivers: Vec<Receiver>) -> Vec<Vec<u32>> {
        // What is missing nevertheless, the test finds out.
        let _ = eventually(|| receivers.iter().map(Receiver::heard).sum::<usize>() >= all as usize);
        receivers.into_iter().map(Receiver::end).collect()
    }

    pub fn end(self) -> Vec<u32> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Numbers that never came.
pub fn lost(sent: u32, arrived: &[u32]) -> Vec<u32> {
    let arrived: HashSet<u32> = arrived.iter().copied().collect();
    (0..sent).filter(|number| !arrived.contains(number)).collect()
}

/// Numbers that came more than once.
pub fn twice(arrived: &[u32]) -> Vec<u32> {
    let mut seen = HashSet::new();
    arrived.iter().copied().filter(|number| !seen.insert(*number)).collect()
}
