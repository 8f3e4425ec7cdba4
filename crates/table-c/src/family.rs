//! One family of a table: its routes, the algorithm that serves them, and what its readers hold.
//!
//! Choosing, following, falling back and publishing are the framework's ([`fullview_table::fib::framework`]). Here is
//! what C adds: nothing is served before somebody asks, and every call is done when it returns.

use std::sync::{Arc, OnceLock};

use fullview_table::fib::framework::{Attachment, Modules, Origin, Settings, SharedReader, Time};
use fullview_table::fib::registry::{self, Registered};
use fullview_table::{Change, NextHop, Rib};

use crate::error::Error;

/// What readers look up in; empty before the first compile.
pub(crate) type Published<A> = OnceLock<SharedReader<A>>;

/// The writer's side of one family.
pub(crate) struct Routes<A: Registered> {
    rib: Rib<A>,
    modules: Modules<A>,
    /// `None` before the first compile.
    attachment: Option<Attachment<A>>,
    clock: Clock,
    published: Arc<Published<A>>,
}

/// The framework's time, counted by calls instead of read. The framework may put off what a caller with a timer comes
/// back for; there is no timer here, only the next call, so calls are what time passes by. A time that stands still
/// would not do: a module that failed once would never be tried again, nor the choice looked at again.
#[derive(Default)]
struct Clock(Time);

impl Clock {
    /// A change: after a hundred of them a module that failed is tried again, later after twice as many each time.
    fn change(&mut self) -> Time {
        self.0 += Time::from_millis(1);
        self.0
    }

    /// Something was asked for by hand: longer than the framework keeps a module back, so that all are tried.
    fn request(&mut self) -> Time {
        self.0 += Time::from_secs(60);
        self.0
    }
}

/// The choice is looked at again with the hundredth change, not soon after: no later call need come.
fn settings() -> Settings {
    Settings { evaluate_soon: Time::ZERO, ..Settings::default() }
}

impl<A: Registered> Default for Routes<A> {
    /// The oracle is among the modules since it can be asked for by name; by preference it comes last.
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

    /// The algorithm at work and the bytes its lookups may touch; `None` before the first compile.
    pub(crate) fn at_work(&self) -> Option<(&'static str, usize)> {
        let attachment = self.attachment.as_ref()?;
        Some((attachment.algorithm()?, attachment.fib().footprint().total()))
    }

    /// Has the algorithm of that name serve the routes, or the best one if `auto` is asked for.
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

    /// Makes the changes, and shows them to the readers if anything is compiled. On an error the changes are made, but
    /// no algorithm could follow: readers see the table as it was before them.
    pub(crate) fn change(&mut self, changes: &[Change<A>]) -> Result<(), Error> {
        let rib = &mut self.rib;
        let changes: Vec<Change<A>> =
            changes.iter().copied().filter(|change| rib.apply(*change) != change.next_hop).collect();
        let Some(attachment) = &mut self.attachment else { return Ok(()) };
        // Static routes do not wait: what was changed is to be seen when the call returns.
        attachment.changed(self.clock.change(), &self.rib, &changes, Origin::Static);
        served(attachment)
    }

    /// Takes over other routes; returns those it had, or keeps them if no algorithm can serve the others.
    pub(crate) fn replace(&mut self, routes: Rib<A>) -> Result<Rib<A>, Error> {
        let before = self.rib.replace(routes);
        let Err(error) = self.catch_up() else { return Ok(before) };
        self.rib.replace(before);
        // If this fails as well, readers still have what was compiled from these routes.
        self.catch_up().ok();
        Err(error)
    }

    /// Compiles routes that the framework was not told of.
    fn catch_up(&mut self) -> Result<(), Error> {
        let Some(attachment) = &mut self.attachment else { return Ok(()) };
        attachment.evaluate(self.clock.request(), &self.rib)?;
        served(attachment)
    }
}

/// Readers outlive the table with what they have; see `fv_table_free`.
impl<A: Registered> Drop for Routes<A> {
    fn drop(&mut self) {
        if let Some(attachment) = self.attachment.take() {
            attachment.retire();
        }
    }
}

/// Pins the module that is wanted, `None` being the best one. If it cannot serve the table, all is as it was: the
/// framework has kept what served, and goes by the former choice again.
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

/// Whether readers see the routes as they are.
fn served<A: Registered>(attachment: &Attachment<A>) -> Result<(), Error> {
    if attachment.is_synced() {
        return Ok(());
    }
    let failure = attachment.failure().cloned();
    Err(failure.map_or(Error::Unserved(A::FAMILY), Error::Compile))
}

/// Looks up as many addresses as there are answers in the table as it is now.
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
