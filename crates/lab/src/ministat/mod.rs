//! ministat, the statistics utility of FreeBSD, with byte-identical output.
//!
//! Two decades of performance claims in the BSD world have ministat's form, so the lab prints it too, and old series can
//! be compared with new ones by eye or with `diff`. The form is that of FreeBSD since 2020: the median of an even set is
//! the mean of the two middle values, and the error of the relative difference is that of a ratio (delta method).
//!
//! [`crate::stats`] answers more: ministat pools the variances, compares every set with the first one without correcting
//! for the number of comparisons, and its "no difference proven" does not mean "equal".

mod command;
mod comparison;
mod confidence;
mod error;
mod number;
mod output;
mod parse;
mod plot;
mod set;
mod style;
mod terminal;

pub use command::{main, run};
pub use confidence::Confidence;
pub use error::MinistatError;
pub use number::general;
pub use output::render;
pub use parse::{ParseError, parse};
pub use set::{FEWEST_VALUES, MOST_SETS, Set, split};
pub use style::{DEFAULT_WIDTH, Style, WIDTHS};
