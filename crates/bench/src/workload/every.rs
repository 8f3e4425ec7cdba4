//! A variant that stands for every algorithm of the registry, so that a new algorithm takes part by itself.

use std::collections::BTreeSet;

use fullview_lab::{Experiment, Variant};
use fullview_table::Family;
use fullview_table::fib::registry;

use crate::settings::Settings;
use fullview_router::algorithm::Names;

/// The value of `router.algorithm` that stands for every algorithm, and the placeholder of its name in a label.
const EVERY: &str = "every";
const PLACE: &str = "{algorithm}";

/// Replaces each variant with `router.algorithm = "every"` by one for each algorithm that all families of the
/// experiment have. The oracle is left out: its verification takes longer than the others' whole campaign.
pub fn expand(experiment: &mut Experiment<Settings>) {
    let algorithms = common(experiment);
    let variants = std::mem::take(&mut experiment.variants);
    experiment.variants = variants.into_iter().flat_map(|variant| each(variant, &algorithms)).collect();
}

fn each(variant: Variant<Settings>, algorithms: &[&'static str]) -> Vec<Variant<Settings>> {
    if variant.set.router.algorithm != Some(Names::One(EVERY.into())) {
        return vec![variant];
    }
    let named = |name: &&str| {
        let mut one = variant.clone();
        one.name = format!("{}-{name}", variant.name);
        one.label = variant.label.replace(PLACE, name);
        one.set.router.algorithm = Some(Names::One((*name).into()));
        one
    };
    algorithms.iter().map(named).collect()
}

/// In the order of the registry of the first family.
fn common(experiment: &Experiment<Settings>) -> Vec<&'static str> {
    let of = |family: Family| match family {
        Family::Inet => registry::names::<u32>(),
        Family::Inet6 => registry::names::<u128>(),
    };
    let families =
        experiment.families.iter().filter_map(|family| Family::named(family.name.split('.').next()?));
    let families: BTreeSet<Family> = families.collect();
    let Some(first) = families.first() else { return Vec::new() };
    let everywhere = |name: &&str| families.iter().all(|family| of(*family).contains(name));
    of(*first).into_iter().skip(1).filter(everywhere).collect()
}
