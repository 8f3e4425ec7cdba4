//! Which settings apply to which kind of subject. A setting of another kind would have no effect on what is measured,
//! so it is refused.

use fullview_lab::{Experiment, PathStep};
use serde_json::Value;

use crate::error::BenchError;
use crate::settings::{Kind, Settings};

/// Settings of some kinds only, by their path below `[subject]` or `set`.
const OF_SOME_KINDS: [(&[&str], &[Kind]); 12] = [
    (&["table"], WITH_ROUTES),
    (&["router"], WITH_ALGORITHMS),
    (&["load"], &[Kind::Forward]),
    (&["filter"], &[Kind::Forward, Kind::Veth, Kind::Testbed]),
    (&["traffic", "size"], &[Kind::Forward]),
    (&["traffic", "client"], &[Kind::Veth]),
    (&["streams"], WITH_STREAMS),
    (&["lookup"], &[Kind::Lookup]),
    (&["updates"], &[Kind::Updates]),
    (&["kernel"], &[Kind::Kernel]),
    (&["veth"], &[Kind::Veth]),
    (&["testbed"], &[Kind::Testbed]),
];

/// The keys of `[subject.traffic]` that packets or lookup keys are drawn by.
const DRAWN_BY: [&str; 7] =
    ["model", "flows", "exponent", "source", "destination", "source6", "destination6"];

/// Kinds whose packets or keys are drawn from the traffic.
const WITH_PACKETS: &[Kind] = &[Kind::Forward, Kind::Lookup, Kind::Kernel, Kind::Testbed];
/// Kinds with several streams.
const WITH_STREAMS: &[Kind] = &[Kind::Forward, Kind::Lookup, Kind::Kernel, Kind::Veth, Kind::Testbed];
/// Kinds that look up in a table of the experiment.
const WITH_ROUTES: &[Kind] = &[Kind::Forward, Kind::Lookup, Kind::Updates, Kind::Kernel, Kind::Testbed];
/// Those of them that take the algorithm from the experiment; the others' programs take it as an option.
const WITH_ALGORITHMS: &[Kind] = &[Kind::Forward, Kind::Lookup, Kind::Updates, Kind::Kernel];

/// Whether any variant is of this kind.
pub fn measures(experiment: &Experiment<Settings>, kind: Kind) -> bool {
    kinds(experiment).contains(&kind)
}

/// The kind of each variant.
fn kinds(experiment: &Experiment<Settings>) -> Vec<Kind> {
    let kind = |set: &Settings| set.kind.unwrap_or(experiment.subject.kind());
    experiment.variants.iter().map(|variant| kind(&variant.set)).collect()
}

/// Refuses variants of several kinds, and settings that mean nothing to their kind.
pub fn check(experiment: &Experiment<Settings>) -> Result<(), BenchError> {
    let kinds = kinds(experiment);
    refuse_mixture(experiment, &kinds)?;
    let Some(kind) = kinds.first() else { return Ok(()) };
    refuse_foreign(experiment, &[PathStep::Key("subject")], &experiment.subject, kind)?;
    for (index, variant) in experiment.variants.iter().enumerate() {
        let place = [PathStep::Key("variants"), PathStep::Item(index), PathStep::Key("set")];
        refuse_foreign(experiment, &place, &variant.set, kind)?;
    }
    Ok(())
}

/// Refuses variants of several kinds or shapes: they cannot take turns on one bed.
fn refuse_mixture(experiment: &Experiment<Settings>, kinds: &[Kind]) -> Result<(), BenchError> {
    let variants = || experiment.variants.iter().enumerate();
    let shape = |set: &Settings| set.load.shape.or(experiment.subject.load.shape);
    let first = experiment.variants.first().and_then(|variant| shape(&variant.set));
    let other_kind = variants().find(|(index, _)| kinds[*index] != kinds[0]);
    let other_shape = variants().find(|(_, variant)| shape(&variant.set) != first);
    let refuse = |index, keys: &[&'static str]| {
        let at = [PathStep::Key("variants"), PathStep::Item(index), PathStep::Key("set")];
        let path: Vec<PathStep<'_>> =
            at.into_iter().chain(keys.iter().map(|key| PathStep::Key(key))).collect();
        let what = keys.join(".");
        experiment
            .refuse(&path, format!("{what} is the same for all variants, because they take turns on one bed"))
    };
    match (other_kind, other_shape) {
        (Some((index, _)), _) => Err(refuse(index, &["kind"]).into()),
        (_, Some((index, _))) => Err(refuse(index, &["load", "shape"]).into()),
        (None, None) => Ok(()),
    }
}

fn refuse_foreign(
    experiment: &Experiment<Settings>,
    place: &[PathStep<'_>],
    settings: &Settings,
    kind: &Kind,
) -> Result<(), BenchError> {
    let written = serde_json::to_value(settings).map_err(BenchError::Settings)?;
    for (group, owners) in groups(settings).iter().filter(|(_, owners)| !owners.contains(kind)) {
        let Some(keys) = first_set(&written, group) else { continue };
        let path: Vec<PathStep<'_>> =
            place.iter().copied().chain(keys.iter().map(|key| PathStep::Key(key))).collect();
        let owners: Vec<String> = owners.iter().map(|owner| format!("\"{owner}\"")).collect();
        let message = format!(
            "{} belongs to subjects of kind {owners} and does nothing here: leave it out, or set kind = {owners}",
            keys.join("."),
            owners = owners.join(" or ")
        );
        return Err(experiment.refuse(&path, message).into());
    }
    Ok(())
}

/// The groups of settings that belong to some kinds only, those of each stream among them.
fn groups(settings: &Settings) -> Vec<(Vec<&str>, &'static [Kind])> {
    let drawn_by = DRAWN_BY.iter().map(|key| (vec!["traffic", *key], WITH_PACKETS));
    let plain = OF_SOME_KINDS.iter().map(|(group, owners)| (group.to_vec(), *owners)).chain(drawn_by);
    let mut groups: Vec<_> = plain.collect();
    let of_traffic: Vec<_> = groups.iter().filter(|(group, _)| group[0] == "traffic").cloned().collect();
    for name in settings.streams.0.keys() {
        let of_stream = of_traffic.iter().map(|(group, owners)| (vec!["streams", name, group[1]], *owners));
        groups.extend(of_stream);
    }
    groups
}

/// The path of a value that is set, at `group` or below it.
pub(super) fn first_set(written: &Value, group: &[&str]) -> Option<Vec<String>> {
    let mut path: Vec<String> = group.iter().map(|key| (*key).to_owned()).collect();
    let mut here = group.iter().try_fold(written, |value, key| value.get(key))?;
    while let Value::Object(keys) = here {
        let (key, value) = keys.iter().find(|(_, value)| is_set(value))?;
        path.push(key.clone());
        here = value;
    }
    is_set(here).then_some(path)
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(keys) => keys.values().any(is_set),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<(), String> {
        let experiment = Experiment::parse("question.toml", text).unwrap();
        check(&experiment).map_err(|error| error.to_string())
    }

    const LOOKUPS: &str = r#"
title = "Lookups"
families = ["inet"]
runs = 3
seed = 1
window = { warmup_s = 0.1, measure_s = 0.1 }
subject = { kind = "lookup", lookup.batch = 16 }
variants = [
    { name = "radix", label = "radix", set.router.algorithm = "radix" },
    { name = "dxr", label = "dxr", set.lookup.arm = "batch" },
]
"#;

    fn refusal(text: &str) -> String {
        check_text(text).unwrap_err()
    }

    #[test]
    fn a_setting_of_another_kind_is_refused_where_it_stands() {
        assert_eq!(check_text(LOOKUPS), Ok(()));
        let error = refusal(&LOOKUPS.replace("set.router", "set.kernel.forwarder = \"engine\", set.router"));
        assert!(error.starts_with("question.toml:9:"), "{error}");
        assert!(error.contains("kernel.forwarder belongs to subjects of kind \"kernel\""), "{error}");
        let error = refusal(&LOOKUPS.replace("set.lookup.arm = \"batch\"", "set.traffic.size = 60"));
        assert!(error.contains("traffic.size belongs to subjects of kind \"forward\""), "{error}");
        let error = refusal(&LOOKUPS.replace("lookup.batch = 16", "updates.changes = 9"));
        assert!(error.starts_with("question.toml:7:"), "{error}");
        assert!(error.contains("updates.changes belongs to subjects of kind \"updates\""), "{error}");
    }

    #[test]
    fn variants_of_several_kinds_or_shapes_are_refused() {
        let error = refusal(&LOOKUPS.replace("set.lookup.arm = \"batch\"", "set.kind = \"updates\""));
        assert!(error.contains(":10:") && error.contains("kind is the same for all variants"), "{error}");
        let forward = LOOKUPS.replace("kind = \"lookup\", lookup.batch = 16", "load.burst = 16");
        let error = refusal(&forward.replace("set.lookup.arm = \"batch\"", "set.load.shape = \"two-cores\""));
        assert!(error.contains("load.shape is the same for all variants"), "{error}");
    }

    #[test]
    fn changes_of_routes_need_no_packets() {
        let updates = LOOKUPS.replace("kind = \"lookup\", lookup.batch = 16", "kind = \"updates\"");
        let updates = updates.replace("set.lookup.arm = \"batch\"", "set.updates.batch = 8");
        assert_eq!(check_text(&updates), Ok(()));
        let error = refusal(&updates.replace("updates.batch = 8", "traffic.flows = 8"));
        let owners = "kind \"forward\" or \"lookup\" or \"kernel\" or \"testbed\"";
        assert!(error.contains(&format!("traffic.flows belongs to subjects of {owners}")), "{error}");
    }

    #[test]
    fn the_experiments_of_the_project_set_nothing_in_vain() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let files =
            |folder: std::path::PathBuf| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let is_report = |path: &std::path::PathBuf| path.display().to_string().contains("testbed/report-");
        let on_a_test_bed = files(folder.join("testbed")).filter(is_report);
        let experiments: Vec<_> = files(folder).filter(|path| path.is_file()).chain(on_a_test_bed).collect();
        assert!(experiments.len() > 14, "{experiments:?}");
        for path in experiments {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(check_text(&text), Ok(()), "{}", path.display());
        }
    }
}
