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

pub fn export(series: &[ExportSeries], folder: &Path) -> Result<(), ImportError> {
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
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    write_files(folder, &files)
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
