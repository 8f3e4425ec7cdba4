//! Load, churn, reloads and queries at the same time, for the number of seconds in `FULLVIEW_SOAK`. Packets by routes that
//! stay are neither lost nor misrouted, and the program has no more threads, descriptors and memory at the end than at the
//! beginning.

mod aside;
mod asking;
mod churn;
mod frames;
mod place;
mod traffic;
mod vitals;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use aside::{Aside, Counted};
use asking::Operator;
use churn::{Link, Routes};
use fullview_testnet::{Program, eventually, may_run};
use place::Place;
use traffic::{Flow, Tally};
use vitals::{Held, Trend, Vitals};

/// The time among the other tests, in seconds: long enough for every kind of trouble, too short to judge memory.
const SHORT: u64 = 5;

/// A run of at least this number of seconds judges memory.
const LONG: u64 = 30;

/// The run is repeated up to this number of times while the memory grows.
const MOST_TIMES: usize = 4;

/// The number of rounds of changes before the first measurement.
const WARM_UP: usize = 20;

fn time() -> Duration {
    let asked = std::env::var("FULLVIEW_SOAK");
    Duration::from_secs(
        asked.map_or(SHORT, |text| text.parse().expect("FULLVIEW_SOAK is a number of seconds")),
    )
}

#[test]
fn packet_sockets_under_all_load() {
    soak("port = \"packet\"\n");
}

#[cfg(feature = "bpf")]
#[test]
fn af_xdp_sockets_under_all_load() {
    soak("port = \"auto\"\n");
}

#[cfg(feature = "bpf")]
#[test]
fn the_xdp_engine_under_all_load() {
    soak("engine = \"xdp-generic\"\n");
}

fn soak(router: &'static str) {
    if !may_run(&["ip", "setpriv"]) || cfg!(feature = "bpf") && !may_run(&["ethtool"]) {
        return;
    }
    let place = Place::new();
    #[cfg(feature = "bpf")]
    if !router.contains("packet") {
        place.lab.behave_as_wires();
    }
    let operator = Operator::new(&place, router);
    let file = operator.write("");
    let arguments = ["forward", "--config", file.to_str().unwrap()];
    let mut program = place.lab.router.start(crate::operations::FULLVIEW, &arguments);
    program.wait_for("control: ");
    let mut flows = place.flows();
    assert!(flows.iter_mut().all(Flow::begin), "{}", program.output());
    Soak { place: &place, program: &program, end: AtomicBool::new(false), time: time() }.run(flows, operator);
    judge_end(&place, program);
}

struct Soak<'s> {
    place: &'s Place,
    program: &'s Program,
    /// This is set when the time is over or one of the threads has failed.
    end: AtomicBool,
    time: Duration,
}

/// Ends all threads when one thread ends, also by a panic.
struct EndsAll<'s>(&'s AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Soak<'_> {
    fn run(&self, flows: [Flow; 3], mut operator: Operator<'_>) {
        let [inet, inet6, back] = flows;
        let (mut routes, mut link) = (Routes::new(self.place), Link::new(self.place));
        // Most prefixes have been announced once; from here on the tables keep their sizes.
        (0..WARM_UP).for_each(|_| routes.round());
        let before = self.quiet();
        let held = Held::by(self.program.id());
        let (samples, tallies, aside) = scope(|scope| {
            let stable = [inet6, back].map(|mut flow| {
                scope.spawn(move || {
                    self.repeat(5, || flow.round());
                    flow.end()
                })
            });
            let troubled = scope.spawn(|| self.trouble(inet));
            scope.spawn(|| self.repeat(50, || routes.round()));
            scope.spawn(|| self.repeat(0, || link.round()));
            scope.spawn(|| {
                let mut turn = 0;
                self.repeat(20, || {
                    turn += 1;
                    operator.ask();
                    operator.scrape();
                    if turn % 10 == 1 {
                        operator.reload(self.program);
                    }
                    if turn % 100 == 50 {
                        operator.trace();
                    }
                });
            });
            let samples = self.sample();
            let (inet, aside) = troubled.join().unwrap();
            let [inet6, back] = stable.map(|flow| flow.join().unwrap());
            (samples, [inet, inet6, back], aside)
        });
        println!("{} changes, {} flaps, {} reloads", routes.changes, link.flaps, operator.reloads);
        println!("{} answers, busy {} times", operator.answers, operator.busy);
        println!("by the routes that change: {aside:?}");
        if tallies.iter().any(|tally| !tally.lost.is_empty()) {
            println!("{}", self.program.output());
        }
        judge_traffic(&tallies, &aside, self.time);
        judge_memory(&samples, self.time);
        // A capture that is full ends, and its thread and its file with it.
        let is_as_before = || {
            let after = self.quiet();
            after.threads <= before.threads && after.descriptors <= before.descriptors
        };
        let id = self.program.id();
        assert!(
            eventually(is_as_before),
            "{before:?}, now {:?}; new: {:?}; {}",
            self.quiet(),
            Held::by(id).since(&held),
            self.program.output()
        );
    }

    fn repeat(&self, pause: u64, mut each: impl FnMut()) {
        let _all = EndsAll(&self.end);
        while !self.end.load(Ordering::Relaxed) {
            each();
            sleep(Duration::from_millis(pause));
        }
    }

    /// Sends a flow with troublesome frames between its packets, and packets by routes that change.
    fn trouble(&self, mut flow: Flow) -> (Tally, Counted) {
        let mut aside = Aside::new(self.place);
        self.repeat(5, || {
            flow.round();
            aside.round();
        });
        (flow.end(), aside.counted)
    }

    /// Returns the vitals while no client is connected.
    fn quiet(&self) -> Vitals {
        Vitals::of(self.program.id())
    }

    /// Takes samples for the time of the run, and repeats that while the memory grows: on a busy machine the heap reaches
    /// its size later. A leak never stops growing.
    fn sample(&self) -> Vec<Vitals> {
        let _all = EndsAll(&self.end);
        let mut samples = Vec::new();
        for _ in 0..MOST_TIMES {
            self.sample_once(&mut samples);
            if self.end.load(Ordering::Relaxed) || has_settled(&samples, self.time) {
                break;
            }
        }
        samples
    }

    fn sample_once(&self, samples: &mut Vec<Vitals>) {
        let began = Instant::now();
        while began.elapsed() < self.time && !self.end.load(Ordering::Relaxed) {
            samples.push(Vitals::of(self.program.id()));
            sleep((self.time / 200).max(Duration::from_millis(100)));
        }
    }
}

fn judge_traffic(tallies: &[Tally; 3], aside: &Counted, time: Duration) {
    for (number, tally) in tallies.iter().enumerate() {
        println!("flow {number}: {} sent, {} arrived, lost {:?}", tally.sent, tally.arrived, tally.lost);
        let whole = Tally { sent: tally.sent, arrived: tally.sent, ..Tally::default() };
        assert_eq!(*tally, whole, "flow {number}");
    }
    assert_eq!(aside.astray, 0, "packets by routes that stay arrived at the wrong host");
    assert!(aside.to_the_right > 0 && aside.troublesome > 0, "{aside:?}");
    // Few packets pass a link that flaps, to a neighbour whose address is often wrong.
    assert!(time.as_secs() < LONG || aside.beside > 0, "{aside:?}");
}

fn judge_memory(samples: &[Vitals], time: Duration) {
    let trend = Trend::of(samples);
    let most = |figure: fn(&Vitals) -> usize| samples.iter().map(figure).max();
    trend.tell();
    println!("at most {:?} threads, {:?} descriptors", most(|one| one.threads), most(|one| one.descriptors));
    assert!(has_settled(samples, time), "{trend:?}");
}

/// Returns whether the memory has stopped growing. A short run ends before any heap has settled; it is not judged.
fn has_settled(samples: &[Vitals], time: Duration) -> bool {
    time.as_secs() < LONG || Trend::of(samples).is_flat()
}

/// Checks that the program ends successfully, has all its packet memory back, and leaves nothing behind.
fn judge_end(place: &Place, program: Program) {
    let (code, said) = program.end("TERM");
    assert!(code == Some(0) && !said.contains("panicked"), "{said}");
    let slots = said.lines().find_map(|line| line.strip_prefix("packet memory: "));
    if let Some((back, all)) =
        slots.and_then(|slots| slots.strip_suffix(" slots came back")?.split_once(" of "))
    {
        assert_eq!(back, all, "{said}");
    }
    let links = place.lab.router.ip("-d link show");
    assert!(!links.contains("xdp") && !links.contains("promiscuity 1"), "{links}");
    assert_eq!(place.lab.router.run(packet_sockets), 0);
    assert!(!place.path("control.sock").exists() && !place.path("metrics.sock").exists());
}

/// Counts the packet sockets of the namespace: the file has one line for each, after the title.
fn packet_sockets() -> usize {
    std::fs::read_to_string("/proc/thread-self/net/packet").unwrap().lines().count() - 1
}
