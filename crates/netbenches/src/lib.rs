//! Result directories of netbenches, the forwarding benchmarks of FreeBSD: file formats → series → checks → report.
//!
//! `name`, `info`, `pktgen`, `equilibrium`, `callgraph`, `plotted`, `block` and `claim` read one format each; `folder` applies
//! them and names what it skips; `series`, `published`, `reproduction`, `plot_check` and `trend` check; `import` is all of it,
//! and `report` writes it.

mod answer;
mod block;
mod callgraph;
mod claim;
mod equilibrium;
mod error;
mod export;
mod folder;
mod graph;
mod import;
mod info;
mod markdown;
mod name;
mod pktgen;
mod plot_check;
mod plotted;
mod published;
mod report;
mod reproduction;
mod series;
mod trend;

pub use answer::sentences;
pub use block::{PublishedBlock, blocks};
pub use callgraph::CallGraph;
pub use claim::{Claim, claims};
pub use error::{ImportError, LineError, Problem};
pub use export::{ExportSeries, export};
pub use folder::{Column, RawRun};
pub use import::{Import, SeriesComparison};
pub use info::Info;
pub use name::RunName;
pub use published::{DifferingMedian, PublishedMedians};
pub use report::{json, write};
pub use reproduction::{Reproduced, Reproduction};
pub use series::Series;

/// The parsers of the formats, each of one text.
pub mod parse {
    pub use crate::callgraph::parse as call_graph;
    pub use crate::equilibrium::parse as equilibrium;
    pub use crate::info::parse as info;
    pub use crate::pktgen::parse as pktgen;
}
