//! The configuration file of `fullview forward --config`, in TOML. An unknown key, a wrong type or an impossible value is
//! refused with its line and column.
//!
//! [`sections`] has the file as it is written, [`check()`] refuses what does not fit together, and `to_options` makes
//! options of it. A reload changes [`crate::options::LiveOptions`] only; a difference in any other key
//! ([`frozen_differences`]) is refused, and needs a restart.

mod check;
mod error;
mod frozen;
mod names;
pub mod sections;
mod standalone;
#[cfg(test)]
mod tests;
mod to_options;

use std::path::Path;

use crate::text_file;
pub use check::check;
pub use error::{ConfigError, PlanError};
pub use frozen::frozen_differences;
pub use sections::RouterConfig;
pub use to_options::{filter_options, live_options, operations_options, router_options};

/// Reads and checks a file.
pub fn load(path: &Path) -> Result<RouterConfig, ConfigError> {
    let text = text_file::read(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    parse(&text).map_err(|error| in_file(path, error))
}

/// Parses and checks the text of a file.
pub fn parse(text: &str) -> Result<RouterConfig, ConfigError> {
    let config: RouterConfig = toml::from_str(text)?;
    check(&config).map_err(|error| error.with_place(text))?;
    Ok(config)
}

/// The error of a configuration, with the name of its file.
pub fn in_file(path: &Path, error: ConfigError) -> ConfigError {
    ConfigError::InFile { path: path.to_owned(), source: Box::new(error) }
}
