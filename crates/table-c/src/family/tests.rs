//! Calls that an algorithm cannot serve.

use std::sync::atomic::{AtomicBool, Ordering};

use fullview_table::fib::framework::Module;
use fullview_table::fib::{Algorithm, CompileError, Fib, Instance, Outcome};
use fullview_table::rib::Summary;

use super::*;

/// `dpdk_lpm4` under another name, which can be made to fail.
struct Failing {
    name: &'static str,
    preference: u8,
    fails: AtomicBool,
}

struct Inner {
    instance: Box<dyn Instance<u32>>,
    fails: &'static AtomicBool,
}

impl Failing {
    /// Modules live as long as the program.
    fn new(name: &'static str, preference: u8) -> &'static Self {
        Box::leak(Box::new(Failing { name, preference, fails: AtomicBool::new(false) }))
    }

    fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::Relaxed);
    }
}

impl Algorithm<u32> for &'static Failing {
    fn name(&self) -> &'static str {
        self.name
    }
    fn preference(&self, _summary: &Summary) -> u8 {
        self.preference
    }
    fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
        if self.fails.load(Ordering::Relaxed) {
            return Err(CompileError::Limit { algorithm: self.name, what: "routes", needed: 1, limit: 0 });
        }
        let instance = registry::find("dpdk_lpm4").unwrap().compile(rib)?;
        Ok(Box::new(Inner { instance, fails: &self.fails }))
    }
}

impl Instance<u32> for Inner {
    fn fib(&self) -> Arc<dyn Fib<u32>> {
        self.instance.fib()
    }
    fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
        match self.fails.load(Ordering::Relaxed) {
            true => Outcome::Rebuild,
            false => self.instance.patch(rib, changes),
        }
    }
}

fn routes_of(modules: &[&'static Failing]) -> Routes<u32> {
    let leaked = modules.iter().map(|module| -> Module<u32> { Box::leak(Box::new(*module)) });
    Routes::served_by(leaked.collect())
}

fn announce(prefix: &str, hop: u16) -> [Change<u32>; 1] {
    [Change { prefix: prefix.parse().unwrap(), next_hop: Some(NextHop(hop)) }]
}

/// The answers for 10.0.0.1 and 11.0.0.1.
fn answers(published: &Published<u32>) -> [u16; 2] {
    let mut answers = [NextHop::NONE; 2];
    look_up(published, &[0x0a00_0001, 0x0b00_0001], &mut answers).unwrap();
    answers.map(|hop| hop.0)
}

fn serving(routes: &Routes<u32>) -> &'static str {
    routes.serving().unwrap().0
}

#[test]
fn a_change_that_could_not_be_compiled_is_seen_once_it_can() {
    let only = Failing::new("only", 1);
    let mut routes = routes_of(&[only]);
    routes.compile("only").unwrap();
    only.fail(true);
    assert!(matches!(routes.change(&announce("10.0.0.0/8", 1)), Err(Error::Compile(_))));
    assert_eq!(answers(&routes.published), [0, 0], "readers see the table as before");
    only.fail(false);
    routes.compile("auto").unwrap();
    assert_eq!(answers(&routes.published), [1, 0]);
    only.fail(true);
    assert!(routes.change(&announce("11.0.0.0/8", 2)).is_err());
    only.fail(false);
    let mut flaps = (1..).map(|time| routes.change(&announce("12.0.0.0/8", 1 + time % 2)).is_ok());
    assert_eq!(flaps.position(|served| served), Some(99), "tried again after a hundred changes");
    assert_eq!(answers(&routes.published), [1, 2]);
}

#[test]
fn a_failing_module_is_replaced_until_it_can_serve_again() {
    let (asked, other) = (Failing::new("asked", 1), Failing::new("other", 200));
    let mut routes = routes_of(&[asked, other]);
    routes.compile("asked").unwrap();
    asked.fail(true);
    routes.change(&announce("10.0.0.0/8", 1)).unwrap();
    assert_eq!((serving(&routes), answers(&routes.published)), ("other", [1, 0]));
    asked.fail(false);
    routes.compile("asked").unwrap();
    routes.change(&announce("11.0.0.0/8", 2)).unwrap();
    assert_eq!((serving(&routes), answers(&routes.published)), ("asked", [1, 2]));
}

#[test]
fn a_module_that_cannot_serve_is_refused_and_changes_nothing() {
    let (failing, other) = (Failing::new("failing", 200), Failing::new("other", 1));
    let mut routes = routes_of(&[failing, other]);
    failing.fail(true);
    let error = routes.compile("failing").unwrap_err();
    assert!(matches!(&error, Error::Compile(CompileError::Limit { algorithm: "failing", .. })), "{error}");
    assert!(routes.serving().is_none() && routes.published.get().is_none());
    routes.compile("other").unwrap();
    let error = routes.compile("failing").unwrap_err();
    assert!(matches!(&error, Error::Compile(CompileError::Limit { algorithm: "failing", .. })), "{error}");
    failing.fail(false);
    (0..200).for_each(|time| routes.change(&announce("10.0.0.0/8", 1 + time % 2)).unwrap());
    assert_eq!(serving(&routes), "other", "it was pinned before");
    routes.compile("auto").unwrap();
    assert_eq!(serving(&routes), "failing");
}

#[test]
fn routes_that_no_algorithm_can_serve_are_not_taken_over() {
    let only = Failing::new("only", 1);
    let mut routes = routes_of(&[only]);
    routes.change(&announce("10.0.0.0/8", 1)).unwrap();
    routes.compile("auto").unwrap();
    // It has had as many changes as the table, but must not be mistaken for it.
    let mut others = Rib::default();
    others.apply(announce("11.0.0.0/8", 2)[0]);
    only.fail(true);
    assert!(routes.replace(others.clone()).is_err());
    assert_eq!((routes.rib().len(), answers(&routes.published)), (1, [1, 0]));
    only.fail(false);
    routes.change(&announce("12.0.0.0/8", 3)).unwrap_err();
    routes.replace(others).unwrap();
    assert_eq!((routes.rib().len(), answers(&routes.published)), (1, [0, 2]));
}

#[test]
fn the_best_is_chosen_again_with_the_hundredth_change() {
    let mut routes = Routes::<u32>::default();
    routes.compile("auto").unwrap();
    let small = serving(&routes);
    let many: Vec<_> = (0..5_000u32)
        .map(|n| Change {
            prefix: fullview_table::Prefix::containing(n << 12, 20),
            next_hop: Some(NextHop(1)),
        })
        .collect();
    routes.change(&many).unwrap();
    assert_ne!(serving(&routes), small);
}
