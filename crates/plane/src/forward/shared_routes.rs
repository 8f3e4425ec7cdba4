//! The routes of flows that a program in the kernel forwards. With a full table routes change all the time, and hardly any change
//! is about such a flow. So the worker compares the routes of its flows when others were published, and takes back those that
//! are no longer what the flow was learned with.

use fullview_filter::address::Family;
use fullview_filter::ruleset::recall_flow;
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::{Inet6Addresses, InetAddresses};

use super::keys::TableKeys;
use super::rules::next_hop_of_flow;
use super::wire_flow::WireFamily;
use crate::kernel_flows::{FlowSharing, SharedFlow};
use crate::view::View;

/// A round compares the routes of so many flows at most.
const MOST: usize = 256;

/// What routes the shared flows were last compared with.
#[derive(Debug, Default)]
pub(super) struct SharedRoutes {
    /// The generation of each table: IPv4 and IPv6.
    generations: Vec<[u64; 2]>,
}

impl SharedRoutes {
    /// Takes flows back whose routes have changed: all of them in some rounds, if there are many.
    pub fn follow(
        &mut self,
        sharing: &mut FlowSharing,
        worker: &mut FilterWorker,
        tables: &mut [TableKeys],
        view: &View,
    ) {
        if self.have_changed(tables) {
            sharing.compare_routes();
        }
        for _ in 0..MOST {
            let Some((entry, flow)) = sharing.next_compared() else { return };
            match flow.family {
                Family::Inet => compare::<InetAddresses>(entry, flow, worker, tables, view),
                Family::Inet6 => compare::<Inet6Addresses>(entry, flow, worker, tables, view),
            }
        }
    }

    fn have_changed(&mut self, tables: &[TableKeys]) -> bool {
        let now =
            tables.iter().map(|table| [table.inet.reader.generation(), table.inet6.reader.generation()]);
        if now.clone().eq(self.generations.iter().copied()) {
            return false;
        }
        self.generations.clear();
        self.generations.extend(now);
        true
    }
}

/// Takes a flow back if it has another route than the one that it was learned with.
fn compare<A: WireFamily>(
    entry: u32,
    flow: SharedFlow,
    worker: &mut FilterWorker,
    tables: &mut [TableKeys],
    view: &View,
) {
    let (cache, place) = (A::cache(worker.flows_mut().0), flow.place as usize);
    // Another flow may have taken its place.
    if cache.offloaded(place) != Some(entry) {
        return;
    }
    // With a check of sources that would have to be made anew.
    let keeps = !view.checks_sources()
        && next_hop_of_flow(tables, view, &cache.flow(place)).0 == cache.route(place).1;
    if !keeps {
        recall_flow::<A>(worker, place);
    }
}
