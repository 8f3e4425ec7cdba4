//! How well an algorithm suits a table: as its authors guess, or as measured on this machine.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::addr::{Address, Family};
use crate::rib::Summary;

use super::Algorithm;

/// The source of preferences, numbers from 0 to 255.
#[derive(Clone, Debug, Default)]
pub enum Preferences {
    /// Each algorithm's own [`Algorithm::preference`], FreeBSD's where it has one.
    #[default]
    Guessed,
    /// Preferences that were measured.
    Measured(Arc<Measured>),
}

impl Preferences {
    /// The preference of `module` for such a table. A module that was not measured gets 0, so no measured one loses to
    /// it.
    pub fn of<A: Address>(&self, module: &dyn Algorithm<A>, summary: &Summary) -> u8 {
        match self {
            Preferences::Guessed => module.preference(summary),
            Preferences::Measured(measured) => {
                measured.curve(A::FAMILY, module.name()).map_or(0, |curve| curve.at(summary.prefixes))
            }
        }
    }
}

/// The measured curves, one for each family and algorithm.
#[derive(Clone, Debug, Default)]
pub struct Measured(FxHashMap<(Family, String), Curve>);

impl Measured {
    /// Adds or replaces an algorithm's curve.
    pub fn insert(&mut self, family: Family, algorithm: &str, curve: Curve) {
        self.0.insert((family, algorithm.to_owned()), curve);
    }

    /// The curve of an algorithm.
    pub fn curve(&self, family: Family, algorithm: &str) -> Option<&Curve> {
        self.0.get(&(family, algorithm.to_owned()))
    }
}

/// A preference by number of prefixes: points, interpolated linearly over the logarithm of the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve(Vec<(usize, u8)>);

/// Why points do not form a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CurveError {
    /// There are no points.
    #[error("no points: give at least one")]
    Empty,
    /// A point does not lie to the right of the one before it.
    #[error("{prefixes} prefixes follow {before}: order the points by prefixes, each number once, from 1 up")]
    Order {
        /// The index of the point, from zero.
        point: usize,
        /// The prefixes of the point before.
        before: usize,
        /// The prefixes of the point.
        prefixes: usize,
    },
}

impl Curve {
    /// Makes a curve through these points of prefixes and preference, in ascending order.
    pub fn new(points: Vec<(usize, u8)>) -> Result<Self, CurveError> {
        let befores = std::iter::once(0).chain(points.iter().map(|(prefixes, _)| *prefixes));
        let mut pairs = befores.zip(points.iter().map(|(prefixes, _)| *prefixes)).enumerate();
        match pairs.find(|(_, (before, prefixes))| before >= prefixes) {
            Some((point, (before, prefixes))) => Err(CurveError::Order { point, before, prefixes }),
            None if points.is_empty() => Err(CurveError::Empty),
            None => Ok(Curve(points)),
        }
    }

    /// The preference for so many prefixes; beyond either end that of the nearest point.
    pub fn at(&self, prefixes: usize) -> u8 {
        let right = self.0.partition_point(|(at, _)| *at < prefixes);
        match (right.checked_sub(1).map(|left| self.0[left]), self.0.get(right).copied()) {
            (None, Some((_, preference))) | (Some((_, preference)), None) => preference,
            (Some(left), Some(right)) => between(left, right, prefixes),
            (None, None) => 0,
        }
    }
}

fn between((left, low): (usize, u8), (right, high): (usize, u8), prefixes: usize) -> u8 {
    let [left, right, at] = [left, right, prefixes].map(|prefixes| (prefixes as f64).ln());
    let share = (at - left) / (right - left);
    (f64::from(low) + share * (f64::from(high) - f64::from(low))).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::registry;
    use crate::rib::Rib;

    #[test]
    fn a_curve_is_linear_over_the_logarithm() {
        let curve = Curve::new(vec![(10, 100), (1_000, 200), (10_000, 50)]).unwrap();
        let points = [(0, 100), (1, 100), (10, 100), (100, 150), (1_000, 200), (10_000, 50), (1 << 30, 50)];
        for (prefixes, preference) in points {
            assert_eq!(curve.at(prefixes), preference, "{prefixes}");
        }
        assert_eq!(curve.at(3_162), 125);
    }

    #[test]
    fn points_out_of_order_are_refused() {
        assert_eq!(Curve::new(Vec::new()), Err(CurveError::Empty));
        let error = Curve::new(vec![(2, 1), (8, 1), (8, 2)]).unwrap_err();
        assert_eq!(error, CurveError::Order { point: 2, before: 8, prefixes: 8 });
        assert!(Curve::new(vec![(0, 1)]).is_err());
    }

    #[test]
    fn an_algorithm_without_a_curve_is_not_preferred() {
        let mut measured = Measured::default();
        measured.insert(Family::Inet, "radix", Curve::new(vec![(1, 77)]).unwrap());
        let preferences = Preferences::Measured(Arc::new(measured));
        let summary = Rib::<u32>::default().summary();
        let of = |name: &str| preferences.of(registry::find::<u32>(name).unwrap(), &summary);
        assert_eq!((of("radix"), of("bsearch4")), (77, 0));
        let radix6 = registry::find::<u128>("radix").unwrap();
        assert_eq!(preferences.of(radix6, &Rib::<u128>::default().summary()), 0);
    }
}
