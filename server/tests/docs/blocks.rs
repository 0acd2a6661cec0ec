//! The pages of the documentation, and the fenced blocks of a page.

use std::path::{Path, PathBuf};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package
        .parent()
        .expect("the server lies in the checkout")
        .to_owned()
}

/// The text of a file of the checkout.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pages in `docs/src`, in the order of their names.
pub(crate) fn pages() -> Vec<PathBuf> {
    let folder = root().join("docs/src");
    let entries = std::fs::read_dir(folder).expect("docs/src");
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("a page").path()).collect();
    // Pictures are in a folder of their own.
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.sort();
    pages
}

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block {
    /// The words behind the opening fence: `sh,norun`.
    pub(crate) info: String,
    /// The line of the opening fence, counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Block {
    /// Whether it is of a language and not marked `norun`.
    pub(crate) fn runs_as(&self, language: &str) -> bool {
        self.info == language
    }
}

/// The fenced blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    for (line, text) in page.lines().enumerate() {
        match (&mut open, text.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some(Block {
                    info: info.trim().to_owned(),
                    line: line + 1,
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(text);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert_eq!(open, None, "a block is not closed");
    found
}
