//! How the FIB follows the RIB: the four outcomes, the delay, and the changes that do not wait.

use super::*;

#[test]
fn a_patched_fib_is_never_behind() {
    let module = Scripted::new("scripted", 9, Outcome::Applied);
    let mut driven = Driven::new(&[module], Settings::default());
    for now in 0..200 {
        driven.add(now, 3);
        assert_eq!(driven.published(), driven.routes);
        assert_eq!(driven.table.generation(), driven.rib.generation());
    }
    let state = module.state();
    assert_eq!((state.compiled, state.patched.len()), (1, 599), "the first change attached it");
}

#[test]
fn a_fib_that_cannot_be_patched_is_compiled_at_once_in_a_quiet_table() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let mut driven = Driven::new(&[module], Settings::default());
    for second in 0..5 {
        driven.add(second * 1_000, 1);
        assert_eq!((driven.published(), driven.table.is_synced()), (driven.routes, true));
    }
    assert_eq!(module.state().compiled, 5);
}

/// A storm of one change a millisecond, over ten seconds.
#[test]
fn in_a_storm_the_fib_is_never_further_behind_than_the_longest_delay() {
    let module = Scripted::new("scripted", 9, Outcome::Rebuild);
    let mut driven = Driven::new(&[module], Settings::default());
    let mut behind_since = None;
    for now in 0..10_000 {
        driven.tick(now);
        behind_since = behind_since.filter(|_| !driven.table.is_synced());
        driven.add(now, 1);
        let synced = driven.table.is_synced();
        assert_eq!(synced, driven.table.generation() == driven.rib.generation());
        assert_eq!(synced, driven.published() == driven.routes);
        behind_since = if synced { None } else { behind_since.or(Some(now)) };
        assert!(behind_since.is_none_or(|since| now - since < 1_000), "at {now} ms");
        assert!(driven.table.next_deadline().is_none_or(|deadline| deadline > ms(now)));
    }
    assert!((10..14).contains(&module.state().compiled), "{} compiles", module.state().compiled);
    driven.tick(11_000);
    assert!(driven.table.is_synced());
}

#[test]
fn changes_are_collected_for_a_module_that_asks_for_a_batch() {
    let module = Scripted::new("scripted", 9, Outcome::Batch);
    let mut driven = Driven::new(&[module], Settings::default());
    driven.add(0, 1);
    // In a quiet table the batch is passed at once; one change is too few for this module, so the table is compiled.
    driven.add(1_000, 1);
    assert_eq!((module.state().compiled, module.state().patched.clone()), (2, vec![1, 1]));
    for now in 1_001..1_040 {
        driven.add(now, 1);
    }
    assert_eq!(driven.published(), 2);
    assert_eq!(driven.table.next_deadline(), Some(ms(1_101)), "25 changes in the first 50 ms");
    driven.tick(1_100);
    assert_eq!(driven.published(), 2);
    driven.tick(1_101);
    assert_eq!(driven.published(), 41);
    assert_eq!((module.state().compiled, module.state().patched.clone()), (2, vec![1, 1, 1, 39]));
}

#[test]
fn a_module_with_an_error_is_banned_and_the_next_best_takes_over() {
    let best = Scripted::new("best", 99, Outcome::Applied);
    let next = Scripted::new("next", 50, Outcome::Applied);
    let mut driven = Driven::new(&[next, best], Settings::default());
    driven.table.force(ms(0), &driven.rib, "best").unwrap();
    driven.add(0, 2);
    best.set(|state| state.outcome = Outcome::Error("out of luck".into()));
    driven.add(2_000, 1);
    assert_eq!((driven.table.algorithm(), driven.table.pinned()), (Some("next"), None));
    assert_eq!(driven.published(), 3);
    driven.add(3_000, 200);
    driven.tick(90_000);
    assert_eq!(driven.table.algorithm(), Some("next"), "a ban has no end");
    assert_eq!(
        driven.log()[..3],
        [
            "[2.000000] [fib_algo] inet.0 (best#1) handle_rtable_change_cb: algo reported non-recoverable error: \
             out of luck",
            "[2.000000] [fib_algo] inet.0 (best#1) schedule_fd_rebuild: Scheduling rebuild: algo reported \
             non-recoverable error",
            "[2.000000] [fib_algo] inet.0 (best#1) rebuild_fd_flm: switching algo to next",
        ]
    );
    best.set(|state| state.outcome = Outcome::Applied);
    driven.table.force(ms(91_000), &driven.rib, "best").unwrap();
    assert_eq!(driven.table.algorithm(), Some("best"), "a forced module is used in spite of its ban");
}

#[test]
fn without_any_module_left_the_last_fib_serves_on_and_deadlines_advance() {
    let only = Scripted::new("only", 9, Outcome::Applied);
    let mut driven = Driven::new(&[only], Settings::default());
    driven.add(0, 2);
    only.set(|state| state.outcome = Outcome::Error("broken".into()));
    driven.add(2_000, 3);
    assert_eq!((driven.published(), driven.table.is_synced()), (2, false));
    assert!(driven.log().last().unwrap().contains("no algo selected"));
    while let Some(deadline) = driven.table.next_deadline() {
        assert!(deadline > ms(2_000));
        driven.table.tick(deadline, &driven.rib);
    }
}

#[test]
fn interface_and_static_routes_do_not_wait() {
    for (outcome, compile) in [
        (Outcome::Rebuild, Compile::Here),
        (Outcome::Rebuild, Compile::Elsewhere),
        (Outcome::Batch, Compile::Here),
        (Outcome::Batch, Compile::Elsewhere),
    ] {
        let module = Scripted::new("scripted", 9, outcome);
        let mut driven = Driven::new(&[module], Settings { compile, ..Settings::default() });
        driven.add_one(0, Origin::Interface);
        assert_eq!(driven.published(), 1, "even the first");
        for (now, origin) in [(10, Origin::Interface), (20, Origin::Static)] {
            driven.add(now, 30);
            assert_ne!(driven.published(), driven.routes);
            driven.add_one(now, origin);
            assert_eq!((driven.published(), driven.table.is_synced()), (driven.routes, true));
        }
    }
}

#[test]
fn a_shared_reader_follows_and_keeps_no_fib() {
    let mut driven = Driven::new(&[Scripted::new("rebuilt", 9, Outcome::Rebuild)], Settings::default());
    let reader = driven.table.shared_reader();
    let answer = |route: u32| reader.with(|fib| fib.lookup(route << 8));
    assert_eq!(answer(1), NextHop::NONE, "nothing is attached yet");
    driven.add_one(0, Origin::Static);
    let first = Arc::downgrade(&driven.table.fib());
    assert_eq!(answer(1), NextHop(2));
    driven.add_one(1, Origin::Static);
    assert_eq!(answer(2), NextHop(3));
    assert!(first.upgrade().is_none(), "the first FIB is freed although its reader exists");
}

#[test]
fn a_retired_table_leaves_its_readers_their_fib() {
    let routes = |retires: bool| {
        let mut driven = Driven::new(&[Scripted::new("any", 9, Outcome::Applied)], Settings::default());
        driven.add_one(0, Origin::Static);
        let (mut reader, shared) = (driven.table.reader(), driven.table.shared_reader());
        if retires {
            driven.table.retire()
        } else {
            drop(driven)
        }
        [reader.fib().lookup(1 << 8), shared.with(|fib| fib.lookup(1 << 8))]
    };
    assert_eq!(routes(true), [NextHop(2); 2]);
    assert_eq!(routes(false), [NextHop::NONE; 2]);
}

#[test]
fn the_failure_of_a_module_is_kept_while_another_serves() {
    let (best, next) =
        (Scripted::new("best", 200, Outcome::Rebuild), Scripted::new("next", 50, Outcome::Applied));
    let mut driven = Driven::new(&[best, next], Settings::default());
    best.set(|state| state.failing = 1);
    driven.add_one(0, Origin::Static);
    assert_eq!((driven.table.algorithm(), driven.table.failure()), (Some("next"), None));
    let failure = driven.table.failure_of("best");
    assert!(matches!(failure, Some(CompileError::Limit { algorithm: "best", .. })), "{failure:?}");
    driven.tick(100);
    assert_eq!((driven.table.algorithm(), driven.table.failure_of("best")), (Some("best"), None));
}
