//! The mirror in this process follows the kernel of a node; its answers are compared with those of that kernel.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use fullview_router::follow::{Follower, Statistics};
use fullview_router::mirror::Mirror;
use fullview_table::Address;
use fullview_testnet::{Node, eventually};

const MAIN: u32 = 254;

pub struct Watch {
    follower: Follower,
    pub mirror: Mirror,
    began: Instant,
}

impl Watch {
    pub fn new(node: &Node, interfaces: &[&str], receive_buffer: usize) -> Watch {
        let follower = node.run(move || Follower::new(Some(receive_buffer)).unwrap());
        let names = interfaces.iter().map(|name| (*name).to_owned()).collect();
        let mut watch = Watch {
            follower,
            mirror: Mirror::new(Duration::ZERO, names, Default::default()),
            began: Instant::now(),
        };
        watch.settle();
        watch
    }

    /// Follows the kernel until it has reported nothing for a while and all tables are up to date.
    pub fn settle(&mut self) {
        let mut silent = Instant::now();
        while silent.elapsed() < Duration::from_millis(400) || !self.follower.is_synced() {
            let before = self.follower.statistics();
            while self.follower.advance(self.began.elapsed(), &mut self.mirror).unwrap() {}
            if self.follower.is_synced() {
                self.mirror.commit(self.began.elapsed());
            }
            let soon = self.began.elapsed() + Duration::from_secs(2);
            let is_due = self.mirror.next_deadline().is_some_and(|due| due <= soon);
            if self.follower.statistics() != before || is_due {
                silent = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes in one turn of what the kernel reported.
    pub fn turn(&mut self) {
        self.follower.advance(self.began.elapsed(), &mut self.mirror).unwrap();
        self.mirror.commit(self.began.elapsed());
    }

    /// Makes the mirror see a clock that is ahead by this time.
    pub fn skip(&mut self, time: Duration) {
        self.began -= time;
    }

    pub fn settle_until(&mut self, mut is_so: impl FnMut(&Mirror) -> bool) -> bool {
        eventually(|| {
            self.settle();
            is_so(&self.mirror)
        })
    }

    pub fn statistics(&self) -> Statistics {
        self.follower.statistics()
    }

    /// Returns the stations that packets to an address go to. FIB and RIB have to agree.
    pub fn stations(&self, address: IpAddr) -> Vec<(u32, IpAddr)> {
        let view = self.mirror.views().current();
        let tables = self.mirror.tables();
        let (by_fib, by_rib) = match address {
            IpAddr::V4(ip) => (
                view.parts().tables[0].inet.with(|fib| fib.lookup(u32::from_ip(ip))),
                tables
                    .inet
                    .rib(MAIN)
                    .and_then(|rib| rib.longest_match(u32::from_ip(ip)))
                    .map(|route| route.next_hop),
            ),
            IpAddr::V6(ip) => (
                view.parts().tables[0].inet6.with(|fib| fib.lookup(u128::from_ip(ip))),
                tables
                    .inet6
                    .rib(MAIN)
                    .and_then(|rib| rib.longest_match(u128::from_ip(ip)))
                    .map(|route| route.next_hop),
            ),
        };
        assert_eq!(by_fib, by_rib.unwrap_or_default(), "{address}");
        self.mirror.stations(MAIN, address)
    }

    /// Compares the stations of each address with the answer of the kernel. Returns how many addresses have a route.
    pub fn compare(&self, node: &Node, addresses: &[IpAddr]) -> usize {
        let kernel = ask_kernel(node, addresses);
        for address in addresses {
            let ours: Vec<IpAddr> = self.stations(*address).into_iter().map(|(_, station)| station).collect();
            match kernel.get(address) {
                Some(station) => {
                    assert!(ours.contains(station), "{address}: the kernel {station}, we {ours:?}")
                }
                None => assert!(ours.is_empty(), "{address}: the kernel has no route, we {ours:?}"),
            }
        }
        kernel.len()
    }
}

/// Returns the station to which the kernel would send for each address that it has a route to.
fn ask_kernel(node: &Node, addresses: &[IpAddr]) -> HashMap<IpAddr, IpAddr> {
    let folder = tempfile::tempdir().unwrap();
    let batch = folder.path().join("batch");
    let lines: String = addresses.iter().map(|address| format!("route get {address}\n")).collect();
    std::fs::write(&batch, lines).unwrap();
    let output = node.try_command(&format!("ip -force -batch {}", batch.display()));
    let said = String::from_utf8(output.stdout).unwrap();
    said.lines().filter_map(station).collect()
}

/// Parses `198.51.100.1 via 10.0.1.2 dev eth1 …`; `via` is absent if the address is on the link.
fn station(line: &str) -> Option<(IpAddr, IpAddr)> {
    let mut words = line.split_whitespace();
    let address: IpAddr = words.next()?.parse().ok()?;
    let mut words = words.skip_while(|word| *word == "from" || word.parse::<IpAddr>().is_ok());
    match words.next()? {
        "via" => Some((address, words.find_map(|word| word.parse().ok())?)),
        "dev" => Some((address, address)),
        _ => None,
    }
}
