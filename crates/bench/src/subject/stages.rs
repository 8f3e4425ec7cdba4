//! The stages of the loops that are measured here, by the paths of their sources.

use fullview_lab::Experiment;

use crate::settings::{Kind, Settings};

/// The first that fits a function counts; a function of none belongs to the stage that called it.
const STAGES: [(&str, &str); 16] = [
    ("crates/filter/src", "filter"),
    ("plane/src/forward/filter", "filter"),
    ("plane/src/forward/route_cache", "route cache"),
    ("plane/src/forward/lookup", "lookup"),
    ("plane/src/forward/keys", "lookup"),
    ("plane/src/forward/stage", "lookup"),
    ("crates/table/src", "lookup"),
    ("plane/src/forward/rewrite", "rewrite"),
    ("plane/src/forward/transmit", "choose the port"),
    ("plane/src/forward/redirect", "choose the port"),
    ("plane/src/forward", "parse and check"),
    ("plane/src/engine", "the program in the kernel"),
    ("crates/plane/src/port", "ports"),
    ("crates/router/src", "the router's own host"),
    ("crates/bench/src", "generate, receive, verify"),
    ("[kernel]", "the kernel"),
];

/// Parts of the paths of sources, and the stage that they are.
pub fn stages() -> &'static [(&'static str, &'static str)] {
    &STAGES
}

/// Whether everything that is measured runs in this process.
pub fn is_in_this_process(experiment: &Experiment<Settings>) -> bool {
    let settings =
        experiment.variants.iter().map(|variant| variant.set.clone().laid_over(&experiment.subject));
    settings.into_iter().all(|one| {
        !matches!(one.kind(), Kind::Veth | Kind::Testbed)
            && one.lookup.peer.is_none()
            && one.load.peer.is_none()
    })
}
