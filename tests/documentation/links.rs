//! Links between pages lead somewhere, and so do the places in `docs/` that sources name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let broken: Vec<String> = files(&["md"])
        .iter()
        .flat_map(|page| {
            let text = fs::read_to_string(page).unwrap();
            let links: Vec<String> = links(&text).filter(|link| !link.contains("://")).map(str::to_owned).collect();
            links.into_iter().filter(|link| !leads_somewhere(page, link)).map(|link| name(page, &link))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_that_a_source_names_is_there() {
    let broken: Vec<String> = files(&["rs", "toml", "sh", "c", "h", "md", "service", "yml"])
        .iter()
        .flat_map(|source| {
            let text = fs::read_to_string(source).unwrap();
            let mentioned: Vec<String> = mentioned(&text).map(str::to_owned).collect();
            mentioned.into_iter().filter(|page| !root().join(page).exists()).map(|page| name(source, &page))
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn name(file: &Path, link: &str) -> String {
    format!("{}: {link}", file.strip_prefix(root()).unwrap_or(file).display())
}

/// Files of the tree with one of these extensions, without what was built, measured or generated.
fn files(extensions: &[&str]) -> Vec<PathBuf> {
    const SKIPPED: [&str; 5] = ["target", "results", "corpus", "artifacts", "golden"];
    let mut found = Vec::new();
    let mut folders = vec![root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            let has_extension = path.extension().is_some_and(|own| extensions.iter().any(|known| own == *known));
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

/// Targets of Markdown links outside blocks of code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("\n```").step_by(2);
    prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link)
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.with_file_name("").join(file) };
    if heading.is_empty() {
        return target.exists();
    }
    fs::read_to_string(target).is_ok_and(|text| headings(&text).contains(heading))
}

/// The anchors that a page's headings have.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    titles.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Paths in `docs/`, except patterns such as `docs/algorithms/NAME.md`.
fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    let is_of_a_path = |c: char| c.is_ascii_alphanumeric() || "_./-:".contains(c);
    let tokens = text.split(move |c| !is_of_a_path(c));
    let local = tokens.filter(|token| !token.contains("://") && !token.contains("NAME"));
    let paths = local.filter_map(|token| token.find("docs/").map(|start| &token[start..]));
    paths.map(|path| path.trim_end_matches(['.', ':'])).filter(|path| *path != "docs/")
}
