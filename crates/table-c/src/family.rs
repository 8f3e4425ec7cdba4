//! One family of a table: its routes, the algorithm that serves them, and the FIB of its readers.
//!
//! The framework ([`fullview_table::fib::framework`]) chooses algorithms, follows changes, falls back and publishes.
//! For C two rules are added: nothing is compiled before the program asks for it, and every call is complete when it
//! returns.

use std::sync::{Arc, OnceLock};

use fullview_table::fib::framework::{Attachment, Modules, Origin, Settings, SharedReader, Time};
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Change, NextHop, Rib};

use crate::error::Error;

/// The FIB of readers; empty before the first compile.
pub(crate) type Published<A> = OnceLock<SharedReader<A>>;

/// The writer's half of one family.
pub(crate) struct Routes<A: Registered> {
    rib: Rib<A>,
    modules: Modules<A>,
    /// `None` before the first compile.
    attachment: Option<Attachment<A>>,
    clock: Clock,
    published: Arc<Published<A>>,
}

/// The framework's time, counted by calls instead of read from a clock. The framework may delay work, and a caller with
/// a timer would come back for it; here there is only the next call, so each call advances the time. If time stood
/// still, a failed module would never be tried again, and the algorithm never be evaluated again.
#[derive(Default)]
struct Clock(Time);

impl Clock {
    /// Advances the time for a change: after a hundred changes a module that failed is tried again, later after twice
    /// as many each time.
    fn change(&mut self) -> Time {
        self.0 += Time::from_millis(1);
        self.0
    }

    /// Advances the time for an explicit request, by more than the framework holds a module back, so that all are
    /// tried.
    fn request(&mut self) -> Time {
        self.0 += Time::from_secs(60);
        self.0
    }
}

/// The algorithm is evaluated again at the hundredth change, not soon after it, because no later call may follow.
fn settings() -> Settings {
    Settings { evaluate_soon: Time::ZERO, ..Settings::default() }
}

impl<A: Registered> Default for Routes<A> {
    /// The modules include the oracle, because a program can ask for it by name; its preference is the lowest.
    fn default() -> Self {
        Self::served_by(A::ALGORITHMS.into())
    }
}

impl<A: Registered> Routes<A> {
    fn served_by(modules: Modules<A>) -> Self {
        let (rib, clock) = (Rib::default(), Clock::default());
        Routes { rib, modules, attachment: None, clock, published: Arc::default() }
    }

    pub(crate) fn rib(&self) -> &Rib<A> {
        &self.rib
    }

    pub(crate) fn published(&self) -> Arc<Published<A>> {
        Arc::clone(&self.published)
    }

    /// The algorithm that serves the routes, and the bytes that lookups may read; `None` before the first compile.
    pub(crate) fn serving(&self) -> Option<(&'static str, usize)> {
        let attachment = self.attachment.as_ref()?;
        Some((attachment.algorithm()?, attachment.fib().footprint().total()))
    }

    /// Makes the algorithm of that name serve the routes, or the best one if the name is `auto`.
    pub(crate) fn compile(&mut self, algorithm: &str) -> Result<(), Error> {
        let wanted = Some(algorithm).filter(|name| *name != "auto");
        let now = self.clock.request();
        if let Some(attachment) = &mut self.attachment {
            return choose(attachment, now, &self.rib, wanted);
        }
        let mut attachment = Attachment::new(now, 0, Arc::clone(&self.modules), Arc::new(settings()));
        choose(&mut attachment, now, &self.rib, wanted)?;
        self.published.get_or_init(|| attachment.shared_reader());
        self.attachment = Some(attachment);
        Ok(())
    }

    /// Applies the changes, and publishes them if the routes are compiled. On an error the changes are applied, but no
    /// algorithm could compile them: readers see the table as before.
    pub(crate) fn change(&mut self, changes: &[Change<A>]) -> Result<(), Error> {
        let rib = &mut self.rib;
        let changes: Vec<Change<A>> =
            changes.iter().copied().filter(|change| rib.apply(*change) != change.next_hop).collect();
        let Some(attachment) = &mut self.attachment else { return Ok(()) };
        // Static routes do not wait: readers must see the changes when the call returns.
        attachment.changed(self.clock.change(), &self.rib, &changes, Origin::Static);
        served(attachment)
    }

    /// Takes over other routes and returns those before; keeps these if no algorithm can serve the others.
    pub(crate) fn replace(&mut self, routes: Rib<A>) -> Result<Rib<A>, Error> {
        let before = self.rib.replace(routes);
        let Err(error) = self.catch_up() else { return Ok(before) };
        self.rib.replace(before);
        // If this fails as well, readers still have the FIB that was compiled from these routes.
        self.catch_up().ok();
        Err(error)
    }

    /// Compiles routes whose changes were not reported to the framework.
    fn catch_up(&mut self) -> Result<(), Error> {
        let Some(attachment) = &mut self.attachment else { return Ok(()) };
        attachment.evaluate(self.clock.request(), &self.rib)?;
        served(attachment)
    }
}

/// Readers outlive the table and keep its FIB; see `fv_table_free`.
impl<A: Registered> Drop for Routes<A> {
    fn drop(&mut self) {
        if let Some(attachment) = self.attachment.take() {
            attachment.retire();
        }
    }
}

/// Pins the module that is wanted; `None` means the best one. If it cannot serve the table, nothing changes: the
/// framework keeps the present FIB, and the former module is pinned again.
fn choose<A: Registered>(
    attachment: &mut Attachment<A>,
    now: Time,
    rib: &Rib<A>,
    wanted: Option<&str>,
) -> Result<(), Error> {
    let before = attachment.pinned();
    pin(attachment, now, rib, wanted)?;
    let refused = wanted.filter(|wanted| attachment.algorithm() != Some(*wanted));
    let Some(refused) = refused else { return served(attachment) };
    let reason = attachment.failure_of(refused).cloned();
    pin(attachment, now, rib, before)?;
    Err(reason.map_or(Error::Unserved(A::FAMILY), Error::Compile))
}

fn pin<A: Registered>(
    attachment: &mut Attachment<A>,
    now: Time,
    rib: &Rib<A>,
    module: Option<&str>,
) -> Result<(), Error> {
    let Some(name) = module else {
        attachment.release(now, rib);
        return Ok(());
    };
    let known = || registry::names::<A>().join(", ");
    let unknown = |_| Error::Algorithm { name: name.into(), family: A::FAMILY, known: known() };
    attachment.force(now, rib, name).map_err(unknown)
}

/// Returns an error unless readers see the present routes.
fn served<A: Registered>(attachment: &Attachment<A>) -> Result<(), Error> {
    if attachment.is_synced() {
        return Ok(());
    }
    let failure = attachment.failure().cloned();
    Err(failure.map_or(Error::Unserved(A::FAMILY), Error::Compile))
}

/// Looks up as many addresses as there are answers in the present FIB.
pub(crate) fn look_up<A: Registered>(
    published: &Published<A>,
    addrs: &[A],
    answers: &mut [NextHop],
) -> Result<(), Error> {
    let reader = published.get().ok_or(Error::NotCompiled(A::FAMILY))?;
    reader.with(|fib| fib.lookup_batch(addrs, answers));
    Ok(())
}

#[cfg(test)]
mod tests;
