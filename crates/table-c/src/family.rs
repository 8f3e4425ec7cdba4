//! One family of a table: its routes, the algorithm it is to be compiled with, and the FIB its readers see.

use std::sync::Arc;

use arc_swap::ArcSwap;
use fullview_table::fib::preference::Preferences;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Algorithm, Fib, Instance, Outcome, choice};
use fullview_table::{Change, NextHop, Rib};

use crate::error::Error;

type Module<A> = &'static dyn Algorithm<A>;

/// What readers take at the beginning of a batch; `None` before the first compile.
pub(crate) type Published<A> = ArcSwap<Option<Arc<dyn Fib<A>>>>;

/// The writer's side of one family.
pub(crate) struct Routes<A: Registered> {
    rib: Rib<A>,
    wanted: Wanted<A>,
    compiled: Option<Compiled<A>>,
    /// Whether the routes have changes that what is compiled has not: the last one could not be followed.
    behind: bool,
    published: Arc<Published<A>>,
}

/// By which algorithm to compile.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<A: Registered> {
    /// The best by preference.
    Auto,
    This(Module<A>),
}

/// An algorithm, and what it has made of the routes.
pub(crate) struct Compiled<A: Registered> {
    algorithm: Module<A>,
    instance: Box<dyn Instance<A>>,
}

impl<A: Registered> Default for Routes<A> {
    fn default() -> Self {
        let published = Arc::new(ArcSwap::from_pointee(None));
        Routes { rib: Rib::default(), wanted: Wanted::Auto, compiled: None, behind: false, published }
    }
}

impl<A: Registered> Wanted<A> {
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        if name == "auto" {
            return Ok(Wanted::Auto);
        }
        let unknown = || Error::Algorithm {
            name: name.into(),
            family: A::FAMILY,
            known: registry::names::<A>().join(", "),
        };
        registry::find(name).map(Wanted::This).ok_or_else(unknown)
    }

    fn compile(self, rib: &Rib<A>, current: Option<Module<A>>) -> Result<Compiled<A>, Error> {
        match self {
            Wanted::This(algorithm) => Compiled::of(algorithm, rib),
            Wanted::Auto => best(A::ALGORITHMS, rib, current),
        }
    }
}

/// Compiled with the best of `modules` by preference that can hold the table. The oracle takes part only in tests.
fn best<A: Registered>(
    modules: &[Module<A>],
    rib: &Rib<A>,
    current: Option<Module<A>>,
) -> Result<Compiled<A>, Error> {
    let summary = rib.summary();
    let mut modules: Vec<Module<A>> =
        modules.iter().copied().filter(|module| module.name() != "linear").collect();
    let mut failure = Error::Bug("no algorithm is registered".into());
    let among =
        |modules: &[Module<A>], one: Module<A>| modules.iter().any(|module| module.name() == one.name());
    while let Some(best) =
        choice::choose(&Preferences::Guessed, &modules, current.filter(|one| among(&modules, *one)), &summary)
    {
        match Compiled::of(best, rib) {
            Ok(compiled) => return Ok(compiled),
            Err(error) => failure = error,
        }
        modules.retain(|module| module.name() != best.name());
    }
    Err(failure)
}

impl<A: Registered> Compiled<A> {
    fn of(algorithm: Module<A>, rib: &Rib<A>) -> Result<Self, Error> {
        Ok(Compiled { algorithm, instance: algorithm.compile(rib)? })
    }
}

impl<A: Registered> Routes<A> {
    pub(crate) fn rib(&self) -> &Rib<A> {
        &self.rib
    }

    pub(crate) fn published(&self) -> Arc<Published<A>> {
        Arc::clone(&self.published)
    }

    /// The algorithm at work and the bytes its lookups may touch; `None` before the first compile.
    pub(crate) fn at_work(&self) -> Option<(&'static str, usize)> {
        let compiled = self.compiled.as_ref()?;
        Some((compiled.algorithm.name(), compiled.instance.fib().footprint().total()))
    }

    /// Compiles the routes and shows them to the readers.
    pub(crate) fn compile(&mut self, wanted: Wanted<A>) -> Result<(), Error> {
        let compiled = wanted.compile(&self.rib, None)?;
        self.wanted = wanted;
        self.show(compiled);
        Ok(())
    }

    /// Makes the changes, and shows them to the readers if there are any readers' tables yet. An error is the
    /// algorithm's: the changes are made then, but the readers see the table as it was before them.
    pub(crate) fn change(&mut self, changes: &[Change<A>]) -> Result<(), Error> {
        for change in changes {
            self.rib.apply(*change);
        }
        let followed = self.follow(changes);
        self.behind = followed.is_err();
        followed
    }

    /// Brings what is compiled up to the routes, which hold the changes already.
    fn follow(&mut self, changes: &[Change<A>]) -> Result<(), Error> {
        let Some(compiled) = &mut self.compiled else { return Ok(()) };
        // These changes alone would not bring it up to date.
        let outcome =
            if self.behind { Outcome::Rebuild } else { compiled.instance.patch(&self.rib, changes) };
        match outcome {
            Outcome::Applied => self.publish(),
            Outcome::Rebuild | Outcome::Batch => self.rebuild()?,
            Outcome::Error(reason) => {
                let algorithm = compiled.algorithm.name();
                self.give_up(algorithm, reason)?;
            }
        }
        Ok(())
    }

    /// What the routes in `rib` would be compiled to; nothing if nothing has been compiled yet.
    pub(crate) fn prepare(&self, rib: &Rib<A>) -> Result<Option<Compiled<A>>, Error> {
        let current = self.compiled.as_ref().map(|compiled| compiled.algorithm);
        current.map(|current| self.wanted.compile(rib, Some(current))).transpose()
    }

    /// Takes over other routes, with what [`Self::prepare`] made of them.
    pub(crate) fn replace_all(&mut self, rib: Rib<A>, compiled: Option<Compiled<A>>) {
        self.rib = rib;
        if let Some(compiled) = compiled {
            self.show(compiled);
        }
    }

    fn rebuild(&mut self) -> Result<(), Error> {
        if let Some(compiled) = self.prepare(&self.rib)? {
            self.show(compiled);
        }
        Ok(())
    }

    /// The algorithm at work is of no further use for this table: another one takes over, unless this one was asked
    /// for.
    fn give_up(&mut self, algorithm: &'static str, reason: String) -> Result<(), Error> {
        if matches!(self.wanted, Wanted::This(_)) {
            return Err(Error::GaveUp { algorithm, reason });
        }
        let all = A::ALGORITHMS.iter().copied();
        let others: Vec<Module<A>> = all.filter(|module| module.name() != algorithm).collect();
        let compiled = best(&others, &self.rib, None)?;
        self.show(compiled);
        Ok(())
    }

    fn show(&mut self, compiled: Compiled<A>) {
        self.compiled = Some(compiled);
        self.behind = false;
        self.publish();
    }

    /// After a change the instance may hand out another FIB than before.
    fn publish(&self) {
        let fib = self.compiled.as_ref().map(|compiled| compiled.instance.fib());
        self.published.store(Arc::new(fib));
    }
}

/// Looks up as many addresses as there are answers in the table as it is now.
pub(crate) fn look_up<A: Registered>(
    published: &Published<A>,
    addrs: &[A],
    answers: &mut [NextHop],
) -> Result<(), Error> {
    let now = published.load();
    let fib = now.as_ref().as_ref().ok_or(Error::NotCompiled(A::FAMILY))?;
    fib.lookup_batch(addrs, answers);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullview_table::fib::CompileError;
    use fullview_table::rib::Summary;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// `dpdk_lpm4`, which can be told to fail.
    struct Failing(AtomicBool);

    static FAILING: Failing = Failing(AtomicBool::new(false));

    struct Inner(Box<dyn Instance<u32>>);

    impl Algorithm<u32> for Failing {
        fn name(&self) -> &'static str {
            "failing"
        }
        fn preference(&self, _summary: &Summary) -> u8 {
            0
        }
        fn compile(&self, rib: &Rib<u32>) -> Result<Box<dyn Instance<u32>>, CompileError> {
            if self.0.load(Ordering::Relaxed) {
                return Err(CompileError::Limit {
                    algorithm: "failing",
                    what: "routes",
                    needed: 1,
                    limit: 0,
                });
            }
            Ok(Box::new(Inner(registry::find("dpdk_lpm4").unwrap().compile(rib)?)))
        }
    }

    impl Instance<u32> for Inner {
        fn fib(&self) -> Arc<dyn Fib<u32>> {
            self.0.fib()
        }
        fn patch(&mut self, rib: &Rib<u32>, changes: &[Change<u32>]) -> Outcome {
            match FAILING.0.load(Ordering::Relaxed) {
                true => Outcome::Rebuild,
                false => self.0.patch(rib, changes),
            }
        }
    }

    #[test]
    fn a_change_that_could_not_be_followed_comes_with_the_next_one() {
        let mut routes = Routes::<u32>::default();
        routes.compile(Wanted::This(&FAILING)).unwrap();
        let announce =
            |prefix: &str, hop| Change { prefix: prefix.parse().unwrap(), next_hop: Some(NextHop(hop)) };
        let answers = |routes: &Routes<u32>| {
            let mut answers = [NextHop::NONE; 2];
            look_up(&routes.published, &[0x0a00_0001, 0x0b00_0001], &mut answers).unwrap();
            answers.map(|hop| hop.0)
        };
        FAILING.0.store(true, Ordering::Relaxed);
        assert!(matches!(routes.change(&[announce("10.0.0.0/8", 1)]), Err(Error::Compile(_))));
        assert_eq!(answers(&routes), [0, 0], "readers see the table as it was");
        FAILING.0.store(false, Ordering::Relaxed);
        routes.change(&[announce("11.0.0.0/8", 2)]).unwrap();
        assert_eq!(answers(&routes), [1, 2]);
    }
}
