//! Loads routing tables from files, with a progress bar.

use std::path::Path;

use fullview_table::Table;
use fullview_table::feed::{self, FeedError, Loaded, NextHopModel, Options};

use crate::progress;

/// Loads the table of a file of any format that `fullview_table::feed` knows.
pub fn from_file(path: &Path, next_hops: NextHopModel) -> Result<Table, FeedError> {
    Ok(load_feed(path, next_hops)?.table)
}

/// Loads a file as [`from_file`] does, and returns the report about the file too.
pub fn load_feed(path: &Path, next_hops: NextHopModel) -> Result<Loaded, FeedError> {
    let bar = progress::bytes(&path.display().to_string());
    let on_progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let options = Options { next_hops, on_progress: Some(&on_progress), ..Options::default() };
    let loaded = feed::load(path, &options);
    bar.finish_and_clear();
    loaded
}
