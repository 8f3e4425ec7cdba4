//! How wide a plot the terminal shows.

use std::io::IsTerminal;

/// Columns inside the frame: what the environment variable `COLUMNS` says, else the terminal's width less the frame.
/// `None` when standard output is not a terminal, or is one that shows no plot.
pub(super) fn plot_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || {
        rustix::termios::tcgetwinsize(&stdout).ok().and_then(|size| usize::from(size.ws_col).checked_sub(2))
    };
    said.filter(possible).or_else(seen).filter(possible)
}

fn possible(width: &usize) -> bool {
    super::WIDTHS.contains(width)
}
