//! Which shape of a forwarding path is quieter on this machine.

use std::time::Duration;

use fullview_lab::stats::Description;
use fullview_lab::{Arm, Bench, Experiment, Panel, PanelError};

use super::cores::Cores;
use crate::error::BenchError;
use crate::settings::{Kind, Settings, Shape};

/// A trial: so many slices, each as long as the shorter slices of two cores.
const SLICES: u32 = 20;
const SLICE: Duration = Duration::from_millis(30);

/// The shape whose slices spread less in a short trial of the first variant. In a virtual machine it is one core,
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

/// The coefficient of variation of the rates in short slices of one path.
fn trial(
    bench: &mut impl Bench<Settings>,
    settings: &Settings,
    family: &str,
    seed: u64,
) -> Result<f64, BenchError> {
    let mut rates = Vec::new();
    let mut measure = |panel: &mut dyn Panel| {
        for _ in 0..SLICES {
            let slice = panel.slice(Arm::Member(0), SLICE / 4, SLICE).map_err(PanelError::Bed)?;
            rates.push(slice.counted as f64 / slice.time.as_secs_f64());
        }
        Ok(())
    };
    let made = bench.panel(std::slice::from_ref(settings), family, seed, &mut measure);
    made.map_err(|error| BenchError::Trial(error.into()))?;
    let samples = Description::of(&rates).ok_or(BenchError::NoSamples("a trial"))?;
    Ok(samples.coefficient_of_variation())
}
