//! The settings of a member that is in another process: which build it is, and the settings of its subject.

use fullview_lab::{Experiment, ExperimentError, PathStep, Variant};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::settings::Settings;

/// Which of the two builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhichBuild {
    /// The other build: a commit before, or another program.
    Before,
    /// The program that measures.
    After,
}

/// The settings of a subject, with the build that serves it. They are written as one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BuildSettings {
    pub build: Option<WhichBuild>,
    pub settings: Settings,
    /// Whether they are those of the hidden copy of the baseline, which no file says.
    pub is_copy: bool,
}

#[derive(Serialize)]
struct WrittenSettings<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<WhichBuild>,
    #[serde(flatten)]
    settings: &'a Settings,
}

impl Serialize for BuildSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenSettings { build: self.build, settings: &self.settings }.serialize(serializer)
    }
}

// By hand, because serde's flatten does not refuse unknown keys.
impl<'de> Deserialize<'de> for BuildSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut table = toml::Table::deserialize(deserializer)?;
        let build =
            table.remove("build").map(WhichBuild::deserialize).transpose().map_err(D::Error::custom)?;
        let settings = Settings::deserialize(table).map_err(D::Error::custom)?;
        Ok(Self { build, settings, is_copy: false })
    }
}

impl fullview_lab::Settings for BuildSettings {
    fn over(self, base: &Self) -> Self {
        let build = self.build.or(base.build);
        Self { build, settings: self.settings.laid_over(&base.settings), is_copy: self.is_copy }
    }

    fn of_copy(self) -> Self {
        Self { is_copy: true, ..self }
    }
}

/// Refuses routers and lookups that are processes of their own. Their program is the same whichever build starts it, also that
/// of our own router, which is built from the checkout of the script.
pub fn refuse_peers(experiment: &Experiment<Settings>) -> Result<(), ExperimentError> {
    let place = |variant| vec![PathStep::Key("variants"), PathStep::Item(variant), PathStep::Key("set")];
    let variants = experiment.variants.iter().enumerate();
    let sets = variants.map(|(variant, Variant { set, .. })| (place(variant), set));
    for (place, set) in sets.chain([(vec![PathStep::Key("subject")], &experiment.subject)]) {
        if let Some(group) = group_with_peer(set) {
            let path = [place, vec![PathStep::Key(group), PathStep::Key("peer")]].concat();
            return Err(experiment.refuse(&path, PROGRAMS_THAT_ARE_THE_SAME.into()));
        }
    }
    Ok(())
}

/// The table of the settings that names a program.
fn group_with_peer(set: &Settings) -> Option<&'static str> {
    let peers = [("load", &set.load.peer), ("lookup", &set.lookup.peer)];
    peers.into_iter().find(|(_, peer)| peer.is_some()).map(|(group, _)| group)
}

const PROGRAMS_THAT_ARE_THE_SAME: &str = "--against would compare this program with itself, because both builds start the same \
                                          one: run `fullview bench` without --against in a checkout of each commit, and \
                                          compare the two results folders by `fullview compare`";

/// The experiment that compares two builds: each variant of `experiment` is two, served by the build before and by this one,
/// and the second is compared with the first.
pub fn against(experiment: &Experiment<Settings>, before: &str) -> Experiment<BuildSettings> {
    let subject = BuildSettings { settings: experiment.subject.clone(), ..BuildSettings::default() };
    let variants = experiment.variants.iter().flat_map(|variant| both(variant, before)).collect();
    let mut both = experiment.with_settings(subject, variants);
    both.title = format!("{}: this build against {before}", experiment.title);
    let name = |variant: &Variant<Settings>, build| name_of(&variant.name, build);
    both.analysis.baseline = Some(name(&experiment.variants[experiment.baseline()], WhichBuild::Before));
    let pair = |variant| [name(variant, WhichBuild::After), name(variant, WhichBuild::Before)];
    both.analysis.comparisons = Some(experiment.variants.iter().map(pair).collect());
    both
}

fn both(variant: &Variant<Settings>, before: &str) -> [Variant<BuildSettings>; 2] {
    [(WhichBuild::Before, before), (WhichBuild::After, "this build")].map(|(build, label)| Variant {
        curve: None,
        at: None,
        name: name_of(&variant.name, build),
        label: format!("{} ({label})", variant.label),
        model_of: variant.model_of.clone(),
        set: BuildSettings { build: Some(build), settings: variant.set.clone(), is_copy: false },
    })
}

fn name_of(variant: &str, build: WhichBuild) -> String {
    match build {
        WhichBuild::Before => format!("{variant}-before"),
        WhichBuild::After => format!("{variant}-after"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = r#"
title = "Which table?"
families = ["inet"]
seed = 1
window = { warmup_s = 0.1, measure_s = 0.1 }
subject = { traffic.flows = 7 }
variants = [
    { name = "radix", label = "radix", set.router.algorithm = "radix" },
    { name = "dxr", label = "DXR", set.router.algorithm = "dxr" },
]
analysis.baseline = "dxr"
"#;

    #[test]
    fn every_variant_is_compared_with_itself_in_the_other_build() {
        let experiment = against(&Experiment::parse("question.toml", QUESTION).unwrap(), "v1");
        experiment.check().unwrap();
        let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["radix-before", "radix-after", "dxr-before", "dxr-after"]);
        assert_eq!(experiment.baseline(), 2);
        let pairs = experiment.comparisons();
        let pairs: Vec<_> = pairs.iter().map(|pair| (pair.variant, pair.against)).collect();
        assert_eq!(pairs, [(1, 0), (3, 2)]);
        assert_eq!(experiment.variants[1].label, "radix (this build)");
        assert_eq!(experiment.variants[0].label, "radix (v1)");
    }

    #[test]
    fn routers_and_lookups_that_are_processes_are_refused_where_they_stand() {
        let refused = |text: &str| {
            refuse_peers(&Experiment::parse("question.toml", text).unwrap())
                .map_err(|error| error.to_string())
        };
        assert_eq!(refused(QUESTION), Ok(()));
        let peer = "load.peer = { program = \"peers/fullview/run.sh\", inet = \"fullview_dir18_inet:32\" }";
        let of_one = refused(&QUESTION.replace("set.router.algorithm = \"dxr\"", &format!("set.{peer}")));
        let error = of_one.unwrap_err();
        assert!(error.starts_with("question.toml:9:52: --against would compare"), "{error}");
        let of_all = refused(&QUESTION.replace("traffic.flows = 7", peer)).unwrap_err();
        assert!(
            of_all.starts_with("question.toml:6:25: ") && of_all.contains("fullview compare"),
            "{of_all}"
        );
        let lookup = "lookup.peer = { program = \"peers/rust/run.sh\", inet = \"ip_network_table:32\" }";
        let of_one = refused(&QUESTION.replace("set.router.algorithm = \"dxr\"", &format!("set.{lookup}")));
        let error = of_one.unwrap_err();
        assert!(error.starts_with("question.toml:9:54: --against would compare"), "{error}");
        let of_all = refused(&QUESTION.replace("traffic.flows = 7", lookup)).unwrap_err();
        assert!(of_all.starts_with("question.toml:6:27: "), "{of_all}");
    }

    #[test]
    fn the_settings_are_read_as_they_are_written_and_unknown_keys_are_refused() {
        let experiment = against(&Experiment::parse("question.toml", QUESTION).unwrap(), "v1");
        let settings = &experiment.variants[3].set;
        let written = toml::to_string(settings).unwrap();
        assert_eq!(toml::from_str::<BuildSettings>(&written).unwrap(), *settings, "{written}");
        assert!(toml::from_str::<BuildSettings>("algorithm = 3").is_err());
        assert!(toml::from_str::<BuildSettings>("build = \"between\"").is_err());
    }
}
