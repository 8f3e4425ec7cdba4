//! The bench of two builds: the panels of each block are served by three processes, started anew.

use std::collections::BTreeMap;

use fullview_lab::{Bench, PanelError, PanelWork};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::build_settings::{BuildSettings, WhichBuild};
use super::panel::{GroupError, ServedGroup, ServedPanel};
use super::process::Program;
use super::protocol::PanelRequest;

/// Makes panels of two builds.
pub struct ServedBench {
    before: Program,
    after: Program,
    campaign_seed: u64,
    conditions: Vec<String>,
}

/// What a process of a panel serves.
struct GroupPlan<'a> {
    program: &'a Program,
    /// Positions in the panel.
    members: Vec<usize>,
}

impl ServedBench {
    /// `conditions` are those of the bench that each process makes.
    pub fn new(before: Program, after: Program, campaign_seed: u64, conditions: Vec<String>) -> Self {
        Self { before, after, campaign_seed, conditions }
    }

    /// One process for each build, and one for the copy of the baseline, so that the copy differs from the baseline by all
    /// that two processes of one build differ by.
    fn groups(&self, members: &[BuildSettings]) -> Vec<GroupPlan<'_>> {
        let programs = [&self.before, &self.after, &self.before];
        let groups = programs.into_iter().zip(served_together(members));
        let groups = groups.map(|(program, members)| GroupPlan { program, members });
        groups.filter(|group| !group.members.is_empty()).collect()
    }

    fn start(
        &self,
        group: &GroupPlan<'_>,
        members: &[BuildSettings],
        family: &str,
        seed: u64,
    ) -> Result<ServedGroup, PanelError> {
        let settings = group.members.iter().map(|member| written(&members[*member])).collect();
        let process = group.program.start().map_err(|error| PanelError::Bed(error.into()))?;
        let campaign_seed = self.campaign_seed;
        let asked = PanelRequest { family: family.into(), campaign_seed, seed, members: settings };
        ServedGroup::new(process, asked).map_err(|GroupError { member, source }| {
            match member.and_then(|position| group.members.get(position)) {
                Some(member) => PanelError::Member { member: *member, source: source.into() },
                None => PanelError::Bed(source.into()),
            }
        })
    }
}

impl Bench<BuildSettings> for ServedBench {
    fn panel(
        &mut self,
        members: &[BuildSettings],
        family: &str,
        seed: u64,
        work: PanelWork<'_>,
    ) -> Result<(), PanelError> {
        let plans = self.groups(members);
        let mut group_of = vec![0; members.len()];
        for (index, plan) in plans.iter().enumerate() {
            plan.members.iter().for_each(|member| group_of[*member] = index);
        }
        let mut groups = BTreeMap::new();
        for index in start_order(plans.len(), seed) {
            groups.insert(index, self.start(&plans[index], members, family, seed)?);
        }
        work(&mut ServedPanel::new(groups.into_values().collect(), &group_of))
    }

    fn conditions(&mut self) -> Vec<String> {
        self.conditions.clone()
    }
}

/// The positions of the members of the build before, of this build, and of the copy.
fn served_together(members: &[BuildSettings]) -> [Vec<usize>; 3] {
    let positions = |served: &dyn Fn(&BuildSettings) -> bool| {
        (0..members.len()).filter(|member| served(&members[*member])).collect()
    };
    let of_build =
        |build| positions(&move |member: &BuildSettings| !member.is_copy && member.build == Some(build));
    [of_build(WhichBuild::Before), of_build(WhichBuild::After), positions(&|member| member.is_copy)]
}

/// The order in which the processes of a panel start and take their memory, another one in each panel: in one order for all,
/// what the first process has that the last has not would count as a difference of the builds.
fn start_order(groups: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..groups).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    order
}

/// The settings that are set. A build that does not know a setting yet is not asked for its absence.
fn written(member: &BuildSettings) -> Value {
    let mut written = serde_json::to_value(&member.settings).unwrap_or_default();
    remove_unset(&mut written);
    written
}

fn remove_unset(value: &mut Value) {
    if let Value::Object(keys) = value {
        keys.values_mut().for_each(remove_unset);
        keys.retain(|_, value| !value.is_null() && value.as_object().is_none_or(|keys| !keys.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fullview_lab::Settings as _;

    use super::*;
    use crate::settings::Settings;

    /// A variant may have the settings of the baseline, and stand before it or its copy.
    #[test]
    fn the_copy_has_a_process_of_its_own_also_beside_variants_with_its_settings() {
        let [before, after] = [WhichBuild::Before, WhichBuild::After]
            .map(|build| BuildSettings { build: Some(build), ..BuildSettings::default() });
        let copy = before.clone().of_copy();
        let members = [&before, &after, &copy, &before, &after].map(Clone::clone);
        assert_eq!(served_together(&members), [vec![0, 3], vec![1, 4], vec![2]]);
        let members = [&copy, &before, &before, &after].map(Clone::clone);
        assert_eq!(served_together(&members), [vec![1, 2], vec![3], vec![0]]);
    }

    #[test]
    fn processes_start_in_every_order_and_in_the_same_one_for_a_seed() {
        let orders: BTreeSet<Vec<usize>> = (0..60).map(|seed| start_order(3, seed)).collect();
        assert_eq!(orders.len(), 6);
        assert!(orders.iter().all(|order| order.iter().sum::<usize>() == 3), "{orders:?}");
        assert_eq!(start_order(3, 7), start_order(3, 7));
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let text = "traffic.flows = 7\nrouter.algorithm = [\"dxr\", \"btree6\"]";
        let settings: Settings = toml::from_str(text).unwrap();
        let sent = written(&BuildSettings { settings: settings.clone(), ..BuildSettings::default() });
        assert_eq!(sent.to_string(), r#"{"router":{"algorithm":["dxr","btree6"]},"traffic":{"flows":7}}"#);
        assert_eq!(serde_json::from_value::<Settings>(sent).unwrap(), settings);
    }
}
