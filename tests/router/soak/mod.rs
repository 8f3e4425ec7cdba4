//! Everything at once, for as long as `FULLVIEW_SOAK` says in seconds: load, churn, reloads, questions. Packets by routes
//! that stay are neither lost nor misled, and the program has no more in the end than in the beginning.

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
use vitals::{Trend, Vitals};

/// Among the other tests, in seconds: long enough for every kind of trouble, too short to judge memory by.
const SHORT: u64 = 5;

/// From here on memory is judged, in seconds.
const LONG: u64 = 30;

/// So many times it goes on as long as the memory grows.
const MOST_TIMES: usize = 4;

/// Rounds of changes before anything is measured.
const WARM_UP: usize = 20;

fn time() -> Duration {
    let asked = std::env::var("FULLVIEW_SOAK");
    Duration::from_secs(
        asked.map_or(SHORT, |text| text.parse().expect("FULLVIEW_SOAK is a number of seconds")),
    )
}

#[test]
fn packet_sockets_bear_everything_at_once() {
    soak("");
}

#[cfg(feature = "bpf")]
#[test]
fn af_xdp_sockets_bear_everything_at_once() {
    soak("port = \"auto\"\n");
}

#[cfg(feature = "bpf")]
#[test]
fn the_program_in_the_kernel_bears_everything_at_once() {
    soak("engine = \"xdp-generic\"\n");
}

fn soak(router: &'static str) {
    if !may_run(&["ip", "setpriv"]) || cfg!(feature = "bpf") && !may_run(&["ethtool"]) {
        return;
    }
    let place = Place::new();
    #[cfg(feature = "bpf")]
    if !router.is_empty() {
        place.lab.be_wires();
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
    /// Set when time is up, or when one of the threads has failed.
    end: AtomicBool,
    time: Duration,
}

/// Ends everything when a thread ends, however that comes.
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
        // Most prefixes have come by once: from here on the tables have their sizes.
        (0..WARM_UP).for_each(|_| routes.round());
        let before = self.quiet();
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
        // A capture that is full ends, with its thread and its file.
        let is_as_before = || {
            let after = self.quiet();
            after.threads <= before.threads && after.descriptors <= before.descriptors
        };
        assert!(eventually(is_as_before), "{before:?}, now {:?}", self.quiet());
    }

    fn repeat(&self, pause: u64, mut each: impl FnMut()) {
        let _all = EndsAll(&self.end);
        while !self.end.load(Ordering::Relaxed) {
            each();
            sleep(Duration::from_millis(pause));
        }
    }

    /// A flow with troublesome frames between its packets, and packets that go by routes that change.
    fn trouble(&self, mut flow: Flow) -> (Tally, Counted) {
        let mut aside = Aside::new(self.place);
        self.repeat(5, || {
            flow.round();
            aside.round();
        });
        (flow.end(), aside.counted)
    }

    /// With nobody asking anything.
    fn quiet(&self) -> Vitals {
        Vitals::of(self.program.id())
    }

    /// The time once, or again as long as the memory grows: on a busy machine the heap reaches its size later. What
    /// leaks never ends to grow.
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
    assert_eq!(aside.astray, 0, "packets by routes that stay came to the host beside");
    assert!(aside.to_the_right > 0 && aside.troublesome > 0, "{aside:?}");
    // A link that flaps and a neighbour whose address is often wrong let few through.
    assert!(time.as_secs() < LONG || aside.beside > 0, "{aside:?}");
}

fn judge_memory(samples: &[Vitals], time: Duration) {
    let trend = Trend::of(samples);
    let most = |figure: fn(&Vitals) -> usize| samples.iter().map(figure).max();
    trend.tell();
    println!("at most {:?} threads, {:?} descriptors", most(|one| one.threads), most(|one| one.descriptors));
    assert!(has_settled(samples, time), "{trend:?}");
}

/// Shorter ones end before any heap has settled.
fn has_settled(samples: &[Vitals], time: Duration) -> bool {
    time.as_secs() < LONG || Trend::of(samples).is_flat()
}

/// It ends well, has all its packet memory back, and leaves nothing.
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

/// Of the namespace: one line each, after the title.
fn packet_sockets() -> usize {
    std::fs::read_to_string("/proc/thread-self/net/packet").unwrap().lines().count() - 1
}
