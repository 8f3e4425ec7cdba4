//! Changes and questions to a filter while packets flow. Another thread hands a request to the worker, which serves it
//! between bursts and hands it back, so that the worker neither allocates nor frees memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullview_filter::ruleset::RuleSet;
use fullview_filter::state::Adoption;
use rtrb::{Consumer, Producer, RingBuffer};

use super::filter::{BurstFilter, milliseconds};

/// Requests that wait for the worker at most.
const RING: usize = 16;

/// What the worker is asked for. It comes back with what the worker no longer needs, or with the answer.
pub enum FilterRequest {
    Rules(RuleChange),
}

/// Other rules, and after the change those that were in force before.
pub struct RuleChange {
    pub rules: Arc<RuleSet>,
    /// How states and counters go on; `None` if the rules are the same ones with other tables.
    pub adoption: Option<Adoption>,
}

/// How full the table of states is. The worker stores, any thread loads.
#[derive(Debug, Default)]
pub struct FilterGauges {
    states: AtomicU64,
}

impl FilterGauges {
    /// The states at the worker's last round.
    pub fn states(&self) -> u64 {
        self.states.load(Ordering::Relaxed)
    }
}

/// The end of the thread that asks.
pub struct FilterClient {
    requests: Producer<FilterRequest>,
    answers: Consumer<FilterRequest>,
    gauges: Arc<FilterGauges>,
}

/// The worker's end.
pub struct FilterServer {
    requests: Consumer<FilterRequest>,
    answers: Producer<FilterRequest>,
    gauges: Arc<FilterGauges>,
}

/// Both ends of the connection with the filter of one worker.
pub fn filter_link() -> (FilterClient, FilterServer) {
    let (to_worker, requests) = RingBuffer::new(RING);
    let (answers, from_worker) = RingBuffer::new(RING);
    let gauges = Arc::<FilterGauges>::default();
    let client = FilterClient { requests: to_worker, answers: from_worker, gauges: Arc::clone(&gauges) };
    (client, FilterServer { requests, answers, gauges })
}

impl FilterClient {
    /// Hands a request over. It comes back at once if too many wait.
    ///
    /// # Errors
    /// The request, if there is no room.
    pub fn send(&mut self, request: FilterRequest) -> Result<(), FilterRequest> {
        self.requests.push(request).map_err(|rtrb::PushError::Full(request)| request)
    }

    /// The next request that the worker has served.
    pub fn receive(&mut self) -> Option<FilterRequest> {
        self.answers.pop().ok()
    }

    /// How full the table of states is.
    pub fn gauges(&self) -> &Arc<FilterGauges> {
        &self.gauges
    }
}

impl FilterServer {
    /// Serves the requests that wait, as far as there is room for the answers.
    pub(super) fn serve(&mut self, filter: &mut BurstFilter) {
        while !self.answers.is_full()
            && let Ok(mut request) = self.requests.pop()
        {
            answer(filter, &mut request);
            // There is room: only this thread fills the ring.
            let _ = self.answers.push(request);
        }
        filter.rules.sweep(&mut filter.worker, milliseconds());
        self.gauges.states.store(filter.worker.states().len() as u64, Ordering::Relaxed);
    }
}

fn answer(filter: &mut BurstFilter, request: &mut FilterRequest) {
    match request {
        FilterRequest::Rules(change) => change_rules(filter, change),
    }
}

fn change_rules(filter: &mut BurstFilter, change: &mut RuleChange) {
    std::mem::swap(&mut filter.rules, &mut change.rules);
    change.adoption = change.adoption.take().map(|adoption| filter.worker.adopt(adoption));
}
