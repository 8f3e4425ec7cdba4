//! All that is known of a result directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fullview_lab::stats::{
    Contrast, Effect, Judgement, Verdict, judge_runs, median, runs_needed, warnings_of_runs,
};
use serde::{Serialize, Serializer};

use crate::block::blocks;
use crate::callgraph::CallGraph;
use crate::claim::{Claim, claims};
use crate::error::ImportError;
use crate::folder::Folder;
use crate::plot_check::mistake;
use crate::reproduction::{Reproduction, reproduce};
use crate::series::{Series, counted, series};

/// The margin and the error rate of the lab.
pub const MARGIN: f64 = 0.01;
pub const ALPHA: f64 = 0.05;

#[derive(Debug, Serialize)]
pub struct Import {
    #[serde(serialize_with = "shown")]
    pub folder: PathBuf,
    pub title: String,
    pub conditions: Vec<String>,
    pub series: Vec<Series>,
    pub comparisons: Vec<SeriesComparison>,
    pub blocks: Vec<Reproduction>,
    pub claims: Vec<Claim>,
    pub graphs: Vec<(String, CallGraph)>,
    pub times: Vec<String>,
    pub warnings: Vec<String>,
    pub skipped: Vec<String>,
}

/// A series against the first one of its family.
#[derive(Debug, Serialize)]
pub struct SeriesComparison {
    pub family: String,
    pub variant: String,
    pub against: String,
    /// Both carried all that the generator sent, in all runs with a log of it: the difference is not one of routers.
    pub generator_limited: bool,
    pub difference: Option<Effect>,
    pub verdict: Option<Verdict>,
    /// Runs of each series until the interval reaches no farther than the margin.
    pub runs_needed: Option<u32>,
}

/// Names of folders need not be text.
fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl Import {
    pub fn read(path: &Path) -> Result<Import, ImportError> {
        let folder = Folder::read(path)?;
        let series = series(&folder);
        if series.is_empty() {
            let skipped = folder.skipped.iter().map(|line| format!("\n  {line}")).collect();
            return Err(ImportError::NoSeries { path: path.into(), skipped });
        }
        let (published, beside) = (blocks(&folder.readme), Folder::columns_beside(path));
        let (title, conditions) = opening(&folder.readme, path);
        let times = folder
            .infos
            .iter()
            .flat_map(|info| info.times.iter().map(|time| format!("{}: {time}", info.series())));
        Ok(Import {
            folder: path.into(),
            title,
            conditions,
            comparisons: comparisons(&series),
            blocks: published.iter().map(|block| reproduce(block, &folder.columns, &beside)).collect(),
            claims: published.iter().flat_map(claims).collect(),
            times: times.collect(),
            warnings: series
                .iter()
                .flat_map(warnings)
                .chain(folder.plotted.iter().filter_map(|row| mistake(row, &series)))
                .collect(),
            series,
            graphs: folder.graphs,
            skipped: folder.skipped,
        })
    }

    /// The families in the order of their names.
    pub fn families(&self) -> BTreeSet<&str> {
        self.series.iter().map(|series| series.family.as_str()).collect()
    }
}

/// The title of a README, which is the name of its folder if it has none, and the list under it.
fn opening(readme: &str, path: &Path) -> (String, Vec<String>) {
    let mut lines = readme.lines().map(str::trim).skip_while(|line| line.is_empty());
    let title = lines.next().map(|line| line.trim_matches(['#', ':', ' '])).filter(|title| !title.is_empty());
    let title = title.map_or_else(|| name(path), str::to_owned);
    let list = lines.take_while(|line| !line.is_empty());
    (title, list.filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect())
}

/// A path such as `.` has no name of its own.
fn name(path: &Path) -> String {
    let whole = path.canonicalize();
    let path = whole.as_deref().unwrap_or(path);
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn comparisons(series: &[Series]) -> Vec<SeriesComparison> {
    let first =
        |of: &Series| series.iter().find(|other| (&other.family, &other.unit) == (&of.family, &of.unit));
    let pairs = series.iter().filter_map(|variant| Some((first(variant)?, variant)));
    let pairs: Vec<(&Series, &Series)> = pairs.filter(|(base, variant)| base.name != variant.name).collect();
    let contrasts: Vec<Contrast<'_>> =
        pairs.iter().map(|(base, variant)| Contrast::independent(&base.values, &variant.values)).collect();
    let judged = judge_runs(&contrasts, MARGIN, ALPHA);
    let result =
        |(((base, variant), contrast), judged): ((&(&Series, &Series), &Contrast<'_>), Option<_>)| {
            let generator_limited = [base, variant].iter().all(|series| series.is_generator_limited());
            let interrupted = [base, variant].iter().any(|series| series.interrupted() > 0);
            let is_judged = !generator_limited && !interrupted;
            let judged = judged.filter(|_: &Judgement| is_judged);
            SeriesComparison {
                family: variant.family.clone(),
                variant: variant.variant.clone(),
                against: base.variant.clone(),
                generator_limited,
                difference: judged.map(|judged| judged.whole),
                verdict: judged.map(|judged| judged.verdict),
                runs_needed: runs_needed(contrast, MARGIN, ALPHA, pairs.len()).filter(|_| is_judged),
            }
        };
    pairs.iter().zip(&contrasts).zip(judged).map(result).collect()
}

/// What is remarkable about the runs of one series.
fn warnings(series: &Series) -> Vec<String> {
    let name = &series.name;
    let runs = warnings_of_runs(&series.values).into_iter().map(|warning| format!("{name}: {warning}"));
    let drift = series.trend.filter(|p| *p < ALPHA).map(|p| {
        format!("{name}: the runs rise or fall in their order (Kendall's test, p = {p:.4}): compare only what took turns")
    });
    let within = series.drifts.iter().filter(|drift| drift.abs() > MARGIN).count();
    let within = (within > 0).then(|| {
        format!(
            "{name}: {within} of {} runs drift by more than 1 % from their first to their last quarter",
            series.drifts.len()
        )
    });
    let order = series.medians.by_name.then(|| {
        format!(
            "{name}: the lines of its column are in the order of the names 1, 10, 2, … and not of the runs"
        )
    });
    let renamed =
        series.column.as_ref().filter(|column| *column != name).map(|column| {
            format!("{name}: its medians are published as {column}: the same runs have two names")
        });
    let unequal = series.medians.unequal.map(|[medians, runs]| {
        format!(
            "{name}: its column has {medians} medians, and there are logs of {runs} runs: they cannot be compared"
        )
    });
    runs.chain(drift)
        .chain(within)
        .chain(order)
        .chain(unequal)
        .chain(renamed)
        .chain(generator_limit(series))
        .chain(silence(series))
        .collect()
}

fn silence(series: &Series) -> Option<String> {
    let Series { name, silent, .. } = series;
    let (interrupted, seconds) = (series.interrupted(), silent.iter().sum::<usize>());
    (interrupted > 0).then(|| {
        format!(
            "{name}: {interrupted} of {} runs have seconds without packets ({seconds} in all), which their values leave out, as \
             those of netbenches do: the series is not compared",
            silent.len()
        )
    })
}

fn generator_limit(series: &Series) -> Option<String> {
    let Series { name, generator_limited, offered, .. } = series;
    let sent = median(offered)? / 1e6;
    (*generator_limited > 0).then(|| {
        format!(
            "{name}: {generator_limited} of {} with a log of the generator carried all that was sent, {sent:.2} Mpps: the \
             generator or the wire was the limit, and not the router",
            counted(offered.len())
        )
    })
}
