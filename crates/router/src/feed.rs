//! Tables from files, with a progress bar.

use std::path::Path;

use fullview_table::Table;
use fullview_table::feed::{self, Loaded, NextHopModel, Options};

use crate::progress;

/// Loads a file of any known format, with a bar over its bytes.
pub fn from_file(path: &Path, next_hops: NextHopModel) -> anyhow::Result<Table> {
    Ok(load_feed(path, next_hops)?.table)
}

pub fn load_feed(path: &Path, next_hops: NextHopModel) -> anyhow::Result<Loaded> {
    let bar = progress::bytes(&path.display().to_string());
    let on_progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let options = Options { next_hops, on_progress: Some(&on_progress), ..Options::default() };
    let loaded = feed::load(path, &options);
    bar.finish_and_clear();
    Ok(loaded?)
}
