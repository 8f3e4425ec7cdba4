//! Where a wrong setting stands in the experiment's file.

use fullview_lab::{Experiment, ExperimentError, PathStep};
use serde_json::Value;

use super::kinds::first_set;
use crate::error::{BenchError, WrongSetting};
use crate::settings::Settings;

/// The variant and the family whose settings are checked.
pub struct SettingPlace<'e> {
    pub experiment: &'e Experiment<Settings>,
    pub variant: usize,
    pub family: usize,
}

impl SettingPlace<'_> {
    /// Refuses the family's name.
    pub fn refuse_family(&self, error: &BenchError) -> ExperimentError {
        let at = [PathStep::Key("families"), PathStep::Item(self.family)];
        self.experiment.refuse(&at, error.to_string())
    }

    /// The same error with the place of the setting that is wrong, if it is about one.
    pub fn placed(&self, error: BenchError) -> BenchError {
        let BenchError::Setting(wrong) = error else { return error };
        match self.place(&wrong) {
            Ok(place) => {
                let place: Vec<PathStep<'_>> = place.iter().map(Step::as_path).collect();
                self.experiment.refuse(&place, wrong.to_string()).into()
            }
            Err(error) => BenchError::Settings(error),
        }
    }

    /// Where the setting has its value from: the variant goes before what all have, and in each the traffic of the family's
    /// stream before that of all streams.
    fn place(&self, wrong: &WrongSetting) -> Result<Vec<Step>, serde_json::Error> {
        let variant = &self.experiment.variants[self.variant].set;
        let of_variant = [Step::Key("variants".into()), Step::Item(self.variant), Step::Key("set".into())];
        let of_all = [Step::Key("subject".into())];
        let sources: [(Value, &[Step]); 2] = [
            (serde_json::to_value(variant)?, &of_variant),
            (serde_json::to_value(&self.experiment.subject)?, &of_all),
        ];
        let keys = [self.of_stream(wrong.keys), Some(wrong.keys.to_vec())];
        let places = keys.iter().flatten().flat_map(|keys| {
            let set = |(written, below): &(Value, &[Step])| {
                first_set(written, keys).map(|_| [below, &*steps(keys)].concat())
            };
            sources.iter().filter_map(set).collect::<Vec<_>>()
        });
        Ok(places.into_iter().next().unwrap_or_else(|| [&of_all, &*steps(wrong.keys)].concat()))
    }

    /// The keys of a setting of traffic in the family's stream.
    fn of_stream<'k>(&'k self, keys: &[&'k str]) -> Option<Vec<&'k str>> {
        let (_, stream) = self.experiment.families[self.family].name.split_once('.')?;
        let (_, below) = keys.split_first().filter(|(first, _)| **first == "traffic")?;
        Some([&["streams", stream], below].concat())
    }
}

/// A step of a path that owns its key.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(usize),
}

impl Step {
    fn as_path(&self) -> PathStep<'_> {
        match self {
            Step::Key(key) => PathStep::Key(key),
            Step::Item(item) => PathStep::Item(*item),
        }
    }
}

fn steps(keys: &[&str]) -> Vec<Step> {
    keys.iter().map(|key| Step::Key((*key).to_owned())).collect()
}
