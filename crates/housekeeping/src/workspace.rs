//! The packages of the workspace, as their manifests describe them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::Table;

use crate::tree::Tree;

pub struct Package {
    pub name: String,
    pub folder: PathBuf,
    pub manifest: Table,
}

impl Package {
    /// The module trees of the library and of the program, whichever there are.
    pub fn trees(&self, base: &Path) -> Result<Vec<Tree>> {
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| self.folder.join(root));
        roots.iter().filter(|root| root.is_file()).map(|root| Tree::read(base, root)).collect()
    }
}

pub fn packages(root: &Path) -> Result<Vec<Package>> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let members = manifest.get("workspace").and_then(|workspace| workspace.get("members"));
    let members =
        members.and_then(|members| members.as_array()).context("Cargo.toml lists no workspace members")?;
    members.iter().filter_map(|member| member.as_str()).map(|member| package(&root.join(member))).collect()
}

fn package(folder: &Path) -> Result<Package> {
    let manifest = read(&folder.join("Cargo.toml"))?;
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let name = name.with_context(|| format!("{}/Cargo.toml names no package", folder.display()))?.to_owned();
    // Without the "." that stands for the package at the root.
    Ok(Package { name, folder: folder.components().collect(), manifest })
}

pub fn read(file: &Path) -> Result<Table> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.parse().with_context(|| format!("cannot parse {}", file.display()))
}
