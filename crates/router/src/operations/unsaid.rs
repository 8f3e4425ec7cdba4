//! What was fetched for somebody and could not be handed over: it is kept for the next time it is asked for.

use std::sync::Arc;

/// At most one thing at a time: nothing more is fetched before it is said.
pub struct Unsaid<T>(Option<Arc<T>>);

impl<T> Default for Unsaid<T> {
    fn default() -> Unsaid<T> {
        Unsaid(None)
    }
}

impl<T> Unsaid<T> {
    /// Has `say` tell what is kept, or else what `fetch` brings; if it fails that is kept.
    pub fn say<V, E>(
        &mut self,
        fetch: impl FnOnce() -> T,
        say: impl FnOnce(Arc<T>) -> Result<V, E>,
    ) -> Result<V, E> {
        let kept = self.0.take().unwrap_or_else(|| Arc::new(fetch()));
        let said = say(Arc::clone(&kept));
        self.0 = said.is_err().then_some(kept);
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_said_is_said_the_next_time() {
        let mut unsaid = Unsaid::default();
        let busy = |_: Arc<u32>| Err::<u32, _>("the router is busy");
        assert!(unsaid.say(|| 7, busy).is_err());
        assert!(unsaid.say(|| 8, busy).is_err());
        let say = |number: Arc<u32>| Ok::<u32, &str>(*number);
        assert_eq!((unsaid.say(|| 9, say), unsaid.say(|| 10, say)), (Ok(7), Ok(10)));
    }
}
