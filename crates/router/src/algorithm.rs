//! From the settings of a router to a compiled FIB.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use fullview_table::fib::framework::{self, Attachment};
use fullview_table::fib::preference::Preferences;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Algorithm, Fib};
use fullview_table::{Family, Rib};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::BadInput;
use crate::preferences;

/// `[subject.router]`: the algorithm under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterSettings {
    /// A name of the registry, or `auto`: chosen by preference among `modules`. Of several names, the first that the
    /// family has. `every` makes one variant of each algorithm that all families of the experiment have.
    pub algorithm: Option<Names>,
    /// What `auto` may choose from; names of the other family are passed over.
    pub modules: Option<Vec<String>>,
    /// By which `auto` chooses: a file of `fullview table calibrate`; FreeBSD's guesses if absent.
    pub preferences: Option<PathBuf>,
}

impl RouterSettings {
    /// What is set here wins over `base`.
    pub fn laid_over(self, base: &Self) -> Self {
        RouterSettings {
            algorithm: self.algorithm.or_else(|| base.algorithm.clone()),
            modules: self.modules.or_else(|| base.modules.clone()),
            preferences: self.preferences.or_else(|| base.preferences.clone()),
        }
    }
}

/// One name or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Names {
    One(String),
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenNames)
    }
}

struct WrittenNames;

impl<'de> Visitor<'de> for WrittenNames {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"radix\", or a list of names")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Names, E> {
        Ok(Names::One(name.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, names: A) -> Result<Names, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(names)).map(Names::Several)
    }
}

impl Names {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        };
        names.iter().map(String::as_str)
    }
}

/// The word for: choose by preference.
pub const AUTO: &str = "auto";

/// A FIB and what the framework logged on the way to it, with the times since it began.
pub struct Compiled<A> {
    pub fib: Arc<dyn Fib<A>>,
    pub log: Vec<String>,
}

/// How a family's routes will be looked up.
enum Choice<A: Registered> {
    Fixed(&'static dyn Algorithm<A>),
    Among(Vec<&'static dyn Algorithm<A>>),
}

/// Says what is wrong with the settings for this family, before anything is loaded; else how a report describes the
/// preferences they name.
pub fn check<A: Registered>(settings: &RouterSettings) -> anyhow::Result<Option<String>> {
    let Choice::Among(modules) = choice::<A>(settings)? else { return Ok(None) };
    let Some(path) = &settings.preferences else { return Ok(None) };
    let loaded = preferences::load(path)?;
    if let Preferences::Measured(measured) = &loaded.preferences {
        let missing = modules.iter().find(|module| measured.curve(A::FAMILY, module.name()).is_none());
        let message = |name| {
            format!(
                "{}: nothing about {name} for {}; calibrate again, or leave it out of router.modules",
                path.display(),
                A::FAMILY
            )
        };
        ensure!(
            missing.is_none(),
            BadInput(missing.map_or_else(String::new, |module| message(module.name())))
        );
    }
    Ok(Some(loaded.description))
}

/// Compiles the table's routes with the algorithm the settings name or lead to.
pub fn compile<A: Registered>(settings: &RouterSettings, rib: &Rib<A>) -> anyhow::Result<Compiled<A>> {
    match choice::<A>(settings)? {
        Choice::Fixed(algorithm) => Ok(Compiled { fib: algorithm.compile(rib)?.fib(), log: Vec::new() }),
        Choice::Among(modules) => attach(&modules, preferences(settings)?, rib),
    }
}

/// A FIB that answers every key with "no route".
pub fn without_routes<A: Registered>() -> anyhow::Result<Arc<dyn Fib<A>>> {
    let oracle = A::ALGORITHMS.first().context("every family has its oracle")?;
    Ok(oracle.compile(&Rib::default())?.fib())
}

/// What the settings say about preferences.
pub fn preferences(settings: &RouterSettings) -> anyhow::Result<Preferences> {
    let file = settings.preferences.as_deref();
    file.map_or(Ok(Preferences::Guessed), |path| Ok(preferences::load(path)?.preferences))
}

/// As a system comes up: the framework attaches what suits an empty table, then the routes come, then it looks again.
fn attach<A: Registered>(
    modules: &[&'static dyn Algorithm<A>],
    preferences: Preferences,
    rib: &Rib<A>,
) -> anyhow::Result<Compiled<A>> {
    let began = Instant::now();
    let settings = framework::Settings { preferences, ..framework::Settings::default() };
    let mut attachment = Attachment::new(began.elapsed(), 0, modules.into(), Arc::new(settings));
    attachment.evaluate(began.elapsed(), &Rib::default())?;
    attachment.evaluate(began.elapsed(), rib)?;
    let log = attachment.log().iter().map(ToString::to_string).collect();
    // The attachment ends here, and with it what it publishes; the FIB does not change any more.
    Ok(Compiled { fib: attachment.fib(), log })
}

/// The first of the names that the family has; `auto` is one that every family has.
fn choice<A: Registered>(settings: &RouterSettings) -> anyhow::Result<Choice<A>> {
    let asked: Vec<&str> = settings.algorithm.as_ref().map_or(vec![AUTO], |names| names.iter().collect());
    asked.iter().filter(|name| **name != AUTO).try_for_each(|name| known(name))?;
    let usable = asked.iter().find_map(|name| match *name {
        AUTO => Some(modules(settings).map(Choice::Among)),
        name => registry::find::<A>(name).map(|algorithm| Ok(Choice::Fixed(algorithm))),
    });
    let message =
        || BadInput(format!("router.algorithm: {} is not for {}; {}", asked.join(", "), A::FAMILY, offer()));
    usable.ok_or_else(message)?
}

/// All of the family's modules but the oracle, unless the settings list some.
fn modules<A: Registered>(settings: &RouterSettings) -> anyhow::Result<Vec<&'static dyn Algorithm<A>>> {
    let Some(listed) = &settings.modules else {
        return Ok(A::ALGORITHMS.iter().copied().skip(1).collect());
    };
    listed.iter().try_for_each(|name| known(name))?;
    let found: Vec<_> = listed.iter().filter_map(|name| registry::find::<A>(name)).collect();
    let message = || {
        BadInput(format!("router.modules: none of {} is for {}; {}", listed.join(", "), A::FAMILY, offer()))
    };
    ensure!(!found.is_empty(), message());
    Ok(found)
}

fn known(name: &str) -> anyhow::Result<()> {
    let known = registry::find::<u32>(name).is_some() || registry::find::<u128>(name).is_some();
    ensure!(known, BadInput(format!("there is no lookup algorithm {name:?}; {}", offer())));
    Ok(())
}

fn offer() -> String {
    format!(
        "there are {AUTO}, for {}: {}, for {}: {}",
        Family::Inet,
        registry::names::<u32>().join(" "),
        Family::Inet6,
        registry::names::<u128>().join(" ")
    )
}
