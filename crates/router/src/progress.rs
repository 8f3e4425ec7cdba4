//! Progress bars with the time left. They are drawn on standard error, so that standard output holds the result alone.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over the bytes of a file, whose length may become known later.
pub fn bytes(what: &str) -> ProgressBar {
    let bar = ProgressBar::no_length().with_message(what.to_owned());
    bar.set_style(style("{bar:30} {bytes}/{total_bytes}  {eta} left  {msg}"));
    bar
}

/// A bar over the keys of a check, redrawn twice a second.
pub fn keys(what: &str, count: usize) -> ProgressBar {
    let bar = ProgressBar::new(count as u64).with_message(what.to_owned());
    bar.set_style(style("{bar:30} {pos}/{len} keys  {eta} left  {msg}"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A bar over things that take about equally long.
pub fn steps(count: u64) -> ProgressBar {
    let bar = ProgressBar::new(count);
    bar.set_style(style("{bar:30} {pos}/{len}  {eta} left  {msg}"));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A spinner for work whose length is unknown.
pub fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// A bar's style. A template that does not parse gives the default style.
pub fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
