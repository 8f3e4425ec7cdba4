//! The width of the terminal.

use std::io::IsTerminal;

/// Returns the columns inside the frame: the value of the environment variable `COLUMNS`, else the width of the terminal
/// minus the frame. Returns `None` if standard output is not a terminal, or one without a usable width.
pub(super) fn plot_width() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let variable = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || {
        rustix::termios::tcgetwinsize(&stdout).ok().and_then(|size| usize::from(size.ws_col).checked_sub(2))
    };
    variable.filter(possible).or_else(measured).filter(possible)
}

fn possible(width: &usize) -> bool {
    super::style::WIDTHS.contains(width)
}
