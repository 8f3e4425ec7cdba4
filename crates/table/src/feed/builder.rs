//! Builds a table from the routes of a feed.

use crate::addr::Address;
use crate::nexthop::{NextHop, NextHops, Target};
use crate::prefix::Prefix;
use crate::rib::Rib;
use crate::table::Table;

use super::error::{At, Fault, Located};
use super::options::Options;
use super::report::{LoadReport, Loaded};
use super::source::{Compression, Format};

/// A route of the feed; there may be another one for its prefix, which would be an error.
struct PendingRoute<A> {
    prefix: Prefix<A>,
    /// `None` if the feed gives no next hop, so that the model has to.
    next_hop: Option<NextHop>,
    /// The line of the route, or 0 in MRT, which merges repetitions itself.
    line: u64,
}

/// The next hop of a prefix as the feed gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    /// No next hop: the model assigns one.
    Unspecified,
    /// No route: a hole in a shorter prefix.
    Unreachable,
    /// This next hop.
    Target(Target),
}

/// Takes routes in any order and builds the table at the end.
pub(super) struct TableBuilder<'o> {
    options: &'o Options<'o>,
    inet: Vec<PendingRoute<u32>>,
    inet6: Vec<PendingRoute<u128>>,
    next_hops: NextHops,
    pub(super) report: LoadReport,
}

impl<'o> TableBuilder<'o> {
    pub(super) fn new(options: &'o Options<'o>, format: Format, compression: Compression) -> Self {
        let report = LoadReport {
            format,
            compression,
            inet: 0,
            inet6: 0,
            without_next_hop: 0,
            records: 0,
            skipped: 0,
            malformed_paths: 0,
        };
        let next_hops = NextHops::default();
        TableBuilder { options, inet: Vec::new(), inet6: Vec::new(), next_hops, report }
    }

    /// Adds one route of either family.
    pub(super) fn add<A: BuilderFamily>(
        &mut self,
        prefix: Prefix<A>,
        via: Via,
        line: u64,
    ) -> Result<(), Fault> {
        if !self.wants::<A>() {
            self.report.skipped += 1;
            return Ok(());
        }
        self.check_room()?;
        let next_hop = match via {
            Via::Unspecified => None,
            Via::Unreachable => Some(NextHop::NONE),
            Via::Target(target) => Some(self.intern::<A>(target)?),
        };
        A::entries(self).push(PendingRoute { prefix, next_hop, line });
        Ok(())
    }

    /// Whether routes of this family were asked for.
    pub(super) fn wants<A: Address>(&self) -> bool {
        self.options.family.is_none_or(|family| family == A::FAMILY)
    }

    /// The most routes that a table may have.
    pub(super) fn max_routes(&self) -> usize {
        self.options.max_routes
    }

    fn check_room(&self) -> Result<(), Fault> {
        let limit = self.options.max_routes;
        if self.inet.len() + self.inet6.len() < limit { Ok(()) } else { Err(Fault::TooManyRoutes { limit }) }
    }

    /// Returns the index of a next hop. IPv4 routes can use an IPv6 router (RFC 8950), but IPv6 routes no IPv4 router.
    fn intern<A: Address>(&mut self, target: Target) -> Result<NextHop, Fault> {
        match target {
            Target::Gateway(gateway) if A::BITS == 128 && gateway.is_ipv4() => {
                Err(Fault::GatewayFamily { gateway })
            }
            _ => Ok(self.next_hops.intern(target)?),
        }
    }

    /// Builds the table, if no prefix occurs twice and there is at least one route.
    pub(super) fn finish(mut self) -> Result<Loaded, Located> {
        let inet = self.rib::<u32>()?;
        let inet6 = self.rib::<u128>()?;
        (self.report.inet, self.report.inet6) = (inet.len(), inet6.len());
        if inet.is_empty() && inet6.is_empty() {
            let (family, skipped) = (self.options.family, self.report.skipped);
            return Err(Fault::NoRoutes { family, skipped }.at(At::Whole));
        }
        Ok(Loaded { table: Table { inet, inet6, next_hops: self.next_hops }, report: self.report })
    }

    fn rib<A: BuilderFamily>(&mut self) -> Result<Rib<A>, Located> {
        let mut entries = std::mem::take(A::entries(self));
        entries.sort_unstable_by_key(|entry| (entry.prefix, entry.line));
        refuse_repeats(&entries)?;
        let bare = entries.iter().filter(|entry| entry.next_hop.is_none()).count();
        self.report.without_next_hop += bare;
        let model = self.options.next_hops.assign(A::FAMILY, bare, &mut self.next_hops);
        let mut model = model.map_err(|fault| fault.at(At::Whole))?.into_iter();
        let mut rib = Rib::default();
        for entry in entries {
            let next_hop = entry.next_hop.or_else(|| model.next()).unwrap_or(NextHop::NONE);
            rib.announce(entry.prefix, next_hop);
        }
        Ok(rib)
    }
}

/// Refuses two routes for one prefix, even if they are equal: a table dump has none. The error names the first line
/// that repeats another.
fn refuse_repeats<A: Address>(entries: &[PendingRoute<A>]) -> Result<(), Located> {
    let repeats = entries.array_windows().filter(|[first, second]| first.prefix == second.prefix);
    let Some([first, second]) = repeats.min_by_key(|[_, second]| second.line) else { return Ok(()) };
    let prefix = second.prefix.to_string();
    Err(Fault::Repeated { prefix, first: first.line }.at_line(second.line))
}

/// Gives generic code access to the routes of its family.
pub(super) trait BuilderFamily: Address {
    #[allow(private_interfaces)] // only this module uses the type
    fn entries<'b>(builder: &'b mut TableBuilder<'_>) -> &'b mut Vec<PendingRoute<Self>>;
}

impl BuilderFamily for u32 {
    #[allow(private_interfaces)]
    fn entries<'b>(builder: &'b mut TableBuilder<'_>) -> &'b mut Vec<PendingRoute<u32>> {
        &mut builder.inet
    }
}

impl BuilderFamily for u128 {
    #[allow(private_interfaces)]
    fn entries<'b>(builder: &'b mut TableBuilder<'_>) -> &'b mut Vec<PendingRoute<u128>> {
        &mut builder.inet6
    }
}
