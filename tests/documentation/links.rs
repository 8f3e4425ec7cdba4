//! The targets of links between pages exist, and so do the pages that sources name and the sources that pages name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    assert_there(&["md"], local_links, leads_somewhere);
}

#[test]
fn every_page_that_a_source_names_is_there() {
    assert_there(&["rs", "toml", "sh", "c", "h", "md", "service", "yml"], pages, |_, path| {
        root().join(path).exists()
    });
}

#[test]
fn every_source_that_a_page_names_is_there() {
    assert_there(&["md"], quoted_sources, |_, path| root().join(path).exists());
}

#[test]
fn every_module_that_a_page_names_by_its_folder_is_there() {
    let sources = files(&["rs"]);
    assert_there(&["md"], quoted_modules, |_, path| sources.iter().any(|source| source.ends_with(path)));
}

/// Checks that everything exists that the files with these extensions name.
fn assert_there(extensions: &[&str], named: fn(&str) -> Vec<&str>, is_there: impl Fn(&Path, &str) -> bool) {
    let mut broken = Vec::new();
    for file in files(extensions) {
        let text = fs::read_to_string(&file).unwrap();
        let lost = named(&text).into_iter().filter(|name| !is_there(&file, name));
        broken.extend(lost.map(|name| format!("{}: {name}", file.strip_prefix(root()).unwrap().display())));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of the tree with one of these extensions, except those that were built, measured or generated.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    const SKIPPED: [&str; 5] = ["target", "results", "corpus", "artifacts", "golden"];
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let has_extension =
                path.extension().is_some_and(|own| extensions.iter().any(|known| own == *known));
            if entry.file_type().unwrap().is_dir() {
                let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_str());
                folders.extend((!is_skipped).then_some(path));
            } else if has_extension {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// Returns the targets of Markdown links outside blocks of code, except those of other sites.
fn local_links(text: &str) -> Vec<&str> {
    let prose = text.split("\n```").step_by(2);
    let links = prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')'));
    links.map(|(link, _)| link).filter(|link| !link.contains("://")).collect()
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
    if heading.is_empty() {
        return target.exists();
    }
    fs::read_to_string(target).is_ok_and(|text| headings(&text).contains(heading))
}

/// Returns the anchors of a page's headings.
fn headings(text: &str) -> BTreeSet<String> {
    let titles =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn pages(text: &str) -> Vec<&str> {
    paths(text, &["docs/"])
}

fn quoted_sources(text: &str) -> Vec<&str> {
    const FOLDERS: [&str; 4] = ["crates/", "experiments/", "packaging/", "peers/"];
    let is_path = |quoted: &&str| FOLDERS.iter().any(|folder| quoted.starts_with(folder));
    let quoted = text.split('`').skip(1).step_by(2).filter(is_path);
    quoted.flat_map(|quoted| paths(quoted, &FOLDERS)).collect()
}

/// Returns quoted names of Rust files with their folder, such as `forward/mod.rs`.
fn quoted_modules(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|name| name.ends_with(".rs") && name.contains('/') && !name.contains(' ')).collect()
}

/// Returns the paths below these folders, except patterns such as `docs/algorithms/NAME.md`.
fn paths<'t>(text: &'t str, folders: &[&str]) -> Vec<&'t str> {
    let is_of_a_path = |c: char| c.is_ascii_alphanumeric() || "_./-:@*".contains(c);
    let tokens = text.split(move |c| !is_of_a_path(c));
    let local = tokens.filter(|token| !["://", "NAME", "*"].iter().any(|other| token.contains(other)));
    let below =
        |token: &'t str| folders.iter().find_map(|folder| token.find(folder)).map(|start| &token[start..]);
    let found = local.filter_map(below).map(|path| path.trim_end_matches(['.', ':']));
    found.filter(|path| !folders.contains(path)).collect()
}
