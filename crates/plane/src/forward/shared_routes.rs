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
use crate::kernel_flows::FlowSharing;
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
            let Some(table) = tables.get_mut(usize::from(flow.table)) else { continue };
            let compared =
                Compared { entry, place: flow.place as usize, checks_sources: view.checks_sources() };
            match flow.family {
                Family::Inet => compared.follow::<InetAddresses>(worker, &mut table.inet),
                Family::Inet6 => compared.follow::<Inet6Addresses>(worker, &mut table.inet6),
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

/// A flow whose route is compared.
struct Compared {
    entry: u32,
    /// Where the worker has the flow, unless another one has taken its place.
    place: usize,
    /// A check of sources would have to be made anew.
    checks_sources: bool,
}

impl Compared {
    /// Takes the flow back if it has another route than the one that it was learned with.
    fn follow<A: WireFamily>(self, worker: &mut FilterWorker, keys: &mut FamilyKeys<A::Key>) {
        let Compared { entry, place, checks_sources } = self;
        let cache = A::cache(worker.flows_mut().0);
        if cache.offloaded(place) != Some(entry) {
            return;
        }
        let (destination, _) = cache.flow(place).end(Side::Destination);
        if checks_sources || keys.find(A::key(destination)).0 != cache.route(place).1 {
            recall_flow::<A>(worker, place);
        }
    }
}
