//! The widths of the intervals beside those of other sequential methods: the figures in the documentation of
//! `fullview_lab::stats`.

use super::blocks::{LOOKS, RULES};
use fullview_lab::stats::{Observed, judge};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

const COMPARISONS: usize = 6;
/// Error rate of one comparison.
const ALPHA: f64 = 0.05 / COMPARISONS as f64;

/// Half the width of the interval of six comparisons at each look, in standard deviations of one block's observation.
fn union_bound() -> Vec<f64> {
    let half_width = |blocks: &u32| {
        let (n, steps) = (f64::from(*blocks), 0..*blocks);
        let scale = ((n - 1.0) / (n * (n * n - 1.0) / 12.0)).sqrt();
        let whole = steps.map(|block| scale * (f64::from(block) - (n - 1.0) / 2.0)).collect();
        let mut comparisons = vec![Observed::default(); COMPARISONS];
        comparisons[0] = Observed { whole, share: None };
        let judged = judge(&comparisons, &RULES)[0].expect("a look");
        (judged.whole.high.ln_1p() - judged.whole.low.ln_1p()) / 2.0
    };
    LOOKS.iter().map(half_width).collect()
}

/// The upper point of Student's t for a mean of `blocks`, divided by the root of their number.
fn student(tail: f64, blocks: u32) -> f64 {
    let t = StudentsT::new(0.0, 1.0, f64::from(blocks - 1)).expect("two blocks or more");
    t.inverse_cdf(1.0 - tail) / f64::from(blocks).sqrt()
}

/// Those values of a mean that the t statistic's mixture martingale does not reject. The ratio of its densities, where
/// the mean in standard deviations is normally distributed around 0 with variance `v` and where it is 0, is
/// g^(−1/2) ((1 + x) / (1 + x / g))^(n/2), with g = 1 + n v and x = t² / (n − 1); it stays below 1 / alpha.
fn mixture(v: f64, blocks: u32) -> f64 {
    let n = f64::from(blocks);
    let g = 1.0 + n * v;
    let a = (g.sqrt() / ALPHA).powf(2.0 / n);
    let x = if a < g { (a - 1.0) / (1.0 - a / g) } else { f64::INFINITY };
    ((n - 1.0) * x / n).sqrt()
}

/// The half-widths of Lan and DeMets with a maximum of 40 blocks: the boundaries of a normal process by the recursion of
/// P. Armitage, C. K. McPherson and B. C. Rowe (J. R. Statist. Soc. A 132, 1969), their tails taken for Student's t.
fn lan_demets(spent: impl Fn(f64) -> f64) -> Vec<f64> {
    let mut process = Process { blocks: 0.0, step: 1.0, density: vec![(0.0, 1.0)] };
    let mut before = 0.0;
    let boundary = |&blocks: &u32| {
        let now = spent(f64::from(blocks) / 40.0);
        let z = process.advance(f64::from(blocks), now - before);
        before = now;
        student(Normal::standard().sf(z), blocks)
    };
    LOOKS.iter().map(boundary).collect()
}

/// The sum of normal variates that has not crossed a boundary yet, on a grid.
struct Process {
    blocks: f64,
    step: f64,
    density: Vec<(f64, f64)>,
}

impl Process {
    /// Returns the boundary that this probability crosses at the next look, and goes on inside it.
    fn advance(&mut self, blocks: f64, probability: f64) -> f64 {
        let spread = (blocks - self.blocks).sqrt();
        let normal = Normal::standard();
        let (mut low, mut high) = (0.0, 15.0);
        for _ in 0..40 {
            let z = f64::midpoint(low, high);
            let reach = z * blocks.sqrt();
            let crosses = |(at, density): &(f64, f64)| {
                density * self.step * (normal.sf((reach - at) / spread) + normal.cdf((-reach - at) / spread))
            };
            if self.density.iter().map(crosses).sum::<f64>() > probability { low = z } else { high = z }
        }
        self.continue_within(low * blocks.sqrt(), blocks);
        low
    }

    fn continue_within(&mut self, reach: f64, blocks: f64) {
        const POINTS: u32 = 200;
        let variance = blocks - self.blocks;
        let scale = self.step / (std::f64::consts::TAU * variance).sqrt();
        let at = |point: u32| reach * (2.0 * (f64::from(point) + 0.5) / f64::from(POINTS) - 1.0);
        let density = |to: f64| {
            let from = self.density.iter();
            scale
                * from
                    .map(|(from, density)| density * (-(to - from).powi(2) / 2.0 / variance).exp())
                    .sum::<f64>()
        };
        self.density = (0..POINTS).map(at).map(|to| (to, density(to))).collect();
        (self.blocks, self.step) = (blocks, 2.0 * reach / f64::from(POINTS));
    }
}

fn are(widths: &[f64], expected: [f64; 4]) {
    let shown = [0, 2, 4, 6].map(|look| widths[look]);
    for (width, expected) in shown.iter().zip(expected) {
        assert!((width - expected).abs() < 0.006, "{shown:?}");
    }
}

/// At 5, 10, 20 and 40 blocks.
#[test]
fn the_widths_are_as_documented() {
    are(&union_bound(), [2.63, 1.60, 0.99, 0.66]);
    are(&LOOKS.map(|blocks| student(ALPHA / 2.0, blocks)), [2.17, 1.06, 0.66, 0.44]);
    are(&LOOKS.map(|blocks| mixture(4.0, blocks)), [4.76, 1.66, 0.99, 0.66]);
    are(&LOOKS.map(|blocks| mixture(25.0, blocks)), [3.96, 1.80, 1.07, 0.71]);
    are(
        &lan_demets(|part| ALPHA * (1.0 + (std::f64::consts::E - 1.0) * part).ln()),
        [3.39, 1.48, 0.81, 0.51],
    );
    let normal = Normal::standard();
    let root = normal.inverse_cdf(1.0 - ALPHA / 2.0);
    let brien_fleming = lan_demets(|part| 2.0 * normal.sf(root / part.sqrt()));
    assert!(brien_fleming[0] > 100.0, "{brien_fleming:?}");
    are(&[&[0.0], &brien_fleming[1..]].concat(), [0.0, 4.66, 1.03, 0.44]);
}
