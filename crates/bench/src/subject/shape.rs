//! Which shape of a forwarding path is quieter on this machine.

use std::sync::atomic::AtomicBool;

use fullview_lab::stats::Description;
use fullview_lab::{Bench, Experiment, Window};

use super::cores::Cores;
use crate::error::BenchError;
use crate::settings::{Kind, Settings, Shape};

/// The shape whose samples spread less in a short trial of the first variant. In a virtual machine it is one core,
/// without a trial: the hypervisor may move the virtual cores apart at any moment, which a short trial cannot predict.
pub fn quieter(
    bench: &mut impl Bench<Settings>,
    cores: Cores,
    experiment: &Experiment<Settings>,
) -> Result<Shape, BenchError> {
    let (Some(variant), Some(family)) = (experiment.variants.first(), experiment.families.first()) else {
        return Ok(Shape::OneCore);
    };
    let mut settings = variant.set.clone().laid_over(&experiment.subject);
    let forwards = settings.kind() == Kind::Forward;
    if !forwards || !cores.are_two() || cores.are_virtual() {
        return Ok(Shape::OneCore);
    }
    settings.load.shape = Some(Shape::OneCore);
    let one = trial(bench, &settings, &family.name, experiment.seed)?;
    settings.load.shape = Some(Shape::TwoCores);
    let two = trial(bench, &settings, &family.name, experiment.seed)?;
    Ok(if two < one { Shape::TwoCores } else { Shape::OneCore })
}

/// The coefficient of variation of the samples of a short run.
fn trial(
    bench: &mut impl Bench<Settings>,
    settings: &Settings,
    family: &str,
    seed: u64,
) -> Result<f64, BenchError> {
    let mut path = bench.prepare(settings, family, seed).map_err(BenchError::Trial)?;
    let window = Window { warmup_s: 0.05, settle_s: 0.0, measure_s: 0.6, sample_ms: Some(30), drain_ms: 100 };
    let run = path.measure(&window, &AtomicBool::new(false)).map_err(BenchError::Trial)?;
    let samples = Description::of(&run.samples).ok_or(BenchError::NoSamples("a trial"))?;
    Ok(samples.coefficient_of_variation())
}
