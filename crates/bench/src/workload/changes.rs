//! Route changes: a stream drawn from a table, or a trace of BGP updates.

use std::collections::BTreeSet;
use std::path::Path;

use fullview_table::feed::updates::{self, FamilyChange};
use fullview_table::{Address, Change, NextHop, NextHops, Prefix, Rib};
use rand::seq::{SliceRandom, index};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashSet;

use crate::error::{BenchError, WrongSetting, require, require_setting};
use crate::settings::UpdateSettings;
use crate::traffic::zipf::Zipf;

/// Changes of a synthetic stream unless the experiment says otherwise.
const CHANGES: usize = 1 << 16;
const MOST_CHANGES: usize = 1 << 24;
const MOST_TOGETHER: usize = 1 << 16;

/// The shape of a synthetic stream is that of the updates that the exchange point LINX saw in an hour of December 2014,
/// without those that repeated a route: six changes a prefix, and a tenth of the prefixes have a third of the changes.
const CHANGES_PER_PREFIX: usize = 6;
const POPULARITY: f64 = 0.6;
/// Of the changes of a route half are withdrawals, and half give it another next hop.
const WITHDRAWN: f64 = 0.5;
/// Two of five routes that come back have the next hop that they had.
const AS_BEFORE: f64 = 0.4;
/// One prefix in so many is new: it is longer than the route that it is drawn from.
const ONE_NEW_IN: usize = 10;

/// Changes that a table gets in this order, again and again.
#[derive(Debug, PartialEq)]
pub struct ChangeStream<A: Address> {
    pub changes: Vec<Change<A>>,
    /// Every prefix that changes, once.
    pub prefixes: Vec<Prefix<A>>,
}

/// A family that changes belong to.
pub trait ChangeFamily: Address {
    /// The longest prefix that routers on the Internet accept from each other.
    const LONGEST_ACCEPTED: u8;
    /// The change, if it is of this family.
    fn of(change: FamilyChange) -> Option<Change<Self>>;
}

impl ChangeFamily for u32 {
    const LONGEST_ACCEPTED: u8 = 24;
    fn of(change: FamilyChange) -> Option<Change<u32>> {
        match change {
            FamilyChange::Inet(change) => Some(change),
            FamilyChange::Inet6(_) => None,
        }
    }
}

impl ChangeFamily for u128 {
    const LONGEST_ACCEPTED: u8 = 48;
    fn of(change: FamilyChange) -> Option<Change<u128>> {
        match change {
            FamilyChange::Inet6(change) => Some(change),
            FamilyChange::Inet(_) => None,
        }
    }
}

/// Refuses settings that are out of range, before anything is loaded.
pub fn check(settings: &UpdateSettings) -> Result<(), WrongSetting> {
    let UpdateSettings { source, changes, batch } = settings;
    require_setting(
        changes.is_none_or(|changes| (2..=MOST_CHANGES).contains(&changes)),
        &["updates", "changes"],
        || format!("give 2 to {MOST_CHANGES}"),
    )?;
    require_setting(
        batch.is_none_or(|batch| (1..=MOST_TOGETHER).contains(&batch)),
        &["updates", "batch"],
        || format!("give 1 to {MOST_TOGETHER} changes"),
    )?;
    let is_file = source.as_deref().is_some_and(|source| source != UpdateSettings::SYNTHETIC);
    require_setting(!(is_file && changes.is_some()), &["updates", "changes"], || {
        "a trace has the length that it has; leave this out, or updates.source".into()
    })
}

/// How the report names the changes, of which variants take so many at a time.
pub fn describe(settings: &UpdateSettings, batches: &BTreeSet<usize>) -> String {
    let words = batches.iter().map(|batch| match batch {
        1 => "one by one".into(),
        batch => format!("{batch} at a time"),
    });
    let together = words.collect::<Vec<String>>().join(" or ");
    let drawn = settings.changes.unwrap_or(CHANGES);
    match settings.source.as_deref() {
        None | Some(UpdateSettings::SYNTHETIC) => {
            format!("changes: {drawn} drawn for each block, applied {together} and repeated")
        }
        Some(file) => format!(
            "changes: those of the trace {file} that have an effect, and then those that put the table back, applied {together} \
             and repeated"
        ),
    }
}

/// The changes for a table with these routes. The same settings and seed give the same changes.
pub fn stream<A: ChangeFamily>(
    settings: &UpdateSettings,
    rib: &Rib<A>,
    next_hops: &NextHops,
    seed: u64,
) -> Result<ChangeStream<A>, BenchError> {
    let changes = match settings.source.as_deref() {
        None | Some(UpdateSettings::SYNTHETIC) => {
            Drawing::new(rib, next_hops.len(), settings.changes.unwrap_or(CHANGES), seed).changes()
        }
        Some(file) => repeatable(trace(Path::new(file), next_hops)?, rib),
    };
    require(!changes.is_empty(), || format!("updates: there is nothing to change for {}", A::FAMILY))?;
    Ok(ChangeStream { prefixes: prefixes_of(&changes), changes })
}

/// Every prefix that changes, once, in the order of the first changes.
fn prefixes_of<A: Address>(changes: &[Change<A>]) -> Vec<Prefix<A>> {
    let mut seen = FxHashSet::default();
    changes.iter().map(|change| change.prefix).filter(|prefix| seen.insert(*prefix)).collect()
}

/// The changes that have an effect, and then those that put the table back: otherwise most of a trace would have none from its
/// second time on, and not be a change for readers.
fn repeatable<A: Address>(changes: Vec<Change<A>>, rib: &Rib<A>) -> Vec<Change<A>> {
    let mut now = rib.clone();
    let mut is_effective = |change: &Change<A>| now.apply(*change) != change.next_hop;
    let mut changes: Vec<_> = changes.into_iter().filter(&mut is_effective).collect();
    let back = prefixes_of(&changes).into_iter().map(|prefix| Change { prefix, next_hop: rib.get(prefix) });
    changes.extend(back.filter(is_effective));
    changes
}

fn trace<A: ChangeFamily>(file: &Path, next_hops: &NextHops) -> Result<Vec<Change<A>>, BenchError> {
    let mut known = NextHops::default();
    next_hops.iter().try_for_each(|(_, target)| known.intern(target).map(drop))?;
    let updates = updates::load(file, &mut known)?;
    Ok(updates.into_iter().filter_map(|update| A::of(update.change)).collect())
}

/// A route that changes.
struct UnstableRoute<A> {
    prefix: Prefix<A>,
    in_table: Option<NextHop>,
    now: Option<NextHop>,
    /// The next hop that it has, or had last.
    last: NextHop,
}

impl<A: Address> UnstableRoute<A> {
    fn is_displaced(&self) -> bool {
        self.now != self.in_table
    }

    fn change_to(&mut self, next_hop: Option<NextHop>) -> Change<A> {
        self.now = next_hop;
        self.last = next_hop.unwrap_or(self.last);
        Change { prefix: self.prefix, next_hop }
    }
}

/// A synthetic stream while it is drawn.
struct Drawing<A> {
    routes: Vec<UnstableRoute<A>>,
    next_hops: u16,
    count: usize,
    random: ChaCha8Rng,
}

impl<A: ChangeFamily> Drawing<A> {
    fn new(rib: &Rib<A>, next_hops: usize, count: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let next_hops = u16::try_from(next_hops).unwrap_or(NextHop::MAX);
        let routes = unstable_routes(rib, next_hops, count.div_ceil(CHANGES_PER_PREFIX), &mut random);
        Drawing { routes, next_hops, count, random }
    }

    /// Every change has an effect, and after the last one the table is as it was. That may take one change more than
    /// asked for.
    fn changes(mut self) -> Vec<Change<A>> {
        let Some(popularity) = Zipf::new(self.routes.len(), POPULARITY) else { return Vec::new() };
        let (mut changes, mut displaced) = (Vec::with_capacity(self.count), 0);
        while changes.len() + displaced < self.count {
            let at = popularity.draw(&mut self.random);
            let before = usize::from(self.routes[at].is_displaced());
            changes.push(self.change(at));
            displaced = displaced + usize::from(self.routes[at].is_displaced()) - before;
        }
        let mut back: Vec<_> = self.routes.iter_mut().filter(|route| route.is_displaced()).collect();
        back.shuffle(&mut self.random);
        changes.extend(back.into_iter().map(|route| route.change_to(route.in_table)));
        changes
    }

    fn change(&mut self, at: usize) -> Change<A> {
        let Drawing { routes, next_hops, random, .. } = self;
        let route = &mut routes[at];
        let only = *next_hops < 2;
        let next_hop = match route.now {
            Some(_) if only || random.random_bool(WITHDRAWN) => None,
            None if only || random.random_bool(AS_BEFORE) => Some(route.last),
            _ => Some(other_than(route.last, *next_hops, random)),
        };
        route.change_to(next_hop)
    }
}

/// One of so many next hops, of which there are at least two.
fn other_than(last: NextHop, next_hops: u16, random: &mut impl Rng) -> NextHop {
    let drawn = random.random_range(1..next_hops);
    NextHop(drawn + u16::from(drawn >= last.0))
}

/// Routes drawn from the table, and new ones, the most popular first.
fn unstable_routes<A: ChangeFamily>(
    rib: &Rib<A>,
    next_hops: u16,
    count: usize,
    random: &mut ChaCha8Rng,
) -> Vec<UnstableRoute<A>> {
    let routes: Vec<_> = rib.iter().collect();
    let new = count / ONE_NEW_IN;
    let drawn = index::sample(random, routes.len(), (count - new).min(routes.len()));
    let known = |at: usize| {
        let route = routes[at];
        let in_table = Some(route.next_hop);
        UnstableRoute { prefix: route.prefix, in_table, now: in_table, last: route.next_hop }
    };
    let mut unstable: Vec<_> = drawn.into_iter().map(known).collect();
    let mut seen = FxHashSet::default();
    for _ in 0..if routes.is_empty() { 0 } else { new } {
        let from = routes[random.random_range(0..routes.len())].prefix;
        let prefix = longer(from, random).filter(|prefix| rib.get(*prefix).is_none() && seen.insert(*prefix));
        let last = NextHop(random.random_range(1..=next_hops.max(1)));
        unstable.extend(prefix.map(|prefix| UnstableRoute { prefix, in_table: None, now: None, last }));
    }
    unstable.shuffle(random);
    unstable
}

/// A prefix below `prefix`, if there is one that routers accept.
fn longer<A: ChangeFamily>(prefix: Prefix<A>, random: &mut impl Rng) -> Option<Prefix<A>> {
    let lengths = prefix.len() + 1..=A::LONGEST_ACCEPTED;
    if lengths.is_empty() {
        return None;
    }
    let bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    let addr = A::from(bits >> (128 - u32::from(A::BITS)))?;
    Some(Prefix::containing(prefix.first() | (addr & !A::mask(prefix.len())), random.random_range(lengths)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use fullview_table::feed::synthetic::Synthetic;
    use fullview_table::{Table, Target};

    fn table() -> Table {
        Synthetic { inet: 3_000, inet6: 1_000, ..Synthetic::default() }.table().unwrap()
    }

    #[test]
    fn the_numbers_of_changes_at_a_time_of_all_variants_are_named() {
        let described =
            |batches: &[usize]| describe(&UpdateSettings::default(), &batches.iter().copied().collect());
        assert!(described(&[1]).contains("drawn for each block, applied one by one and repeated"));
        assert!(described(&[256, 1, 1]).contains("applied one by one or 256 at a time and repeated"));
    }

    fn drawn(count: usize, seed: u64) -> ChangeStream<u32> {
        let (settings, table) =
            (UpdateSettings { changes: Some(count), ..UpdateSettings::default() }, table());
        stream(&settings, &table.inet, &table.next_hops, seed).unwrap()
    }

    #[test]
    fn every_change_has_an_effect_and_the_last_one_leaves_the_table_as_it_was() {
        let mut rib = table().inet;
        let ChangeStream { changes, prefixes } = drawn(6_000, 3);
        assert!((6_000..=6_001).contains(&changes.len()));
        for change in &changes {
            assert_ne!(rib.apply(*change), change.next_hop, "{}", change.prefix);
        }
        assert!(rib.iter().eq(table().inet.iter()));
        let new = prefixes.iter().filter(|prefix| rib.get(**prefix).is_none()).count();
        assert!((20..=100).contains(&new), "{new} of {} prefixes are new", prefixes.len());
        let withdrawn = changes.iter().filter(|change| change.next_hop.is_none()).count();
        assert!((1_500..3_000).contains(&withdrawn), "{withdrawn} of 6000 changes withdraw a route");
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(drawn(500, 3), drawn(500, 3));
        assert_ne!(drawn(500, 3), drawn(500, 4));
    }

    #[test]
    fn one_next_hop_and_one_route_are_enough_and_no_route_is_refused() {
        let (mut rib, mut next_hops) = (Rib::<u128>::default(), NextHops::default());
        let refused = stream(&UpdateSettings::default(), &rib, &next_hops, 1).unwrap_err();
        assert_eq!(refused.to_string(), "updates: there is nothing to change for inet6");
        let hop = next_hops.intern(Target::Number(1)).unwrap();
        rib.announce("2001:2::/48".parse().unwrap(), hop);
        let flaps = stream(&UpdateSettings::default(), &rib, &next_hops, 1).unwrap();
        assert!(
            flaps.changes.chunks(2).all(|pair| [pair[0].next_hop, pair[1].next_hop] == [None, Some(hop)])
        );
    }

    #[test]
    fn a_trace_gives_each_family_its_changes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"1 a 10.0.0.0/8 192.0.2.1\n2 a 2001:2::/48 2001:db8::1\n3 w 10.0.0.0/8\n").unwrap();
        let source = Some(file.path().to_str().unwrap().to_owned());
        let settings = UpdateSettings { source, ..UpdateSettings::default() };
        let inet = stream(&settings, &Rib::<u32>::default(), &NextHops::default(), 1).unwrap();
        let inet6 = stream(&settings, &Rib::<u128>::default(), &NextHops::default(), 1).unwrap();
        assert_eq!((inet.changes.len(), inet.prefixes.len(), inet6.changes.len()), (2, 1, 2));
        let both = UpdateSettings { changes: Some(8), ..settings };
        assert!(check(&both).unwrap_err().to_string().starts_with("updates.changes: a trace has"));
    }

    #[test]
    fn every_change_of_a_repeated_trace_has_an_effect() {
        let (mut rib, mut next_hops) = (Rib::<u32>::default(), NextHops::default());
        let [one, _] = [1, 2].map(|number| next_hops.intern(Target::Number(number)).unwrap());
        for known in ["10.0.0.0/8", "10.2.0.0/16"] {
            rib.announce(known.parse().unwrap(), one);
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let lines = [
            "1 w 10.9.0.0/16",
            "2 a 10.1.0.0/16 2",
            "3 a 10.1.0.0/16 2",
            "4 w 10.0.0.0/8",
            "5 a 10.2.0.0/16 2",
        ];
        file.write_all(lines.join("\n").as_bytes()).unwrap();
        let source = Some(file.path().to_str().unwrap().to_owned());
        let settings = UpdateSettings { source, ..UpdateSettings::default() };
        let ChangeStream { changes, prefixes } = stream(&settings, &rib, &next_hops, 1).unwrap();
        assert_eq!((changes.len(), prefixes.len()), (6, 3), "three of the trace, and as many back");
        let mut changing = rib.clone();
        for change in changes.iter().chain(&changes) {
            assert_ne!(changing.apply(*change), change.next_hop, "{}", change.prefix);
        }
        assert!(changing.iter().eq(rib.iter()));
    }
}
