//! Profiles of this test itself, by the perf of this machine.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fullview_profile::{Event, Profile, Recorder, counters};

#[inline(never)]
fn spin(number: &mut u64) {
    for _ in 0..10_000 {
        *number = inlined(*number);
    }
}

#[inline(always)]
fn inlined(number: u64) -> u64 {
    black_box(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(7)
}

fn busy(time: Duration) -> u64 {
    let (began, mut number) = (Instant::now(), 1);
    while began.elapsed() < time {
        spin(&mut number);
    }
    number
}

/// Each test observes this process, so that one has to wait for the others.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this machine has perf. In CI it has to.
fn has_perf() -> bool {
    let has = std::process::Command::new("perf").arg("--version").output().is_ok();
    assert!(has || std::env::var_os("CI").is_none(), "CI installs perf");
    if !has {
        println!("skipped: no perf; on Debian, linux-perf has it");
    }
    has
}

fn profile(work: impl FnOnce() -> u64) -> Profile {
    let (profile, number) = Recorder::new(Event::best()).unwrap().record(work).unwrap();
    black_box(number);
    profile
}

#[test]
fn busy_work_has_whole_stacks_with_inlined_functions() {
    if !has_perf() {
        return;
    }
    let _alone = alone();
    let profile = profile(|| busy(Duration::from_secs(2)));
    let quality = &profile.quality;
    assert!(quality.whole > 0.9, "{quality:?}");
    let holds = |name: &str| {
        let with = profile
            .stacks
            .iter()
            .filter(|(functions, _)| functions.iter().any(|one| one.name.contains(name)));
        with.map(|(_, count)| count).sum::<u64>() as f64 / profile.stacks.total() as f64
    };
    assert!(holds("this_process::spin") > 0.8, "{}", profile.stacks);
    assert!(holds("inlined") > 0.2, "{}", profile.stacks);
}

#[test]
fn work_that_waits_is_not_taken_for_busy() {
    if !has_perf() {
        return;
    }
    let _alone = alone();
    let waits = || {
        std::thread::sleep(Duration::from_millis(1900));
        busy(Duration::from_millis(100))
    };
    let profile = profile(waits);
    assert!(profile.quality.busy < 0.3, "{:?}", profile.quality);
    assert!(profile.quality.reasons().iter().any(|reason| reason.contains("it waits")));
}

#[test]
fn events_are_those_of_the_work_alone() {
    if !has_perf() {
        return;
    }
    let _alone = alone();
    // 512 pages that were never touched.
    let touch = || {
        let mut memory = vec![0_u8; 512 * 4096];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        black_box(&memory).len()
    };
    let (counted, _) = counters::count(touch).unwrap();
    let faults = counted.iter().find(|one| one.event == "page-faults").unwrap();
    assert!(faults.count.is_some_and(|count| (2..5000).contains(&count)), "{counted:?}");
}
