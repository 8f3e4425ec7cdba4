//! Families of metrics, each with its samples.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

pub type Labels = Vec<(&'static str, String)>;

/// A value with the labels that identify it in its family.
pub type Sample<T> = (Labels, T);

/// The page of metrics while it is written.
pub struct Page<'a>(DescriptorEncoder<'a>);

impl<'a> Page<'a> {
    pub fn new(encoder: DescriptorEncoder<'a>) -> Page<'a> {
        Page(encoder)
    }

    /// Writes a family of counters.
    pub fn counters(&mut self, name: &str, help: &str, samples: Vec<Sample<f64>>) -> fmt::Result {
        let kind = ConstCounter::new(0.0).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        samples
            .iter()
            .try_for_each(|(labels, value)| ConstCounter::new(*value).encode(family.encode_family(labels)?))
    }

    /// Writes a family of counters in whole numbers.
    pub fn counts(&mut self, name: &str, help: &str, samples: Vec<Sample<u64>>) -> fmt::Result {
        let kind = ConstCounter::new(0u64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        samples
            .iter()
            .try_for_each(|(labels, value)| ConstCounter::new(*value).encode(family.encode_family(labels)?))
    }

    /// Writes a family of gauges.
    pub fn gauges(&mut self, name: &str, help: &str, samples: Vec<Sample<u64>>) -> fmt::Result {
        let kind = ConstGauge::new(0u64).metric_type();
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        samples
            .iter()
            .try_for_each(|(labels, value)| ConstGauge::new(*value).encode(family.encode_family(labels)?))
    }
}
