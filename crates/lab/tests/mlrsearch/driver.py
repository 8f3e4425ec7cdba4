"""Runs the published MLRsearch on simulated devices: one JSON object a line from standard input, one answer a line.

The devices are those of device.rs, with the same arithmetic operation by operation, so that both searches meet the same
losses to the last bit.
"""

import dataclasses
import json
import sys

from MLRsearch import (
    AbstractMeasurer,
    Config,
    MeasurementResult,
    MultipleLossRatioSearch,
    SearchGoal,
)

WORD = (1 << 64) - 1


def scramble(word):
    word = (word + 0x9E3779B97F4A7C15) & WORD
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & WORD
    return word ^ (word >> 31)


class Device(AbstractMeasurer):
    def __init__(self, spec):
        self.spec = spec
        self.trials = []

    def chance(self, salt, number):
        hashed = scramble(scramble(self.spec["seed"] ^ salt) ^ number)
        return (hashed >> 11) / 9007199254740992.0

    def capacity(self, number):
        kind, capacity = self.spec["kind"], self.spec["capacity"]
        if kind == "noisy":
            return capacity * (1.0 + self.spec["noise"] * (self.chance(1, number) - 0.5))
        if kind == "settling":
            return capacity * (1.0 - 0.5 / (1.0 + number))
        if kind == "ageing":
            return capacity / (1.0 + number * 0.01)
        return capacity

    def ratio(self, load, number):
        kind = self.spec["kind"]
        if kind == "unlimited":
            return 0.0
        if kind == "broken":
            return 0.03
        if kind == "dead":
            return 1.0
        capacity = self.capacity(number)
        over = (load - capacity) / load if load > capacity else 0.0
        if kind == "soft" and load > capacity * 0.5:
            slope = (load - capacity * 0.5) / capacity
            return min(1.0, over + 0.05 * slope * slope)
        if kind == "inverted":
            band = int(load * 16.0 / capacity)
            return min(1.0, over + 0.02) if self.chance(2, band) < 0.2 else over
        return over

    def burst(self, load, number):
        kind = self.spec["kind"]
        if kind == "noisy" and self.chance(3, number) < 0.1:
            return 1 + int(self.chance(4, number) * 20.0)
        if kind == "single":
            return 1 if self.chance(5, number) < load / self.spec["capacity"] * 0.5 else 0
        return 0

    def measure(self, intended_duration, intended_load):
        number = len(self.trials)
        offered = int(intended_load * intended_duration)
        lost = int(self.ratio(intended_load, number) * offered)
        lost = min(offered, lost + self.burst(intended_load, number))
        took = intended_duration + self.spec["overhead"] * self.chance(6, number)
        result = MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=offered,
            loss_count=lost,
            duration_with_overheads=took,
        )
        self.trials.append([intended_load, intended_duration, result.loss_ratio])
        return result


def goal(spec):
    return SearchGoal(
        loss_ratio=spec["loss_ratio"],
        exceed_ratio=spec["exceed_ratio"],
        relative_width=spec["width"],
        initial_trial_duration=spec["initial_trial_duration"],
        final_trial_duration=spec["final_trial_duration"],
        duration_sum=spec["duration_sum"],
        preceding_targets=spec["preceding_targets"],
        expansion_coefficient=spec["expansion"],
        fail_fast=spec["fail_fast"],
    )


def figure(load):
    return None if load is None else float(load)


def throughput(result):
    """The conditional throughput, and the same without the rounding errors of the published search.

    Durations are subtracted from a share of their sum, and what is left is compared with zero. A remainder of 1e-15 s
    counts as a trial that lost everything, or takes the next worse trial.
    """
    bound = result.relevant_lower_bound
    if bound is None:
        return None, None
    stat = next(iter(bound.target_to_stat.values()))
    ratio = stat.target.exceed_ratio + 1e-9
    rounded = dataclasses.replace(stat, target=dataclasses.replace(stat.target, exceed_ratio=ratio))
    published, exact = stat.pessimistic_loss_ratio, rounded.pessimistic_loss_ratio
    return float(bound) * (1.0 - published), float(bound) * (1.0 - exact)


def answer(spec):
    device = Device(spec["device"])
    config = Config(
        goals=[goal(one) for one in spec["goals"]],
        min_load=spec["min_load"],
        max_load=spec["max_load"],
        search_duration_max=1e12,
        warmup_duration=spec["warmup_duration"],
    )
    try:
        found = MultipleLossRatioSearch(config).search(device, lambda text: None)
    except RuntimeError as error:
        return {"trials": device.trials, "goals": None, "error": str(error)}
    goals = [
        [
            figure(result.relevant_lower_bound),
            figure(result.relevant_upper_bound),
            *throughput(result),
        ]
        for result in (found[one] for one in config.goals)
    ]
    return {"trials": device.trials, "goals": goals, "error": None}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
