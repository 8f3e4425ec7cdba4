//! Which settings apply to which kind of subject. A setting of another kind would have no effect on what is measured,
//! so it is refused.

use fullview_lab::{Experiment, PathStep};
use serde_json::Value;

use crate::error::BenchError;
use crate::settings::{Kind, Settings};

/// Settings of one kind only, by their path below `[subject]` or `set`.
const OF_ONE_KIND: [(&[&str], Kind); 4] = [
    (&["load"], Kind::Forward),
    (&["traffic", "size"], Kind::Forward),
    (&["lookup"], Kind::Lookup),
    (&["kernel"], Kind::Kernel),
];

/// Whether any variant is of this kind.
pub fn measures(experiment: &Experiment<Settings>, kind: Kind) -> bool {
    kinds(experiment).contains(&kind)
}

/// The kind of each variant.
fn kinds(experiment: &Experiment<Settings>) -> Vec<Kind> {
    let kind = |set: &Settings| set.kind.unwrap_or(experiment.subject.kind());
    experiment.variants.iter().map(|variant| kind(&variant.set)).collect()
}

/// Refuses common settings that apply to no variant, and settings of a variant that do not apply to it.
pub fn check(experiment: &Experiment<Settings>) -> Result<(), BenchError> {
    let kinds = kinds(experiment);
    refuse_mixture(experiment, &kinds)?;
    refuse_foreign(experiment, &[PathStep::Key("subject")], &experiment.subject, &kinds)?;
    for (index, (variant, kind)) in experiment.variants.iter().zip(&kinds).enumerate() {
        let place = [PathStep::Key("variants"), PathStep::Item(index), PathStep::Key("set")];
        refuse_foreign(experiment, &place, &variant.set, std::slice::from_ref(kind))?;
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
    kinds: &[Kind],
) -> Result<(), BenchError> {
    let written = serde_json::to_value(settings).map_err(BenchError::Settings)?;
    for (group, owner) in OF_ONE_KIND.iter().filter(|(_, owner)| !kinds.contains(owner)) {
        let Some(keys) = first_set(&written, group) else { continue };
        let path: Vec<PathStep<'_>> =
            place.iter().copied().chain(keys.iter().map(|key| PathStep::Key(key))).collect();
        let message = format!(
            "{} belongs to subjects of kind \"{owner}\" and does nothing here: leave it out, or set kind = \"{owner}\"",
            keys.join(".")
        );
        return Err(experiment.refuse(&path, message).into());
    }
    Ok(())
}

/// The path of a value that is set, at `group` or below it.
fn first_set(written: &Value, group: &[&str]) -> Option<Vec<String>> {
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

    const BOTH: &str = r#"
title = "Both kinds"
families = ["inet"]
runs = 3
seed = 1
window = { warmup_s = 0.1, measure_s = 0.1 }
subject = { load.burst = 32, lookup.batch = 16 }
variants = [
    { name = "path", label = "a path", set.router.algorithm = "radix" },
    { name = "alone", label = "lookups alone", set.kind = "lookup", set.lookup.arm = "batch" },
]
"#;

    #[test]
    fn common_settings_serve_any_variant_and_a_variants_own_serve_it() {
        assert_eq!(check_text(BOTH), Ok(()));
        let error = check_text(&BOTH.replace("set.router", "set.lookup.keys = 8, set.router")).unwrap_err();
        assert!(error.starts_with("question.toml:9:"), "{error}");
        assert!(error.contains("lookup.keys belongs to subjects of kind \"lookup\""), "{error}");
        let error =
            check_text(&BOTH.replace("set.lookup.arm = \"batch\"", "set.traffic.size = 60")).unwrap_err();
        assert!(error.contains("traffic.size belongs to subjects of kind \"forward\""), "{error}");
    }

    #[test]
    fn the_experiments_of_the_project_set_nothing_in_vain() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert_eq!(check_text(&text), Ok(()));
        }
    }
}
