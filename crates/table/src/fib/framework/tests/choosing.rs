//! Which module serves: preference, hysteresis, time of evaluation, pinned modules, modules added and removed.

use super::*;
use crate::fib::preference::{Curve, Measured, Preferences};
use crate::fib::registry::{self, Registered};

fn registered(names: &[&str]) -> Vec<Module<u32>> {
    names.iter().map(|name| registry::find(name).unwrap()).collect()
}

#[test]
fn a_growing_table_changes_algorithm_and_logs_when() {
    let modules = registered(&["bsearch4", "radix_lockless", "radix", "dpdk_lpm4"]);
    let mut driven = Driven::new(&modules, Settings::default());
    assert!(driven.table.algorithm().is_none() && driven.table.fib().lookup(1 << 8) == NextHop::NONE);
    for (second, routes, expected) in
        [(0, 5, "bsearch4"), (100, 4, "bsearch4"), (200, 491, "radix_lockless"), (300, 400, "dpdk_lpm4")]
    {
        driven.add(second * 1_000, routes);
        for after in [1_100, 30_000] {
            driven.tick(second * 1_000 + after);
        }
        assert_eq!(driven.table.algorithm(), Some(expected), "{routes} routes");
        assert_eq!(driven.published(), driven.routes);
    }
    // The tenth route makes the table compile, which chooses a module; the other routes are a storm.
    let switches: Vec<String> = driven.log().into_iter().filter(|line| line.contains("switching")).collect();
    let name = |line: &String| line.split(['(', '#', ')']).nth(1).unwrap().to_owned();
    assert_eq!(switches.iter().map(name).collect::<Vec<_>>(), ["bsearch4", "radix_lockless"], "{switches:?}");
    assert!(switches[0].starts_with("[200.000000] [fib_algo] inet.0 (bsearch4#"), "{switches:?}");
    assert!(switches[0].ends_with(") rebuild_fd_flm: switching algo to radix_lockless"), "{switches:?}");
    assert!(switches[1].ends_with(") rebuild_fd_flm: switching algo to dpdk_lpm4"), "{switches:?}");
}

#[test]
fn the_choice_is_evaluated_after_many_changes_or_a_long_time() {
    let (one, other) =
        (Scripted::new("one", 50, Outcome::Applied), Scripted::new("other", 40, Outcome::Applied));
    let mut driven = Driven::new(&[one, other], Settings::default());
    driven.add(0, 1);
    other.set(|state| state.preference = 62);
    driven.add(1_000, 99);
    assert_eq!(driven.table.next_deadline(), Some(ms(31_000)));
    driven.add(2_000, 1);
    assert_eq!(driven.table.next_deadline(), Some(ms(2_001)));
    driven.tick(2_001);
    assert_eq!(driven.table.algorithm(), Some("one"), "better by the hysteresis is not enough");
    other.set(|state| state.preference = 63);
    driven.add(3_000, 1);
    driven.tick(32_999);
    assert_eq!(driven.table.algorithm(), Some("one"));
    driven.tick(33_000);
    assert_eq!(driven.table.algorithm(), Some("other"));
    assert_eq!(driven.table.next_deadline(), None);
}

#[test]
fn a_forced_module_serves_until_it_is_released() {
    let (one, other) =
        (Scripted::new("one", 200, Outcome::Applied), Scripted::new("other", 1, Outcome::Applied));
    let mut driven = Driven::new(&[one, other], Settings::default());
    driven.add(0, 1);
    assert_eq!(driven.table.force(ms(1), &driven.rib, "neither"), Err(ModuleError::Unknown));
    driven.table.force(ms(1), &driven.rib, "other").unwrap();
    driven.add(10, 500);
    driven.tick(60_000);
    assert_eq!((driven.table.algorithm(), driven.published()), (Some("other"), 501));
    driven.table.release(ms(60_001), &driven.rib);
    assert_eq!((driven.table.algorithm(), driven.table.pinned()), (Some("one"), None));
}

#[test]
fn measured_preferences_choose_as_well() {
    let mut measured = Measured::default();
    for (name, points) in [("one", vec![(1, 200), (100, 10)]), ("other", vec![(1, 10), (100, 200)])] {
        measured.insert(crate::Family::Inet, name, Curve::new(points).unwrap());
    }
    let preferences = Preferences::Measured(Arc::new(measured));
    let (one, other) =
        (Scripted::new("one", 1, Outcome::Applied), Scripted::new("other", 255, Outcome::Applied));
    let mut driven = Driven::new(&[one, other], Settings { preferences, ..Settings::default() });
    driven.add(0, 1);
    assert_eq!(driven.table.algorithm(), Some("one"));
    driven.add(0, 100);
    driven.tick(1);
    assert_eq!(driven.table.algorithm(), Some("other"));
}

#[test]
fn modules_are_added_and_removed_while_the_table_is_served() {
    let (old, new) = (Scripted::new("old", 50, Outcome::Applied), Scripted::new("new", 99, Outcome::Applied));
    let mut driven = Driven::new(&[old], Settings::default());
    driven.add(0, 5);
    let rib = Arc::clone(&driven.rib);
    assert_eq!(driven.table.detach(ms(1), &rib, "old"), Err(ModuleError::Last));
    assert_eq!(driven.table.detach(ms(1), &rib, "new"), Err(ModuleError::Unknown));
    driven.table.attach(ms(1), &rib, new).unwrap();
    assert_eq!(driven.table.attach(ms(1), &rib, new), Err(ModuleError::Known));
    assert_eq!((driven.table.algorithm(), driven.published()), (Some("new"), 5));
    driven.table.force(ms(2), &rib, "new").unwrap();
    driven.table.detach(ms(2), &rib, "new").unwrap();
    assert_eq!((driven.table.algorithm(), driven.table.pinned()), (Some("old"), None));
    assert_eq!(
        driven.log(),
        [
            "[0.001000] [fib_algo] fib_module_register: attaching new to inet",
            "[0.001000] [fib_algo] inet.0 (old#1) rebuild_fd_flm: switching algo to new",
            "[0.002000] [fib_algo] fib_module_unregister: detaching new from inet",
            "[0.002000] [fib_algo] inet.0 (new#2) rebuild_fd_flm: switching algo to old",
        ]
    );
}

#[test]
fn the_whole_registry_can_be_attached() {
    let mut table = Attachment::new(ms(0), 0, u128::ALGORITHMS.into(), Arc::default());
    table.evaluate(ms(0), &Rib::default()).unwrap();
    assert_eq!(table.algorithm(), Some("bsearch6"));
    let first = table.log().iter().next().map(ToString::to_string);
    assert_eq!(
        first.as_deref(),
        Some("[0.000000] [fib_algo] fib_module_register: attaching linear to inet6")
    );
}

#[test]
fn a_table_with_unreported_changes_is_compiled_again_on_evaluation() {
    let module = Scripted::new("scripted", 9, Outcome::Applied);
    let mut driven = Driven::new(&[module], Settings::default());
    driven.add(0, 1);
    Arc::make_mut(&mut driven.rib).announce(Prefix::containing(2 << 8, 24), NextHop(1));
    driven.routes = 2;
    driven.table.evaluate(ms(1), &driven.rib).unwrap();
    assert_eq!((driven.published(), module.state().compiled), (2, 2));
    driven.table.evaluate(ms(2), &driven.rib).unwrap();
    assert_eq!(module.state().compiled, 2, "nothing has changed since");
}
