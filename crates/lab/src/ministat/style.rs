//! The options of the output.

use super::confidence::Confidence;

/// Which parts of the output are printed, and how wide the plot is.
#[derive(Debug, Clone, PartialEq)]
pub struct Style {
    /// Level of the test against the first set.
    pub confidence: Confidence,
    /// `-s`: one bar for each set under the plot instead of one bar in which later sets overwrite earlier ones.
    pub separate_bars: bool,
    /// `-w`: columns of the plot without its frame, within [`WIDTHS`]; `None` means [`DEFAULT_WIDTH`].
    pub width: Option<usize>,
    /// `-A` and `-n` set this to `false`: no plot.
    pub plot: bool,
    /// `-n` sets this to `false`: no comparison with the first set.
    pub compare: bool,
    /// `-q` sets this to `false`: neither the labels of the sets nor the header of the table.
    pub headers: bool,
    /// The error of the relative difference as before 2020, when ministat took the mean of the reference as exact.
    pub exact_reference: bool,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            confidence: Confidence::P95,
            separate_bars: false,
            width: None,
            plot: true,
            compare: true,
            headers: true,
            exact_reference: false,
        }
    }
}

/// Columns of the plot if the output is not a terminal.
pub const DEFAULT_WIDTH: usize = 74;
/// The widths a plot can have. The reference program crashes on a plot of 0 or 1 columns.
pub const WIDTHS: std::ops::RangeInclusive<usize> = 2..=65_535;
