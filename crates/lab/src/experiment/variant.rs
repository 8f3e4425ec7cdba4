//! A variant and its settings.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The settings of a subject. Every field is optional, so that a variant names only what it changes.
pub trait Settings: DeserializeOwned + Serialize + Clone + Default {
    /// Merges these settings with `base`: a field set here takes precedence over the same field of `base`.
    fn over(self, base: &Self) -> Self;

    /// The same settings for the hidden copy of the baseline, which a bench may have to tell from a variant with equal
    /// settings. Most do not.
    fn of_copy(self) -> Self {
        self
    }
}

/// One of the variants that an experiment compares.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(serialize = "S: Serialize", deserialize = "S: DeserializeOwned + Default")
)]
pub struct Variant<S> {
    /// Short name for the command line and the records.
    pub name: String,
    /// The name in reports and graphs. Where the variant is a model, the default says of what.
    #[serde(default)]
    pub label: String,
    /// The system that the variant stands for and that does not run, so that no report claims its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_of: Option<String>,
    /// The curve of the second graph that the variant is a point of, and where on its axis it lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curve: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The settings that this variant changes.
    #[serde(default)]
    pub set: S,
}

impl<S> Variant<S> {
    /// What a sentence calls the variant: its name, or what it is a model of.
    pub fn spoken(&self) -> &str {
        if self.model_of.is_some() { &self.label } else { &self.name }
    }

    /// Gives a model without a label the one that says of what.
    pub(super) fn name_model(&mut self) {
        if let Some(system) = self.model_of.as_ref().filter(|_| self.label.is_empty()) {
            self.label = format!("{MODEL_OF} {system}");
        }
    }

    /// Whether the label of a model says that it is one.
    pub(super) fn says_model(&self) -> bool {
        self.model_of.is_none() || self.label.contains("model of")
    }
}

/// How the default label of a model begins.
const MODEL_OF: &str = "fullview's model of";
