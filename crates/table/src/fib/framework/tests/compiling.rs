//! Compiles that fail, that are tried again, and that run in other threads.

use std::time::Duration;

use super::*;
use crate::fib::registry;

fn elsewhere() -> Settings {
    Settings { compile: Compile::Elsewhere, ..Settings::default() }
}

impl Driven {
    fn job(&mut self, now: u64) -> Option<Job<u32>> {
        self.table.job(ms(now), &self.rib)
    }

    fn offer(&mut self, now: u64, built: Built<u32>) {
        self.table.offer(ms(now), &self.rib, built);
    }

    /// A table that is served, with one route.
    fn started(modules: &[Module<u32>], settings: Settings) -> Self {
        let mut driven = Driven::new(modules, settings);
        driven.add_one(0, Origin::Static);
        driven
    }
}

#[test]
fn after_a_failure_the_next_best_serves_and_the_module_is_tried_again() {
    let best = Scripted::new("best", 200, Outcome::Rebuild);
    let next = Scripted::new("next", 50, Outcome::Applied);
    let mut driven = Driven::started(&[best, next], Settings::default());
    best.set(|state| state.failing = 3);
    driven.add(5_000, 1);
    assert_eq!((driven.table.algorithm(), driven.published()), (Some("next"), 2));
    for (failure, wait) in [(5_000, 100), (5_100, 200), (5_300, 400)] {
        assert_eq!(driven.table.next_deadline(), Some(ms(failure + wait)));
        driven.tick(failure + wait - 1);
        assert_eq!(driven.table.algorithm(), Some("next"));
        driven.tick(failure + wait);
    }
    assert_eq!((driven.table.algorithm(), driven.table.failure()), (Some("best"), None));
    let expected = [
        "[5.000000] [fib_algo] inet.0 (best#1) setup_fd_instance: best algo instance setup failed, failures=1: best \
         cannot hold this table: 1 routes needed, 0 possible",
        "[5.000000] [fib_algo] inet.0 (best#1) rebuild_fd_flm: switching algo to next",
        "[5.100000] [fib_algo] inet.0 (next#2) setup_fd_instance: best algo instance setup failed, failures=2: best \
         cannot hold this table: 1 routes needed, 0 possible",
        "[5.300000] [fib_algo] inet.0 (next#2) setup_fd_instance: best algo instance setup failed, failures=3: best \
         cannot hold this table: 1 routes needed, 0 possible",
        "[5.700000] [fib_algo] inet.0 (next#2) rebuild_fd_flm: switching algo to best",
    ];
    assert_eq!(driven.log_without_scheduling(), expected);
}

#[test]
fn an_only_module_that_fails_leaves_its_last_fib_and_is_tried_again() {
    let only = Scripted::new("only", 9, Outcome::Rebuild);
    let mut driven = Driven::started(&[only], Settings::default());
    only.set(|state| state.failing = 12);
    driven.add(1_000, 1);
    let mut waits = Vec::new();
    let mut now = ms(1_000);
    while !driven.table.is_synced() {
        assert_eq!(driven.published(), 1);
        assert!(driven.table.failure().is_some());
        let deadline = driven.table.next_deadline().unwrap();
        waits.push((deadline - now).as_millis());
        now = deadline;
        driven.table.tick(now, &driven.rib);
    }
    let doubled = [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200];
    assert_eq!((&waits[..10], &waits[10..]), (&doubled[..], &[51_200; 2][..]));
    assert_eq!(driven.published(), 2);
}

#[test]
fn without_a_retry_delay_a_module_is_not_tried_twice_at_once() {
    let only = Scripted::new("only", 9, Outcome::Rebuild);
    let settings = Settings { retry_delay: Duration::ZERO, ..Settings::default() };
    let mut driven = Driven::started(&[only], settings);
    only.set(|state| state.failing = 1);
    driven.add(1_000, 1);
    assert_eq!((driven.published(), driven.table.next_deadline()), (1, Some(ms(1_002))));
    driven.tick(1_002);
    assert!(driven.table.is_synced());
}

#[test]
fn the_error_is_returned_if_no_module_compiles() {
    let only = Scripted::new("only", 9, Outcome::Rebuild);
    only.set(|state| state.failing = 1);
    let mut driven = Driven::new(&[only], Settings::default());
    let error = driven.table.evaluate(ms(0), &driven.rib).unwrap_err().to_string();
    assert!(error.starts_with("only cannot hold this table"), "{error}");
    assert_eq!(driven.table.next_deadline(), Some(ms(100)));
    driven.tick(100);
    assert_eq!(driven.table.algorithm(), Some("only"));
}

#[test]
fn a_table_that_outgrows_its_groups_is_compiled_larger() {
    let mut driven = Driven::started(&[registry::find("dpdk_lpm4").unwrap()], Settings::default());
    let groups = |driven: &Driven| driven.table.fib().footprint().total();
    let before = groups(&driven);
    for route in 0..1_000u32 {
        let prefix = Prefix::containing(0x0b00_0000 + (route << 8), 30);
        let change = Change { prefix, next_hop: Some(NextHop(3)) };
        Arc::make_mut(&mut driven.rib).apply(change);
        driven.table.changed(ms(u64::from(route) * 100), &driven.rib, &[change], Origin::Protocol);
        assert_eq!(driven.table.fib().lookup(prefix.first()), NextHop(3), "{route}");
    }
    assert_eq!((driven.table.algorithm(), driven.table.is_synced()), (Some("dpdk_lpm4"), true));
    assert_eq!(groups(&driven) - before, 1_000 * 512);
    let rebuilds =
        driven.log().iter().filter(|line| line.contains("Scheduling rebuild: algo requested")).count();
    assert!((3..10).contains(&rebuilds), "the room doubles: {rebuilds}");
}

#[test]
fn changes_during_a_compile_are_patched_into_its_result() {
    let module = Scripted::new("scripted", 9, Outcome::Applied);
    let mut driven = Driven::new(&[module], elsewhere());
    driven.add(0, 3);
    assert_eq!(driven.table.next_deadline(), Some(ms(0)));
    let job = driven.job(0).unwrap();
    assert!(driven.job(0).is_none(), "one job at a time");
    driven.add(1, 4);
    assert_eq!((driven.published(), driven.table.next_deadline()), (0, None));
    driven.offer(9, std::thread::spawn(|| job.run()).join().unwrap());
    assert_eq!((driven.published(), driven.table.generation()), (7, driven.rib.generation()));
    assert_eq!(module.state().patched, [4]);
}

#[test]
fn a_stale_table_is_published_if_it_is_newer_and_compiled_again() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let mut driven = Driven::started(&[module], elsewhere());
    driven.add(1_000, 1);
    let job = driven.job(1_000).unwrap();
    driven.add(1_001, 1);
    driven.offer(1_200, job.run());
    assert_eq!((driven.published(), driven.table.is_synced()), (2, false));
    assert_eq!(driven.table.generation() + 1, driven.rib.generation());
    assert_eq!(driven.table.next_deadline(), Some(ms(1_250)), "one bucket after");
    let job = driven.job(1_250).unwrap();
    driven.offer(1_300, job.run());
    assert_eq!((driven.published(), driven.table.is_synced()), (3, true));
}

/// A module that asks for a batch takes the next call as one.
#[test]
fn a_compiled_table_gets_the_changes_as_a_batch_if_it_asks_for_one() {
    let serving = Scripted::new("serving", 99, Outcome::Applied);
    let asked = Scripted::new("asked", 50, Outcome::Applied);
    let mut driven = Driven::started(&[serving, asked], elsewhere());
    driven.table.force(ms(10), &driven.rib, "asked").unwrap();
    let job = driven.job(10).unwrap();
    driven.add(20, 1);
    asked.set(|state| state.asks_for_batch = true);
    driven.offer(30, job.run());
    assert_eq!((driven.table.algorithm(), driven.published()), (Some("asked"), 2));
    assert_eq!(asked.state().patched, [1, 1]);
}

#[test]
fn a_stale_table_older_than_the_fib_is_dropped() {
    let serving = Scripted::new("serving", 99, Outcome::Applied);
    let asked = Scripted::new("asked", 50, Outcome::Rebuild);
    let mut driven = Driven::started(&[serving, asked], elsewhere());
    driven.table.force(ms(10), &driven.rib, "asked").unwrap();
    let job = driven.job(10).unwrap();
    driven.add(20, 1);
    driven.offer(30, job.run());
    assert_eq!((driven.table.algorithm(), driven.published()), (Some("serving"), 2));
    assert!(driven.log().last().unwrap().ends_with("asked is stale, dropped"), "{:?}", driven.log());
}

#[test]
fn a_route_that_cannot_wait_overtakes_a_job() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let mut driven = Driven::started(&[module], elsewhere());
    driven.add(1_000, 1);
    let job = driven.job(1_000).unwrap();
    driven.add_one(1_001, Origin::Interface);
    assert_eq!((driven.published(), driven.table.is_synced()), (3, true));
    driven.offer(1_100, job.run());
    assert_eq!(driven.published(), 3, "the result of the job is dropped");
}
