//! Chooses the lookup algorithm that settings ask for, and compiles a table with it.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fullview_table::fib::framework::{self, Attachment};
use fullview_table::fib::preference::Preferences;
use fullview_table::fib::registry::{self, Registered};
use fullview_table::fib::{Algorithm, CompileError, Fib};
use fullview_table::{Family, Rib};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::BadInput;
use crate::preferences;

/// Which algorithm looks routes up: the section `[subject.router]` of an experiment, and the `[router]` section of a
/// configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouterSettings {
    /// A name of the registry, or `auto`, which chooses by preference among `modules`. Of several names, a family uses the
    /// first that it has. `every` makes one variant of each algorithm that all families of the experiment have.
    pub algorithm: Option<Names>,
    /// The algorithms that `auto` may choose from. Names that a family does not have are ignored for it.
    pub modules: Option<Vec<String>>,
    /// The preferences that `auto` chooses by: a file of `fullview table calibrate`. Without it, FreeBSD's guesses.
    pub preferences: Option<PathBuf>,
}

impl RouterSettings {
    /// These settings, with those of `base` where they set nothing.
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
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
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

/// Why no FIB could be compiled.
#[derive(Debug, thiserror::Error)]
pub enum AlgorithmError {
    #[error("{0}")]
    BadInput(#[from] BadInput),
    #[error("{0}")]
    Compile(#[from] CompileError),
    #[error("{0} has no lookup algorithm")]
    NoOracle(Family),
}

/// The name that leaves the choice to the framework's preferences.
pub const AUTO: &str = "auto";

/// A FIB, and what the framework logged while it was chosen and compiled, with the times since it began.
pub struct Compiled<A> {
    pub fib: Arc<dyn Fib<A>>,
    pub log: Vec<String>,
}

/// How a family's routes are looked up.
enum AlgorithmChoice<A: Registered> {
    Fixed(&'static dyn Algorithm<A>),
    Among(Vec<&'static dyn Algorithm<A>>),
}

/// Checks the settings for a family before anything is loaded. Returns how a report describes the preferences that they
/// name, if they name some.
pub fn check<A: Registered>(settings: &RouterSettings) -> Result<Option<String>, BadInput> {
    let AlgorithmChoice::Among(modules) = choice::<A>(settings)? else { return Ok(None) };
    let Some(path) = &settings.preferences else { return Ok(None) };
    let loaded = preferences::load(path)?;
    if let Preferences::Measured(measured) = &loaded.preferences {
        let missing = modules.iter().find(|module| measured.curve(A::FAMILY, module.name()).is_none());
        if let Some(module) = missing {
            return Err(BadInput(format!(
                "{}: nothing about {} for {}; calibrate again, or leave it out of router.modules",
                path.display(),
                module.name(),
                A::FAMILY
            )));
        }
    }
    Ok(Some(loaded.description))
}

/// Compiles the table's routes with the algorithm that the settings choose.
pub fn compile<A: Registered>(
    settings: &RouterSettings,
    rib: &Rib<A>,
) -> Result<Compiled<A>, AlgorithmError> {
    match choice::<A>(settings)? {
        AlgorithmChoice::Fixed(algorithm) => {
            Ok(Compiled { fib: algorithm.compile(rib)?.fib(), log: Vec::new() })
        }
        AlgorithmChoice::Among(modules) => attach(&modules, preferences(settings)?, rib),
    }
}

/// The algorithms that may serve a table which changes: the one that the settings name, or those that `auto` chooses
/// among.
pub fn candidates<A: Registered>(
    settings: &RouterSettings,
) -> Result<Vec<&'static dyn Algorithm<A>>, BadInput> {
    Ok(match choice::<A>(settings)? {
        AlgorithmChoice::Fixed(algorithm) => vec![algorithm],
        AlgorithmChoice::Among(modules) => modules,
    })
}

/// Compiles a FIB that answers every key with "no route".
pub fn without_routes<A: Registered>() -> Result<Arc<dyn Fib<A>>, AlgorithmError> {
    let oracle = A::ALGORITHMS.first().ok_or(AlgorithmError::NoOracle(A::FAMILY))?;
    Ok(oracle.compile(&Rib::default())?.fib())
}

/// Loads the preferences that the settings name; the default is FreeBSD's guesses.
pub fn preferences(settings: &RouterSettings) -> Result<Preferences, BadInput> {
    let file = settings.preferences.as_deref();
    file.map_or(Ok(Preferences::Guessed), |path| Ok(preferences::load(path)?.preferences))
}

/// Chooses as a starting system does: the framework attaches the algorithm that suits an empty table, and chooses again
/// once the routes are there.
fn attach<A: Registered>(
    modules: &[&'static dyn Algorithm<A>],
    preferences: Preferences,
    rib: &Rib<A>,
) -> Result<Compiled<A>, AlgorithmError> {
    let began = Instant::now();
    let settings = framework::Settings { preferences, ..framework::Settings::default() };
    let mut attachment = Attachment::new(began.elapsed(), 0, modules.into(), Arc::new(settings));
    attachment.evaluate(began.elapsed(), &Rib::default())?;
    attachment.evaluate(began.elapsed(), rib)?;
    let log = attachment.log().iter().map(ToString::to_string).collect();
    // The attachment is dropped here, so it publishes nothing more and the FIB stays as it is.
    Ok(Compiled { fib: attachment.fib(), log })
}

/// The first of the names that the family has. Every family has `auto`.
fn choice<A: Registered>(settings: &RouterSettings) -> Result<AlgorithmChoice<A>, BadInput> {
    let asked: Vec<&str> = settings.algorithm.as_ref().map_or(vec![AUTO], |names| names.iter().collect());
    asked.iter().filter(|name| **name != AUTO).try_for_each(|name| known(name))?;
    let usable = asked.iter().find_map(|name| match *name {
        AUTO => Some(modules(settings).map(AlgorithmChoice::Among)),
        name => registry::find::<A>(name).map(|algorithm| Ok(AlgorithmChoice::Fixed(algorithm))),
    });
    let message =
        || BadInput(format!("router.algorithm: {} is not for {}; {}", asked.join(", "), A::FAMILY, offer()));
    usable.ok_or_else(message)?
}

/// The modules that the settings list; the default is all of the family's except the oracle.
fn modules<A: Registered>(settings: &RouterSettings) -> Result<Vec<&'static dyn Algorithm<A>>, BadInput> {
    let Some(listed) = &settings.modules else {
        return Ok(A::ALGORITHMS.iter().copied().skip(1).collect());
    };
    listed.iter().try_for_each(|name| known(name))?;
    let found: Vec<_> = listed.iter().filter_map(|name| registry::find::<A>(name)).collect();
    let message = || {
        BadInput(format!("router.modules: none of {} is for {}; {}", listed.join(", "), A::FAMILY, offer()))
    };
    if found.is_empty() { Err(message()) } else { Ok(found) }
}

fn known(name: &str) -> Result<(), BadInput> {
    let known = registry::find::<u32>(name).is_some() || registry::find::<u128>(name).is_some();
    let message = || BadInput(format!("there is no lookup algorithm {name:?}; {}", offer()));
    if known { Ok(()) } else { Err(message()) }
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
