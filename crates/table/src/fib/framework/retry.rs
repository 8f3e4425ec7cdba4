//! Modules that failed for a table: held back for some time after a failed compile, permanently after an error.

use crate::fib::CompileError;

use super::settings::Time;

/// Most doublings of the delay.
const MOST_DOUBLINGS: u32 = 10;

/// The modules that failed; usually none.
#[derive(Debug, Default)]
pub(super) struct Failures(Vec<Failure>);

#[derive(Debug)]
struct Failure {
    module: &'static str,
    /// The number of compiles that failed, one after the other.
    failures: u32,
    /// Why the last one failed.
    error: Option<CompileError>,
    held: Held,
}

#[derive(Debug, PartialEq, Eq)]
enum Held {
    /// The module may be tried.
    No,
    Until(Time),
    Permanently,
}

impl Failures {
    fn of(&mut self, module: &'static str) -> &mut Failure {
        let known = self.0.iter().position(|failure| failure.module == module);
        let at = known.unwrap_or_else(|| {
            self.0.push(Failure { module, failures: 0, error: None, held: Held::No });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Records a failed compile; returns how many have failed, one after the other.
    pub(super) fn failed(
        &mut self,
        now: Time,
        module: &'static str,
        delay: Time,
        error: CompileError,
    ) -> u32 {
        let failure = self.of(module);
        failure.failures = failure.failures.saturating_add(1);
        failure.error = Some(error);
        failure.held = Held::Until(now + delay * (1 << failure.failures.min(MOST_DOUBLINGS)));
        failure.failures
    }

    /// Holds the module back permanently.
    pub(super) fn ban(&mut self, module: &'static str) {
        self.of(module).held = Held::Permanently;
    }

    /// Forgets the failures of a module, because it compiled or was asked for by name.
    pub(super) fn forget(&mut self, module: &str) {
        self.0.retain(|failure| failure.module != module);
    }

    /// Why the module's last compile failed.
    pub(super) fn error(&self, module: &str) -> Option<&CompileError> {
        self.0.iter().find(|failure| failure.module == module)?.error.as_ref()
    }

    /// Whether the module may be tried.
    pub(super) fn allow(&self, module: &str) -> bool {
        self.0.iter().all(|failure| failure.module != module || failure.held == Held::No)
    }

    /// When the first module held back may be tried again.
    pub(super) fn next(&self) -> Option<Time> {
        let times = self.0.iter().filter_map(|failure| match failure.held {
            Held::Until(time) => Some(time),
            Held::No | Held::Permanently => None,
        });
        times.min()
    }

    /// Frees the modules whose time is over.
    pub(super) fn set_free(&mut self, now: Time) {
        let over = |held: &Held| matches!(held, Held::Until(time) if *time <= now);
        self.0.iter_mut().filter(|failure| over(&failure.held)).for_each(|failure| failure.held = Held::No);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> CompileError {
        CompileError::Limit { algorithm: "a", what: "routes", needed: 2, limit: 1 }
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_a_limit() {
        let (mut failures, delay) = (Failures::default(), Time::from_millis(50));
        let mut now = Time::ZERO;
        for wait in [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 51_200, 51_200] {
            failures.failed(now, "a", delay, refused());
            assert_eq!(failures.next(), Some(now + Time::from_millis(wait)));
            assert!(!failures.allow("a") && failures.allow("b"));
            now += Time::from_millis(wait);
            failures.set_free(now - Time::from_millis(1));
            assert!(!failures.allow("a"));
            failures.set_free(now);
            assert!(failures.allow("a"));
        }
        assert_eq!(failures.error("a"), Some(&refused()));
        failures.forget("a");
        assert_eq!(failures.error("a"), None);
        assert_eq!(failures.failed(now, "a", delay, refused()), 1);
    }

    #[test]
    fn a_ban_lasts_until_it_is_forgotten() {
        let mut failures = Failures::default();
        failures.ban("a");
        failures.set_free(Time::MAX);
        assert_eq!((failures.allow("a"), failures.next()), (false, None));
        failures.forget("a");
        assert!(failures.allow("a"));
    }
}
