//! The reasons why ministat refuses sets.

/// Why sets cannot be printed.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum MinistatError {
    /// There is no set.
    #[error("No datasets: give at least one")]
    NoSets,
    /// There are more sets than symbols.
    #[error("Too many datasets.")]
    TooManySets,
    /// A set has fewer than [`FEWEST_VALUES`](super::FEWEST_VALUES) values.
    #[error("Dataset {label} must contain at least 3 data points")]
    TooFewValues {
        /// Label of the set.
        label: String,
    },
    /// A set contains a NaN, an infinity, or values whose squared deviations exceed the range of a double.
    #[error("Dataset {label} has values that are not finite, or too large to square: use a larger unit")]
    NotFinite {
        /// Label of the set.
        label: String,
    },
    /// The width is outside [`WIDTHS`](super::WIDTHS).
    #[error("The plot cannot be {width} columns wide: give a width from 2 to 65535")]
    Width {
        /// Columns asked for.
        width: usize,
    },
}
