//! Random questions.

use fullview_lab::search::SearchGoal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::device::{Device, KINDS};
use super::reference::Question;

/// A question for each number, every kind of device in turn.
pub fn question(number: usize) -> Question {
    let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
    let min_load = [1.0, 900.5, 9_001.0][rng.random_range(0..3)];
    let max_load = min_load * [1.3, 40.0, 1e3, 1e5][rng.random_range(0..4)];
    let capacity = min_load * 0.8 + rng.random_range(0.0..1.1_f64).powi(2) * max_load;
    let device = Device {
        kind: KINDS[number % KINDS.len()],
        capacity,
        noise: [0.001, 0.02, 0.3][rng.random_range(0..3)],
        overhead: [0.0, 0.3][rng.random_range(0..2)],
        seed: rng.random(),
    };
    let goals = goals(&mut rng);
    Question { device, goals, min_load, max_load, warmup_duration: [0.0, 1.0][rng.random_range(0..2)] }
}

/// One to three goals that differ.
fn goals(rng: &mut ChaCha8Rng) -> Vec<SearchGoal> {
    let mut goals: Vec<SearchGoal> = Vec::new();
    for _ in 0..rng.random_range(1..=3) {
        let goal = goal(rng);
        if !goals.contains(&goal) {
            goals.push(goal);
        }
    }
    goals
}

fn goal(rng: &mut ChaCha8Rng) -> SearchGoal {
    let one_of = |rng: &mut ChaCha8Rng, values: &[f64]| values[rng.random_range(0..values.len())];
    if rng.random_bool(0.1) {
        return SearchGoal::rfc2544(60.0, one_of(rng, &[0.005, 0.03]));
    }
    let initial = one_of(rng, &[0.25, 1.0]);
    let last = initial * one_of(rng, &[1.0, 1.0, 4.0]);
    let sum = last * one_of(rng, &[1.0, 5.0, 21.0]);
    let least = u32::from(initial < sum);
    SearchGoal {
        loss_ratio: one_of(rng, &[0.0, 0.0, 0.005, 0.1]),
        exceed_ratio: one_of(rng, &[0.0, 0.2, 0.5]),
        width: one_of(rng, &[0.005, 0.01, 0.05, 0.4]),
        initial_trial_duration: initial,
        final_trial_duration: last,
        duration_sum: sum,
        preceding_targets: rng.random_range(least..4),
        expansion: rng.random_range(2..5),
        fail_fast: rng.random_bool(0.2),
    }
}
