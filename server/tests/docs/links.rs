//! Whether the links of the documentation lead to files and headings that are there.

use std::path::{Path, PathBuf};

use crate::blocks::{pages, read, root};

/// The lines of a page outside of its fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The targets of the links of a page.
fn targets(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(page) {
        let parts = line.split("](").skip(1);
        found.extend(parts.filter_map(|part| part.split(')').next()).map(str::to_owned));
    }
    found
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|character| match character {
        ' ' => Some('-'),
        '-' | '_' => Some(character),
        _ if character.is_alphanumeric() => Some(character.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

fn anchors(page: &Path) -> Vec<String> {
    let text = read(page);
    let headings = prose(&text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

#[test]
fn every_local_link_leads_somewhere() {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    let mut faults = Vec::new();
    for page in top.into_iter().chain(pages()) {
        for target in targets(&read(&page)) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let file: PathBuf = match file {
                "" => page.clone(),
                _ => page.parent().expect("a folder").join(file),
            };
            let known = heading.is_empty() || file.is_file() && anchors(&file).iter().any(|it| it == heading);
            if !file.exists() || !known {
                faults.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_summary_lists_every_page() {
    let summary = root().join("docs/src/SUMMARY.md");
    let mut listed = targets(&read(&summary));
    let name = |page: &PathBuf| page.file_name().expect("a name").to_string_lossy().into_owned();
    let mut there: Vec<String> = pages()
        .iter()
        .map(name)
        .filter(|name| name != "SUMMARY.md")
        .collect();
    listed.sort();
    there.sort();
    assert_eq!(listed, there);
}

#[test]
fn anchors_are_made_of_headings() {
    assert_eq!(anchor(" Flags of the service"), "flags-of-the-service");
    assert_eq!(
        anchor(" Order of keys, and whitespace"),
        "order-of-keys-and-whitespace"
    );
}
