//! Tables change while packets run: every next hop was correct at some time, and none is older than one seen before.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};

use aya::programs::Xdp;
use aya_obj::programs::XdpAttachType;
use fullview_plane::engine::{Engine, INET_ALGORITHM, INET6_ALGORITHM};
use fullview_plane::view::TableReaders;
use fullview_table::fib::framework::{Attachment, Origin, Settings, Time};
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Address, Change, NextHop, Prefix, Rib, probe};
use fullview_testnet::may_load_programs;

use super::dut::{Became, Program, engine, plan, run, station};
use super::frames::frame;

/// A table with the framework of a router, which applies the changes of the RIB.
struct Served<A: Address> {
    rib: Rib<A>,
    attachment: Attachment<A>,
}

impl<A: Registered> Served<A> {
    fn new(algorithm: &str) -> Self {
        let modules = Arc::from([registry::find::<A>(algorithm).unwrap()]);
        let mut attachment = Attachment::new(Time::ZERO, 0, modules, Arc::new(Settings::default()));
        let rib = Rib::default();
        attachment.evaluate(Time::ZERO, &rib).unwrap();
        Served { rib, attachment }
    }

    fn change(&mut self, changes: &[Change<A>]) {
        for change in changes {
            self.rib.apply(*change);
        }
        self.attachment.changed(Time::ZERO, &self.rib, changes, Origin::Static);
        assert!(self.attachment.is_synced());
    }
}

/// Another handle on the program, for another thread.
fn handle(engine: &mut Engine) -> Xdp {
    let info = engine.program().unwrap().info().unwrap();
    Xdp::from_program_info(info, Cow::Borrowed("forward"), XdpAttachType::Interface).unwrap()
}

/// The next hop a packet was sent to.
fn answer(program: &Xdp, sent: &[u8]) -> Option<u16> {
    match run(&Program::Xdp(program), sent) {
        Became::Forwarded(out) => Some(u16::from_be_bytes([out[4], out[5]])),
        Became::Passed(out) => {
            assert_eq!(out, sent);
            None
        }
        Became::Dropped => panic!("it was dropped"),
    }
}

/// A change gives every prefix the same new next hop, one higher than before, and withdraws one of them every third time.
fn round<A: Registered>(prefixes: &[Prefix<A>], number: u16) -> Vec<Change<A>> {
    let changed = prefixes.iter().enumerate().map(|(n, prefix)| {
        let withdrawn = number.is_multiple_of(3) && n == usize::from(number) % prefixes.len();
        Change { prefix: *prefix, next_hop: (!withdrawn).then_some(NextHop(number)) }
    });
    changed.collect()
}

fn prefixes<A: Registered>(inside: A, lens: [u8; 4]) -> Vec<Prefix<A>> {
    lens.map(|len| Prefix::containing(inside, len)).into()
}

const ROUNDS: u16 = 40;

/// Lookups of each watcher per round, however busy the machine is.
const LOOKS: usize = 25;

/// Sends packets to an address that all prefixes contain. All prefixes change together and some are withdrawn, so every next
/// hop is the number of a round, and the rounds come in order.
fn watch<A: Registered>(
    program: &Xdp,
    (source, inside): (A, A),
    looks: &AtomicUsize,
    done: &AtomicBool,
) -> u16 {
    let (mut last, mut rounds) = (0, 0);
    let sent = frame(source, inside);
    while !done.load(Ordering::Relaxed) {
        let answer = answer(program, &sent).unwrap_or(0);
        assert!(answer >= last, "round {answer} after round {last}");
        rounds += u16::from(answer > last);
        last = answer;
        looks.fetch_add(1, Ordering::Relaxed);
    }
    rounds
}

/// Ends the watchers when it is dropped, after a failure too, so that no thread waits for them forever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Waits until the watcher has done this number of lookups from now on, or has failed.
fn let_it_look<T>(watcher: &ScopedJoinHandle<'_, T>, looks: &AtomicUsize) {
    let before = looks.load(Ordering::Relaxed);
    while looks.load(Ordering::Relaxed) < before + LOOKS && !watcher.is_finished() {
        thread::yield_now();
    }
}

#[test]
fn packets_use_the_old_table_or_the_new_one_and_no_mixture() {
    if !may_load_programs() {
        return;
    }
    let (mut inet, mut inet6) = (Served::<u32>::new(INET_ALGORITHM), Served::<u128>::new(INET6_ALGORITHM));
    let tables =
        TableReaders { inet: inet.attachment.shared_reader(), inet6: inet6.attachment.shared_reader() };
    let mut engine = engine(&plan(ROUNDS), tables);
    let (inside, inside6) = (0xc612_0a63u32, 0x2001_0002_0001_0002_0003_0004_0005_0006u128);
    let all = prefixes(inside, [0, 16, 24, 30]);
    let all6 = prefixes(inside6, [0, 40, 48, 64]);
    let handles = [handle(&mut engine), handle(&mut engine)];
    let (done, looks, looks6) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        let _ends = Ends(&done);
        let [program, program6] = &handles;
        let watcher = scope.spawn(|| watch(program, (0xc000_0201, inside), &looks, &done));
        let watcher6 = scope.spawn(|| watch(program6, (0x2001_0db8 << 96, inside6), &looks6, &done));
        for number in 1..=ROUNDS {
            inet.change(&round(&all, number));
            inet6.change(&round(&all6, number));
            engine.sync().unwrap();
            let_it_look(&watcher, &looks);
            let_it_look(&watcher6, &looks6);
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(
            [watcher, watcher6].map(|watcher| watcher.join().unwrap()),
            [ROUNDS; 2],
            "each saw every round"
        );
    });
}

/// After each change all next hops equal the RIB's, in either generation, and few blocks were copied.
#[test]
fn next_hops_still_equal_the_ribs_after_many_changes() {
    if !may_load_programs() {
        return;
    }
    let (mut inet, inet6) = (Served::<u32>::new(INET_ALGORITHM), Served::<u128>::new(INET6_ALGORITHM));
    let tables =
        TableReaders { inet: inet.attachment.shared_reader(), inet6: inet6.attachment.shared_reader() };
    let start: Vec<_> = probe::uniform::<u32>(4)
        .take(2_000)
        .map(|addr| Change { prefix: Prefix::containing(addr, 22), next_hop: Some(NextHop(1)) })
        .collect();
    inet.change(&start);
    let mut engine = engine(&plan(ROUNDS), tables);
    engine.sync().unwrap();
    let addrs: Vec<_> =
        probe::in_prefix(&inet.rib, 5).filter(|addr| (1 << 24..0x7f << 24).contains(addr)).take(60).collect();
    for (n, addr) in addrs.iter().enumerate() {
        let hop = (n % 4 != 0).then_some(NextHop(n as u16 % ROUNDS + 1));
        let len = [20, 22, 24, 28, 32][n % 5];
        inet.change(&[Change { prefix: Prefix::containing(*addr, len), next_hop: hop }]);
        let copied = engine.sync().unwrap();
        assert!((1..=16).contains(&copied) || n == 0, "{copied} blocks for one route");
        for addr in &addrs {
            let wanted = inet.rib.longest_match(*addr).map(|route| route.next_hop.0);
            assert_eq!(answer(engine.program().unwrap(), &frame(0xc000_0201, *addr)), wanted, "change {n}");
        }
    }
    assert_eq!(station(NextHop(0x0102))[4..], [1, 2], "what `answer` reads");
}
