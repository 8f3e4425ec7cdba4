//! The routes of flows that a program in the kernel forwards. With a full table routes change all the time, and hardly any change
//! is about such a flow. So the worker compares the routes of its flows when others were published, and takes back those that
//! are no longer what the flow was learned with.

use fullview_filter::address::Family;
use fullview_filter::rule::Side;
use fullview_filter::ruleset::recall_flow;
use fullview_filter::state::FilterWorker;
use fullview_filter::state::flow::{Inet6Addresses, InetAddresses};

use super::keys::{FamilyKeys, TableKeys};
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
            let Some(flow) = sharing.next_compared() else { return };
            let Some(table) = tables.get_mut(usize::from(flow.table)) else { continue };
            let place = flow.place as usize;
            // A check of sources would have to be made anew.
            match flow.family {
                Family::Inet
                    if view.checks_sources() || differs::<InetAddresses>(worker, flow, &mut table.inet) =>
                {
                    recall_flow::<InetAddresses>(worker, place);
                }
                Family::Inet6
                    if view.checks_sources() || differs::<Inet6Addresses>(worker, flow, &mut table.inet6) =>
                {
                    recall_flow::<Inet6Addresses>(worker, place);
                }
                _ => {}
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

/// Whether a flow has another route than the one that it was learned with.
fn differs<A: WireFamily>(
    worker: &mut FilterWorker,
    flow: SharedFlow,
    keys: &mut FamilyKeys<A::Key>,
) -> bool {
    let (cache, place) = (A::cache(worker.flows_mut().0), flow.place as usize);
    let (destination, _) = cache.flow(place).end(Side::Destination);
    keys.find(A::key(destination)).0 != cache.route(place).1
}
