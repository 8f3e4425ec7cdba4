//! The comparison of a set with the first one: ministat's t test with pooled variances.

use super::number::general;
use super::style::Style;
use crate::stats::Description;

/// The lines under a set's row of the table.
pub(super) fn lines(set: &Description, reference: &Description, style: &Style) -> String {
    let confidence = style.confidence;
    let (n, m) = (set.n as f64, reference.n as f64);
    let t = confidence.critical(set.n + reference.n - 2);
    let pooled = (squares(set) + squares(reference)).sqrt() / (n + m - 2.0).sqrt();
    let difference = set.mean - reference.mean;
    let error = t * pooled * (1.0 / n + 1.0 / m).sqrt();
    let percent = confidence.percent();
    if difference.abs() <= error {
        return format!("No difference proven at {percent:.1}% confidence\n");
    }
    let percents = 100.0 / reference.mean;
    format!(
        "Difference at {percent:.1}% confidence\n\t{} +/- {}\n\t{}% +/- {}%\n\t(Student's t, pooled s = {})\n",
        general(difference, 6),
        general(error, 6),
        general(difference * 100.0 / reference.mean, 6),
        general(
            if style.exact_reference { error } else { t * ratio_deviation(set, reference) } * percents,
            6
        ),
        general(pooled, 6),
    )
}

/// Standard error of the ratio of the two means, in units of the reference mean. It comes from the delta method, to first
/// order, with the variances pooled after the reference has been scaled to the mean of the set.
fn ratio_deviation(set: &Description, reference: &Description) -> f64 {
    let (n, m) = (set.n as f64, reference.n as f64);
    let ratio = set.mean * set.mean / (reference.mean * reference.mean);
    let scaled = squares(set) + squares(reference) * ratio;
    (scaled * (n + m) / (n * m * (n + m - 2.0))).sqrt()
}

/// Sum of the squared deviations from the mean.
fn squares(set: &Description) -> f64 {
    (set.n as f64 - 1.0) * set.stddev * set.stddev
}
