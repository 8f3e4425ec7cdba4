//! The content of a graph: groups of bars with their texts.

#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: String,
    /// What the left axis counts.
    pub y_label: String,
    /// A second line of the label of the left axis: which statistics the bars show.
    pub y_detail: String,
    /// The text under the graph: the conditions.
    pub notes: String,
    /// The names of the bars of each group, in order. Several of them have a legend.
    pub families: Vec<String>,
    /// What the pale extensions of the bars are; for the legend.
    pub extension: Option<String>,
    /// One group for each variant.
    pub groups: Vec<Group>,
    /// Whether the right axis shows the rate as Ethernet throughput with simple IMIX.
    pub imix_axis: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The text under the bars.
    pub label: String,
    /// One entry for each family: a bar, or the reason why there is none.
    pub bars: Vec<Result<Bar, &'static str>>,
}

/// A bar to the median with a whisker from the minimum to the maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    pub min: f64,
    pub median: f64,
    pub max: f64,
    /// The end of a pale extension of the bar; infinite if it is unknown.
    pub extension: Option<f64>,
}

/// An extension reaches at most this many times as high as the highest bar, so that the bars stay readable.
const HIGHEST_EXTENSION: f64 = 1.6;

impl Chart {
    pub(super) fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| group.bars.iter().flatten())
    }

    /// The largest value of a bar, without the extensions.
    pub(super) fn largest(&self) -> f64 {
        self.bars().map(|bar| bar.max).fold(0.0, f64::max)
    }

    /// The label of the right axis.
    pub(super) fn imix_label(&self) -> &'static str {
        match self.extension {
            Some(_) => "Theoretical Ethernet throughput of the whole loop with simple IMIX",
            None => "Theoretical Ethernet throughput with simple IMIX",
        }
    }

    /// The height of the highest extension that is drawn, or of the highest bar.
    pub(super) fn highest(&self) -> f64 {
        let extensions = self.bars().filter_map(|bar| bar.extension);
        extensions.fold(self.largest(), f64::max).min(HIGHEST_EXTENSION * self.largest())
    }
}
