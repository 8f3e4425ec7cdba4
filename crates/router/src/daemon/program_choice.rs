//! The choice of hooks for the program in the kernel.

use aya::util::KernelVersion;
use fullview_plane::engine::{Engine, EngineError};
use fullview_plane::port::link::Link;

use super::error::DaemonError;
use super::hook::{Hook, HookChoice, HookReason, HookRule, TakenHooks};
use super::xdp_features::FeatureReader;
use crate::bypass;
use crate::control::takeover::RunningRouter;
use crate::options::{EngineName, RouterOptions};
use crate::takeover::TakeoverError;

/// The hooks of a router's interfaces.
pub struct ProgramChoice {
    pub rule: HookRule,
    /// Those of the router whose place is taken.
    pub taken: TakenHooks,
    /// Those of the interfaces that exist.
    hooks: Vec<(String, HookChoice)>,
}

/// Why no program can forward: this kernel does not take it, or not from this process.
pub fn refusal() -> Option<String> {
    if KernelVersion::current().is_ok_and(|version| version < KernelVersion::new(6, 6, 0)) {
        return Some("programs at tcx need Linux 6.6 or newer".into());
    }
    let load = || -> Result<(), EngineError> { Engine::load()?.skb_program().map(|_| ()) };
    load().err().map(|error| format!("the kernel refuses the program ({})", first_line(&error)))
}

/// The text after it is the log of the kernel's verifier.
fn first_line(error: &EngineError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

impl ProgramChoice {
    /// The hooks for these options, or those that `running` has, the router whose place is taken.
    pub fn of(
        options: &RouterOptions,
        running: Option<&RunningRouter>,
    ) -> Result<ProgramChoice, DaemonError> {
        let (rule, features) = (rule(options), FeatureReader::open());
        let interfaces = running.iter().flat_map(|running| &running.interfaces);
        let hooks = interfaces.filter_map(|one| Some((one.name.clone(), Hook::named(&one.engine)?)));
        let taken: TakenHooks = hooks.collect();
        let existing = options.interfaces.iter().filter_map(|name| Link::named(name).ok());
        let choose = |link: Link| {
            let choice = rule.choose(link.name(), features.known(link.index()), &taken);
            (link.name().to_owned(), choice)
        };
        let hooks: Vec<_> = existing.map(choose).collect();
        let is_other = |(_, choice): &&(String, HookChoice)| choice.reason == HookReason::TakenOver;
        match hooks.iter().find(is_other).filter(|_| rule != HookRule::Best) {
            Some((name, choice)) => Err(TakeoverError::Different(format!(
                "it forwards by engine {} for {name}, not as this one is to",
                choice.hook.name()
            ))
            .into()),
            None => Ok(ProgramChoice { rule, taken, hooks }),
        }
    }

    /// The hooks, each with its interfaces and the reason.
    pub fn describe(&self) -> String {
        let mut choices: Vec<HookChoice> = Vec::new();
        for (_, choice) in &self.hooks {
            if !choices.contains(choice) {
                choices.push(*choice);
            }
        }
        if choices.is_empty() {
            return "engine: it is chosen for each interface when there is one".into();
        }
        let described = choices.iter().map(|choice| self.describe_choice(choice));
        described.collect::<Vec<_>>().join("; ")
    }

    fn describe_choice(&self, choice: &HookChoice) -> String {
        let same = self.hooks.iter().filter(|(_, other)| other == choice).map(|(name, _)| name.as_str());
        let names = same.collect::<Vec<_>>().join(", ");
        format!("engine {} for {names}: {}", choice.hook.name(), choice.reason)
    }

    /// Whether frames leave without queueing disciplines. Where the hook is chosen for each interface, one that comes later may
    /// change that.
    pub fn leaves_unqueued(&self) -> bool {
        self.rule.leaves_unqueued() || self.hooks.iter().any(|(_, choice)| choice.leaves_unqueued())
    }
}

fn rule(options: &RouterOptions) -> HookRule {
    let configured = |hook| HookRule::Always(HookChoice { hook, reason: HookReason::Configured });
    match options.engine {
        EngineName::Tc => configured(Hook::Tcx),
        EngineName::Xdp => configured(Hook::Driver),
        EngineName::XdpGeneric => configured(Hook::Generic),
        // A list that the kernel does not give is no reason: the check of what is bypassed reports it.
        _ if bypass::shapers(&options.interfaces).is_ok_and(|shapers| !shapers.is_empty()) => {
            HookRule::Always(HookChoice { hook: Hook::Tcx, reason: HookReason::Shaped })
        }
        _ => HookRule::Best,
    }
}
