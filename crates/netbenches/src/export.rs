//! Results as netbenches has them: a column of values for each series, and the data and script of a gnuplot graph.

use std::path::Path;

use fullview_lab::stats::Description;

use crate::error::ImportError;
use crate::report::write_files;

#[derive(Debug, Clone, PartialEq)]
pub struct ExportSeries {
    pub variant: String,
    pub family: String,
    pub values: Vec<f64>,
}

impl ExportSeries {
    /// A dot separates variant and family, so the family has none.
    fn name(&self) -> String {
        format!("{}.{}", self.variant, self.family.replace('.', "-"))
    }
}

/// Writes the files into a folder; those that are there already are replaced only by `force`.
pub fn export(series: &[ExportSeries], folder: &Path, force: bool) -> Result<(), ImportError> {
    refuse_equal_names(series)?;
    let described = |series: &ExportSeries| {
        let of = Description::of(&series.values)?;
        Some(format!("{} {} {} {}\n", series.name(), of.median, of.min, of.max))
    };
    let data: String = series.iter().filter_map(described).collect();
    let columns = series.iter().filter(|series| !series.values.is_empty()).map(|series| {
        let lines: String = series.values.iter().map(|value| format!("{value}\n")).collect();
        (format!("{}.pps", series.name()), lines)
    });
    let data = format!("#index median minimum maximum\n{data}");
    let plot = [("gnuplot.data".to_owned(), data), ("gnuplot.plt".to_owned(), PLOT.to_owned())];
    let files: Vec<(String, String)> = columns.chain(plot).collect();
    let there = files.iter().map(|(name, _)| folder.join(name)).find(|path| path.exists());
    if let Some(path) = there.filter(|_| !force) {
        return Err(ImportError::Exists { path });
    }
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    write_files(folder, &files)
}

/// Families whose names differ in a dot and a hyphen would have one file.
fn refuse_equal_names(series: &[ExportSeries]) -> Result<(), ImportError> {
    let names: Vec<String> = series.iter().map(ExportSeries::name).collect();
    let equal = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name));
    equal.map_or(Ok(()), |(_, name)| Err(ImportError::EqualNames { name: name.clone() }))
}

const PLOT: &str = "set terminal png truecolor size 1920,1080 font \"Sans,22\" noenhanced
set output 'graph.png'
set yrange [0:*]
set ylabel 'minimum, median, maximum'
set format y '%.1s%c'
set boxwidth 0.6
set style fill solid 0.8
set xtics rotate by -30
plot 'gnuplot.data' using 0:2:xtic(1) with boxes notitle, '' using 0:2:3:4 with yerrorbars linecolor black notitle
";
