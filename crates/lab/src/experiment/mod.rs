//! An experiment, read from TOML: the variants that are compared, the conditions, and the rules of the verdict.
//!
//! The lab reads everything except the settings of the subject, which are a type of the program (`S`). That type refuses
//! unknown keys, and the error names the place in the file like any other error.
//!
//! ```
//! use fullview_lab::Experiment;
//!
//! # fn main() -> Result<(), fullview_lab::ExperimentError> {
//! let text = r#"
//! title = "Is the new table faster?"
//! runs = 10
//! seed = 7
//! families = [{ name = "inet", title = "IPv4" }, { name = "inet6", title = "IPv6" }]
//! window = { warmup_s = 1.0, measure_s = 10.0 }
//! subject = { flows = 5000 }              # for all variants
//!
//! [[variants]]
//! name = "before"
//! label = "the old table"
//!
//! [[variants]]
//! name = "after"
//! label = "the new table"
//! set = { table = "new" }                 # what this variant changes
//!
//! [analysis]
//! margin = 0.02                           # differences below 2 % do not matter
//! "#;
//! let experiment = Experiment::<toml::Table>::parse("experiment.toml", text)?;
//! assert_eq!(experiment.comparisons().len(), 1);
//! assert_eq!(experiment.runs, fullview_lab::Runs::Blocks(10));
//! # Ok(())
//! # }
//! ```

mod analysis;
mod check;
mod definition;
mod difference;
mod error;
mod family;
mod length;
mod published;
mod variant;
mod window;

pub use analysis::Analysis;
pub use definition::{Comparison, Experiment};
pub(crate) use difference::leaves;
pub use error::{ExperimentError, PathStep};
pub use family::Family;
pub use length::Runs;
pub use published::{Published, PublishedFigure};
pub use variant::{Settings, Variant};
pub use window::Window;
