//! Random changes by `ip`, given to a router with our program and to a kernel that forwards alone. After each burst, our
//! program has to have what its kernel lists, and probe packets have to have the same fate in both places. One test makes no
//! probes and needs no second kernel, so that it sees many times as many changes.
//!
//! `FULLVIEW_TWIN_SECONDS` says how long a test runs (60, or 20 without probes), `FULLVIEW_TWIN_SEED` which changes it makes. A
//! failure prints the seed and all changes; `FULLVIEW_TWIN_REPLAY` names a file with such a text, whose changes come first.

mod changes;
mod hidden;
mod place;
mod probes;
mod state;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fullview_testnet::may_run;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::control::Control;
use crate::lab::forward;
use changes::{Change, Changes};
use place::{Place, SIDES};

/// Flows to each destination, and where the routers differ, in the comparison that follows.
const FLOWS: u16 = 3;
const MANY_FLOWS: u16 = 64;

fn variable(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}")))
}

/// Everything follows a change within a small part of this time, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(45);

/// Checks the condition until it holds. Returns whether it held in the end.
fn settles(mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > PATIENCE {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
    true
}

/// What is not as it should be.
enum Difference {
    /// Two kernels that were given the same commands differ: some of what they do, such as to give an interface that comes
    /// up its link-local address, races with the commands.
    OfKernels(String),
    OfOurs(String),
}

impl Difference {
    fn map(self, told: impl FnOnce(String) -> String) -> Difference {
        match self {
            Difference::OfKernels(why) => Difference::OfKernels(told(why)),
            Difference::OfOurs(why) => Difference::OfOurs(told(why)),
        }
    }
}

/// The two places, and what was done in them.
struct Twins {
    ours: Place,
    /// None if only what our program has is compared.
    twin: Option<Place>,
    /// Whether the router has a carrier on each side.
    carriers: [bool; SIDES],
    control: Arc<Control>,
    done: Vec<Vec<Change>>,
    round: u32,
}

impl Twins {
    fn new(control: Arc<Control>, scope: Scope) -> Twins {
        let (ours, twin) = (Place::new(), (scope == Scope::All).then(Place::new));
        Twins { ours, twin, carriers: [true; SIDES], control, done: Vec::new(), round: 0 }
    }

    fn apply(&mut self, burst: &[Change]) {
        for place in [Some(&self.ours), self.twin.as_ref()].into_iter().flatten() {
            let mut lines = Vec::new();
            for change in burst {
                match change {
                    Change::Router(line) => lines.push(line.clone()),
                    Change::Carrier { side, is_there } => {
                        place.batch(&std::mem::take(&mut lines));
                        place.set_carrier(*side, *is_there);
                    }
                    Change::HashPolicy { family, policy } => {
                        let setting = format!("{family}/fib_multipath_hash_policy");
                        place.router.sysctl(&setting, &policy.to_string());
                    }
                }
            }
            place.batch(&lines);
        }
        for change in burst {
            if let Change::Carrier { side, is_there } = change {
                self.carriers[*side] = *is_there;
            }
        }
        self.done.push(burst.to_vec());
    }

    /// Makes sure that both kernels made the same of the changes.
    fn compare_kernels(&self) -> Result<(), Difference> {
        let Some(twin) = &self.twin else { return Ok(()) };
        let mut lists = [BTreeSet::new(), BTreeSet::new()];
        let same = settles(|| {
            lists = [&self.ours, twin].map(|place| state::listing(&place.router));
            lists[0] == lists[1]
        });
        if same {
            return Ok(());
        }
        Err(Difference::OfKernels(differences("the kernels", ["with our program", "alone"], &lists)))
    }

    fn compare_state(&self) -> Result<(), Difference> {
        let mut facts = [BTreeSet::new(), BTreeSet::new()];
        let same = settles(|| {
            let (kernel, unclear) = state::of_kernel(&self.ours.router);
            facts = [state::of_program(&self.control, &self.ours.router), kernel];
            let is_clear = |line: &String| !unclear.iter().any(|begin| line.starts_with(begin));
            facts.iter_mut().for_each(|facts| facts.retain(is_clear));
            facts[0] == facts[1]
        });
        if same {
            return Ok(());
        }
        let differences = differences("the state", ["our program", "its kernel"], &facts);
        let routes =
            ["-4", "-6"].map(|family| self.ours.router.ip(&format!("-d -N {family} route show table all")));
        let objects = self.ours.router.ip("nexthop show");
        Err(Difference::OfOurs(format!("{differences}\nits kernel has:\n{}{objects}", routes.concat())))
    }

    fn compare_fates(&mut self) -> Result<(), Difference> {
        let Some(twin) = &self.twin else { return Ok(()) };
        let mut only = BTreeSet::new();
        let mut said = String::new();
        let mut silence = probes::SILENCE;
        let same = settles(|| {
            self.round += 1;
            let flows = if only.is_empty() { FLOWS } else { MANY_FLOWS };
            let ours = probes::send(&self.ours, self.carriers, flows, &only, (self.round, silence));
            let twins = probes::send(twin, self.carriers, flows, &only, (self.round, silence));
            silence = probes::LONGEST_SILENCE.min(silence * 2);
            only = probes::different(&ours, &twins).into_iter().collect();
            let one = |key: &(usize, std::net::IpAddr)| {
                let [ours, twins] = [&ours, &twins].map(|fates| probes::shown(fates, key));
                format!(
                    "from host {} to {}:\n  our program:\n{ours}\n  the kernel alone:\n{twins}",
                    key.0 + 1,
                    key.1
                )
            };
            said = only.iter().map(one).collect::<Vec<_>>().join("\n");
            only.is_empty()
        });
        if same { Ok(()) } else { Err(Difference::OfOurs(format!("the fates of packets differ\n{said}"))) }
    }

    fn compare(&mut self) -> Result<(), Difference> {
        self.compare_kernels()?;
        self.compare_state()?;
        self.compare_fates()?;
        // Probes make neighbours known.
        if self.twin.is_some() { self.compare_state() } else { Ok(()) }
    }

    fn history(&self) -> String {
        let bursts = self.done.iter().enumerate().map(|(number, burst)| {
            let lines: Vec<String> = burst.iter().map(|change| format!("  {change}")).collect();
            format!("burst {number}:\n{}", lines.join("\n"))
        });
        bursts.collect::<Vec<_>>().join("\n")
    }
}

fn differences(of: &str, names: [&str; 2], sets: &[BTreeSet<String>; 2]) -> String {
    let only = |one: usize| {
        let lines = sets[one].difference(&sets[1 - one]).map(|line| format!("  only {}: {line}", names[one]));
        lines.collect::<Vec<_>>().join("\n")
    };
    format!("{of} differ\n{}\n{}", only(0), only(1))
}

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// What our program has, and the fates of packets.
    All,
    /// What our program has.
    State,
}

impl Scope {
    fn seconds(self) -> u64 {
        match self {
            Scope::All => 60,
            Scope::State => 20,
        }
    }
}

/// Makes bursts of changes until the time is over. Returns the number of bursts, or how far the routers differ.
fn change_until(
    end: Instant,
    (options, scope): (&[&str], Scope),
    changes: &mut Changes,
) -> Result<usize, Difference> {
    let control = Arc::new(Control::new());
    let mut twins = Twins::new(Arc::clone(&control), scope);
    let options = [options, &control.options()[..]].concat();
    let names = (1..=SIDES).map(|side| format!("eth{side}")).collect::<Vec<_>>().join(",");
    let program = forward(&twins.ours.router, &names, &options);
    let mut compared = twins.compare();
    for burst in replayed() {
        twins.apply(&burst);
        compared = compared.and_then(|()| twins.compare());
    }
    while compared.is_ok() && Instant::now() < end {
        let burst = changes.burst();
        twins.apply(&burst);
        compared = twins.compare();
    }
    let told =
        |why| format!("options {options:?}, all changes:\n{}\n{}\n{why}", twins.history(), program.output());
    compared.map(|()| twins.done.len()).map_err(|difference| difference.map(told))
}

/// The changes that a failure printed.
fn replayed() -> Vec<Vec<Change>> {
    let Some(file) = std::env::var_os("FULLVIEW_TWIN_REPLAY") else { return Vec::new() };
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let bursts = text.split("\nburst ").skip(1);
    let bursts: Vec<_> = bursts.map(|burst| burst.lines().filter_map(Change::read).collect()).collect();
    assert!(!bursts.is_empty(), "{} has no bursts", file.display());
    bursts
}

fn agrees(options: &[&str], scope: Scope) {
    if !may_run(&["ip", "ethtool", "setpriv"]) {
        return;
    }
    let seconds = Duration::from_secs(variable("FULLVIEW_TWIN_SECONDS", scope.seconds()));
    let seed = variable("FULLVIEW_TWIN_SEED", 1);
    let mut changes = Changes(ChaCha8Rng::seed_from_u64(seed));
    let began = Instant::now();
    let mut races = Vec::new();
    loop {
        match change_until(began + seconds, (options, scope), &mut changes) {
            Ok(bursts) => return println!("{bursts} bursts since {} races of the kernels", races.len()),
            Err(Difference::OfOurs(why)) => panic!("seed {seed}, {why}"),
            Err(Difference::OfKernels(why)) => races.push(why),
        }
        // More than one in this time would be our program's doing.
        assert!(races.len() <= 1 + began.elapsed().as_secs() as usize / 300, "seed {seed}, {races:#?}");
    }
}

#[test]
fn threads_agree_with_a_kernel_alone() {
    agrees(&["--engine", "threads"], Scope::All);
}

#[test]
fn threads_on_af_xdp_agree_with_a_kernel_alone() {
    agrees(&["--engine", "threads", "--port", "xdp"], Scope::All);
}

#[test]
fn the_generic_xdp_program_agrees_with_a_kernel_alone() {
    agrees(&["--engine", "xdp-generic"], Scope::All);
}

#[test]
fn the_tc_program_agrees_with_a_kernel_alone() {
    agrees(&["--engine", "tc"], Scope::All);
}

#[test]
fn the_xdp_program_agrees_with_a_kernel_alone() {
    agrees(&["--engine", "xdp"], Scope::All);
}

#[test]
fn the_state_of_the_program_is_that_of_its_kernel() {
    agrees(&["--engine", "tc"], Scope::State);
}
