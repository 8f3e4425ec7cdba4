//! Every algorithm, one line each, in the order in which tables and reports list them.

use crate::addr::Address;
use crate::simd::IsaChoice;

use super::{Algorithm, bsearch, btree6, dir18, dpdk_lpm4, dpdk_lpm6, dxr, linear, poptrie, radix};

/// A family with algorithms. Tests, the command line, experiments and reports use these lists.
pub trait Registered: Address {
    /// The family's algorithms, the oracle first.
    const ALGORITHMS: &'static [&'static dyn Algorithm<Self>];
}

impl Registered for u32 {
    const ALGORITHMS: &'static [&'static dyn Algorithm<u32>] = &[
        &linear::Linear,
        &radix::Radix,
        &radix::RadixLockless,
        &bsearch::Bsearch,
        &dpdk_lpm4::DpdkLpm4(IsaChoice::Best),
        &dxr::Dxr(IsaChoice::Best),
        &poptrie::Poptrie(IsaChoice::Best),
        &dir18::Dir18(IsaChoice::Best),
    ];
}

impl Registered for u128 {
    const ALGORITHMS: &'static [&'static dyn Algorithm<u128>] = &[
        &linear::Linear,
        // Before the trees, which have the same preference for a few routes: the first of equals serves.
        &bsearch::Bsearch,
        &radix::Radix,
        &radix::RadixLockless,
        &dpdk_lpm6::DpdkLpm6(IsaChoice::Best),
        &poptrie::Poptrie(IsaChoice::Best),
        &btree6::Btree6(IsaChoice::Best),
    ];
}

/// Finds the algorithm of that name in this family.
pub fn find<A: Registered>(name: &str) -> Option<&'static dyn Algorithm<A>> {
    A::ALGORITHMS.iter().copied().find(|algorithm| algorithm.name() == name)
}

/// The names of all algorithms of a family, for messages.
pub fn names<A: Registered>() -> Vec<&'static str> {
    A::ALGORITHMS.iter().map(|algorithm| algorithm.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check<A: Registered>() {
        let names = names::<A>();
        assert_eq!(names.first(), Some(&"linear"));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
        assert!(names.iter().all(|name| find::<A>(name).is_some()));
        assert!(find::<A>("Linear").is_none());
    }

    #[test]
    fn names_are_unique_and_found() {
        check::<u32>();
        check::<u128>();
    }
}
