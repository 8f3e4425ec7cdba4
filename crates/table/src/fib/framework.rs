//! Which algorithm serves a table, and the switch from one to another: the part of D27401 that is no algorithm.
//!
//! The log is in FreeBSD's words (`sys/net/route/fib_algo.c`), so that those who read its reports recognise it.

use std::sync::Arc;

use crate::addr::Address;
use crate::rib::Rib;

use super::choice::choose;
use super::{Algorithm, CompileError, Fib, Instance};

/// An algorithm, as modules are handed around.
type Module<A> = &'static dyn Algorithm<A>;

/// One routing table of one family, and the algorithm that serves it.
pub struct Attachment<A: Address> {
    fib_number: u32,
    modules: Vec<Module<A>>,
    current: Option<Attached<A>>,
    /// Tables compiled so far; the number of the next one, less one.
    instances: u64,
    log: Vec<String>,
}

/// An algorithm at work.
struct Attached<A: Address> {
    module: Module<A>,
    instance: Box<dyn Instance<A>>,
    number: u64,
    /// Of the RIB that the instance was compiled from.
    generation: u64,
}

impl<A: Address> Attachment<A> {
    /// Nothing attached yet; `modules` may be, the first of equals preferred.
    pub fn new(fib_number: u32, modules: &[Module<A>]) -> Self {
        let log = modules.iter().map(|module| {
            format!("[fib_algo] fib_module_register: attaching {} to {}", module.name(), A::FAMILY)
        });
        let log = log.collect();
        Attachment { fib_number, modules: modules.to_vec(), current: None, instances: 0, log }
    }

    /// Attaches the best algorithm for the table as it is, or changes to one that is better by more than the
    /// hysteresis; the one attached is compiled anew if the table has changed since. A module that fails to compile
    /// the table is passed over for the next best; what was attached serves on until another has succeeded. An error
    /// is the last module's.
    pub fn evaluate(&mut self, rib: &Rib<A>) -> Result<(), CompileError> {
        let summary = rib.summary();
        let attached = self.current.as_ref().map(|current| current.module);
        let mut candidates = self.modules.clone();
        let mut failure = Ok(());
        while let Some(best) = choose(&candidates, attached, &summary) {
            if self.serves(best, rib) {
                return Ok(());
            }
            match best.compile(rib) {
                Ok(instance) => {
                    self.switch(best, instance, rib.generation());
                    return Ok(());
                }
                Err(error) => {
                    self.note("setup_fd_instance", &format!("{} failed: {error}", best.name()));
                    candidates.retain(|module| module.name() != best.name());
                    failure = Err(error);
                }
            }
        }
        failure
    }

    /// What readers look up in; `None` before the first [`Self::evaluate`].
    pub fn fib(&self) -> Option<Arc<dyn Fib<A>>> {
        self.current.as_ref().map(|current| current.instance.fib())
    }

    /// The name of the algorithm attached.
    pub fn algorithm(&self) -> Option<&'static str> {
        self.current.as_ref().map(|current| current.module.name())
    }

    /// What happened, oldest first, a line each.
    pub fn log(&self) -> &[String] {
        &self.log
    }

    /// Whether this module is attached and knows the table as it is.
    fn serves(&self, module: Module<A>, rib: &Rib<A>) -> bool {
        let current = self.current.as_ref();
        current.is_some_and(|current| {
            current.module.name() == module.name() && current.generation == rib.generation()
        })
    }

    fn switch(&mut self, module: Module<A>, instance: Box<dyn Instance<A>>, generation: u64) {
        if self.algorithm().is_some_and(|name| name != module.name()) {
            self.note("rebuild_fd_flm", &format!("switching algo to {}", module.name()));
        }
        self.instances += 1;
        self.current = Some(Attached { module, instance, number: self.instances, generation });
    }

    /// Logs in the name of what is attached.
    fn note(&mut self, function: &str, what: &str) {
        let table = format!("{}.{}", A::FAMILY, self.fib_number);
        let who =
            self.current.as_ref().map(|current| format!(" ({}#{})", current.module.name(), current.number));
        self.log.push(format!("[fib_algo] {table}{} {function}: {what}", who.unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::registry::{self, Registered};
    use crate::nexthop::NextHop;
    use crate::prefix::Prefix;
    use crate::rib::Summary;

    /// Prefers itself to all others and cannot compile anything.
    struct Broken;

    impl Algorithm<u32> for Broken {
        fn name(&self) -> &'static str {
            "broken"
        }
        fn preference(&self, _summary: &Summary) -> u8 {
            255
        }
        fn compile(&self, _rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
            Err(CompileError::Limit { algorithm: "broken", what: "routes", needed: 1, limit: 0 })
        }
    }

    fn rib(routes: u32) -> Rib<u32> {
        let mut rib = Rib::default();
        for n in 0..routes {
            rib.announce(Prefix::containing(n << 8, 24), NextHop(n as u16 % 9 + 1));
        }
        rib
    }

    fn modules(names: &[&str]) -> Vec<Module<u32>> {
        names.iter().map(|name| registry::find(name).unwrap()).collect()
    }

    #[test]
    fn a_growing_table_changes_algorithm_and_says_so() {
        let mut table = Attachment::new(0, &modules(&["bsearch4", "radix_lockless", "radix", "dpdk_lpm4"]));
        assert!(table.fib().is_none() && table.algorithm().is_none());
        for (routes, expected) in
            [(5, "bsearch4"), (9, "bsearch4"), (500, "radix_lockless"), (900, "dpdk_lpm4")]
        {
            let rib = rib(routes);
            table.evaluate(&rib).unwrap();
            assert_eq!(table.algorithm(), Some(expected));
            let last = NextHop((routes - 1) as u16 % 9 + 1);
            assert_eq!(table.fib().unwrap().lookup((routes - 1) << 8), last, "{routes} routes");
        }
        assert_eq!(
            table.log(),
            [
                "[fib_algo] fib_module_register: attaching bsearch4 to inet",
                "[fib_algo] fib_module_register: attaching radix_lockless to inet",
                "[fib_algo] fib_module_register: attaching radix to inet",
                "[fib_algo] fib_module_register: attaching dpdk_lpm4 to inet",
                // The second bsearch4 holds four more routes than the first.
                "[fib_algo] inet.0 (bsearch4#2) rebuild_fd_flm: switching algo to radix_lockless",
                "[fib_algo] inet.0 (radix_lockless#3) rebuild_fd_flm: switching algo to dpdk_lpm4",
            ]
        );
    }

    #[test]
    fn a_failed_compile_leaves_what_serves_or_tries_the_next_best() {
        let mut names = modules(&["radix"]);
        names.push(&Broken);
        let mut table = Attachment::new(3, &names);
        table.evaluate(&rib(10)).unwrap();
        assert_eq!(table.algorithm(), Some("radix"), "the next best");
        table.evaluate(&rib(20)).unwrap();
        assert_eq!(table.fib().unwrap().lookup(0x0000_0407), NextHop(5));
        let failed: Vec<_> = table.log().iter().filter(|line| line.contains("failed")).collect();
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(failed[0].starts_with("[fib_algo] inet.3 setup_fd_instance: broken failed:"), "{failed:?}");
        assert!(failed[1].starts_with("[fib_algo] inet.3 (radix#1) setup_fd_instance: broken failed:"));
    }

    #[test]
    fn with_nothing_that_compiles_the_error_is_told() {
        let mut table = Attachment::<u32>::new(0, &[&Broken]);
        assert!(
            table.evaluate(&rib(1)).unwrap_err().to_string().starts_with("broken cannot hold this table")
        );
        assert!(table.fib().is_none());
    }

    #[test]
    fn the_whole_registry_may_be_attached() {
        let mut table = Attachment::new(0, u128::ALGORITHMS);
        table.evaluate(&Rib::default()).unwrap();
        assert_eq!(table.algorithm(), Some("bsearch6"));
    }
}
