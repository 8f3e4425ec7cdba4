//! Profiles of the devices of `fullview rates`, made after all rates are known.

mod document;
mod folder;
mod page;
mod stages;
mod window;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fullview_bench::rates::{RateLab, RatesCampaign, RatesError, RatesReport};
use fullview_router::{log, progress};

use crate::args::rates::RatesArgs;
use document::ProfilesDocument;
pub use document::is_profile_file;
use window::ProfileWindow;

/// Whether profiles are made.
pub enum Profiling {
    No,
    Yes,
    /// They would be, but perf cannot be started.
    Impossible(RatesError),
}

impl Profiling {
    /// Refuses `--profile` without perf, before anything is measured; `--quick` goes on without profiles.
    pub fn of(args: &RatesArgs, lab: &dyn RateLab) -> Result<Profiling, RatesError> {
        if !args.profile && !args.quick {
            return Ok(Profiling::No);
        }
        match lab.check_profile() {
            Ok(()) => Ok(Profiling::Yes),
            Err(error) if args.profile => Err(error),
            Err(error) => Ok(Profiling::Impossible(error)),
        }
    }

    /// Adds the profiles to a report, and their pictures to its folder. Returns whether all are valid.
    pub fn add(
        &self,
        campaign: &RatesCampaign,
        lab: &mut dyn RateLab,
        report: &mut RatesReport,
        folder: &Path,
        stop: &AtomicBool,
    ) -> anyhow::Result<bool> {
        match self {
            Profiling::Yes if !report.interrupted => add(campaign, lab, report, folder, stop),
            Profiling::Impossible(error) => {
                log::line(&format!("no profiles: {error}"));
                report.lab.sections.push_str(&page::without(error));
                Ok(true)
            }
            Profiling::No | Profiling::Yes => Ok(true),
        }
    }
}

fn add(
    campaign: &RatesCampaign,
    lab: &mut dyn RateLab,
    report: &mut RatesReport,
    folder: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<bool> {
    let window = ProfileWindow { campaign, largest_load: report.largest_load };
    let bar = progress::steps(report.devices.len() as u64);
    let mut made = Vec::new();
    for rates in report.devices.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        bar.set_message(format!("profile of {}", rates.device));
        made.push((rates.device.clone(), window.profile(lab, rates)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    // The last profile may have been cut short.
    if stop.load(Ordering::Relaxed) {
        return Ok(true);
    }
    let document = ProfilesDocument::new(lab.receives_on_device_core(), &made);
    folder::write(folder, &made, &document)?;
    report.lab.sections.push_str(&page::section(&document));
    report.profile = Some(serde_json::to_value(&document)?);
    document.notes().iter().for_each(|note| log::line(note));
    Ok(document.is_valid())
}
