//! The search for all goals together.

use super::bounds::LoadTrial;
use super::config::SearchConfig;
use super::error::SearchError;
use super::expansion::SharedStep;
use super::goal_search::GoalSearch;
use super::grid::{LoadGrid, MOST_STEPS};
use super::history::TrialHistory;
use super::initial::{InitialStep, InitialTarget, InitialTrial};
use super::result::{GoalResult, SearchEnd, SearchResults};
use super::strategy::Nomination;
use super::target::SearchTarget;
use super::trial::{Trial, TrialPurpose, TrialRequest, TrialResult};

/// A search in progress.
#[derive(Debug, Clone)]
pub struct MlrSearch {
    config: SearchConfig,
    grid: LoadGrid,
    initial: InitialTarget,
    initial_trials: Vec<InitialTrial>,
    /// The targets of each goal, in the order of the configuration.
    chains: Vec<Vec<SearchTarget>>,
    /// Empty until the first trials are made.
    goals: Vec<GoalSearch>,
    shared: SharedStep,
    history: TrialHistory,
    trials: Vec<Trial>,
    state: SearchState,
}

/// What the search waits for.
#[derive(Debug, Clone, Copy)]
enum SearchState {
    Warmup,
    Initial { level: u32 },
    Goal { goal: usize, nomination: Nomination },
    Ended(SearchEnd),
}

impl MlrSearch {
    pub fn new(config: SearchConfig) -> Result<MlrSearch, SearchError> {
        config.check()?;
        let grid = grid(&config)?;
        let chains: Vec<_> = config.goals.iter().map(|goal| SearchTarget::chain(goal, &grid)).collect();
        let initial = InitialTarget::of(chains.iter().filter_map(|chain| chain.first()));
        let mut search = MlrSearch {
            state: SearchState::Warmup,
            initial_trials: Vec::new(),
            history: TrialHistory::default(),
            trials: Vec::new(),
            shared: 0,
            config,
            grid,
            initial,
            chains,
            goals: Vec::new(),
        };
        if search.config.warmup_duration == 0.0 {
            search.advance_initial();
        }
        Ok(search)
    }

    /// The next trial; `None` if the search has ended.
    pub fn request(&self) -> Option<TrialRequest> {
        let (level, duration, purpose) = match self.state {
            SearchState::Warmup => (self.grid.top(), self.config.warmup_duration, TrialPurpose::Warmup),
            SearchState::Initial { level } => (level, self.initial.duration, TrialPurpose::Initial),
            SearchState::Goal { goal, nomination } => {
                (nomination.level, nomination.duration, TrialPurpose::Goal(goal))
            }
            SearchState::Ended(_) => return None,
        };
        Some(TrialRequest { load: self.grid.load(level), duration, purpose })
    }

    /// Takes the result of the trial that [`request`](MlrSearch::request) names.
    pub fn record(&mut self, result: TrialResult) -> Result<(), SearchError> {
        let trial = Trial::new(self.request().ok_or(SearchError::Ended)?, result)?;
        self.trials.push(trial);
        match self.state {
            SearchState::Warmup => self.advance_initial(),
            SearchState::Initial { level } => self.record_initial(level, &trial),
            SearchState::Goal { goal, nomination } => self.record_goal(goal, &nomination, &trial),
            SearchState::Ended(_) => return Err(SearchError::Ended),
        }
        Ok(())
    }

    fn record_initial(&mut self, level: u32, trial: &Trial) {
        self.remember(level, trial);
        let (loss_ratio, forwarding_rate) = (trial.result.loss_ratio, trial.forwarding_rate());
        self.initial_trials.push(InitialTrial { level, loss_ratio, forwarding_rate });
        self.advance_initial();
    }

    fn record_goal(&mut self, goal: usize, nomination: &Nomination, trial: &Trial) {
        self.remember(nomination.level, trial);
        self.shared = nomination.step;
        if let Some(grown) = self.goals[goal].measured(nomination, &self.history) {
            self.shared = grown;
        }
        self.nominate();
    }

    fn remember(&mut self, level: u32, trial: &Trial) {
        let TrialResult { loss_ratio, effective_duration } = trial.result;
        self.history
            .add(level, LoadTrial { duration: trial.request.duration, effective_duration, loss_ratio });
    }

    fn advance_initial(&mut self) {
        match self.initial.next(&self.initial_trials, &self.grid) {
            InitialStep::Measure(level) => self.state = SearchState::Initial { level },
            InitialStep::Start { lower, upper } => {
                let goal = |chain: &Vec<_>| GoalSearch::new(chain.clone(), (lower, upper), self.grid.top());
                self.goals = self.chains.iter().map(goal).collect();
                self.shared = upper - lower;
                self.nominate();
            }
        }
    }

    /// Chooses among what the goals nominate: the smallest load first, because its result is the surest to count for
    /// other goals too; then the longest trial, the longest step, and the first goal.
    fn nominate(&mut self) {
        let (history, shared) = (&self.history, self.shared);
        let mut best: Option<(usize, Nomination)> = None;
        for (index, goal) in self.goals.iter_mut().enumerate() {
            match goal.nominate(history, shared) {
                Some(nomination) if best.is_none_or(|(_, so_far)| nomination.comes_before(&so_far)) => {
                    best = Some((index, nomination));
                }
                Some(_) => {}
                None if self.config.goals[index].fail_fast && goal.has_no_lower_bound(history) => {
                    self.state = SearchState::Ended(SearchEnd::NoLowerBound(index));
                    return;
                }
                None => {}
            }
        }
        self.state = match best {
            Some((goal, nomination)) => SearchState::Goal { goal, nomination },
            None => SearchState::Ended(SearchEnd::Complete),
        };
    }

    /// What is known so far for each goal, with all trials.
    pub fn results(&self) -> SearchResults {
        let result = |(goal, chain): (&_, &Vec<SearchTarget>)| {
            GoalResult::of(*goal, &chain[chain.len() - 1], &self.history, &self.grid)
        };
        let end = match self.state {
            SearchState::Ended(end) => end,
            _ => SearchEnd::Stopped,
        };
        let goals = self.config.goals.iter().zip(&self.chains).map(result).collect();
        SearchResults { end, goals, trials: self.trials.clone() }
    }
}

fn grid(config: &SearchConfig) -> Result<LoadGrid, SearchError> {
    let widths: Vec<f64> = config.goals.iter().map(|goal| goal.width).collect();
    let (min, max) = (config.min_load, config.max_load);
    LoadGrid::new(min, max, &widths).ok_or_else(|| {
        let width = widths.into_iter().fold(1.0, f64::min);
        SearchError::TooFine { width, min, max, most: MOST_STEPS }
    })
}
