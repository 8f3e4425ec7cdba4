//! Keeps data that was fetched for a client and could not be delivered, until the client asks again.

use std::sync::Arc;

/// The data that was not delivered. Nothing more is fetched before it is.
pub struct Undelivered<T>(Option<Arc<T>>);

impl<T> Default for Undelivered<T> {
    fn default() -> Undelivered<T> {
        Undelivered(None)
    }
}

impl<T> Undelivered<T> {
    /// Delivers the data that was kept, or else what `fetch` returns. If `deliver` fails, the data is kept.
    pub fn deliver<V, E>(
        &mut self,
        fetch: impl FnOnce() -> T,
        deliver: impl FnOnce(Arc<T>) -> Result<V, E>,
    ) -> Result<V, E> {
        let kept = self.0.take().unwrap_or_else(|| Arc::new(fetch()));
        let delivered = deliver(Arc::clone(&kept));
        self.0 = delivered.is_err().then_some(kept);
        delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_could_not_be_delivered_is_delivered_next_time() {
        let mut undelivered = Undelivered::default();
        let busy = |_: Arc<u32>| Err::<u32, _>("the router is busy");
        assert!(undelivered.deliver(|| 7, busy).is_err());
        assert!(undelivered.deliver(|| 8, busy).is_err());
        let deliver = |number: Arc<u32>| Ok::<u32, &str>(*number);
        assert_eq!(
            (undelivered.deliver(|| 9, deliver), undelivered.deliver(|| 10, deliver)),
            (Ok(7), Ok(10))
        );
    }
}
