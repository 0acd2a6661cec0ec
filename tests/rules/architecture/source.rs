//! Rust files as text that rules can be checked on.
//!
//! This is a scanner, not a parser: it knows comments, strings and braces, which is all that the rules ask
//! about.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// One file of the workspace.
pub(crate) struct SourceFile {
    /// Relative to the root of the checkout, with forward slashes.
    pub(crate) path: String,
    /// As it stands on disk.
    pub(crate) text: String,
    /// The same lines with comments and the contents of strings blanked out.
    code: String,
    /// `code` without modules and items under `#[cfg(test)]`.
    product: String,
}

/// A function as the scanner sees it.
pub(crate) struct Function {
    /// The line of its name, from 1.
    pub(crate) line: usize,
    /// Its name.
    pub(crate) name: String,
    /// Lines of its body that hold code.
    pub(crate) code_lines: usize,
    /// Whether its author wrote down why it is long, where clippy reads it.
    pub(crate) is_excused: bool,
}

/// Every Rust file of the workspace's packages.
pub(crate) fn all_sources() -> impl Iterator<Item = SourceFile> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in [
        "src", "automata", "syntax", "law", "bindings", "cli", "kernels", "engine", "server", "models",
        "xtask", "fuzz", "tests", "benches",
    ] {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    assert!(
        paths.len() > 10,
        "the sources were not found under {}",
        root.display()
    );
    paths.into_iter().map(move |path| SourceFile::read(&root, &path))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_ours = |name: &OsStr| name != "target" && name != "node_modules";
        if path.is_dir() && path.file_name().is_some_and(is_ours) {
            collect(&path, paths);
        } else if path.extension().is_some_and(|it| it == "rs") {
            paths.push(path);
        }
    }
}

impl SourceFile {
    fn read(root: &Path, path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let relative = path
            .strip_prefix(root)
            .unwrap_or(path)
            .to_string_lossy()
            .replace('\\', "/");
        Self::new(relative, text)
    }

    fn new(path: String, text: String) -> Self {
        let code = blank_comments_and_strings(&text);
        let product = blank_test_items(&code);
        Self {
            path,
            text,
            code,
            product,
        }
    }

    /// Whether this is part of what runs for a user, and no test.
    pub(crate) fn is_product(&self) -> bool {
        let mut parts = self.path.trim_end_matches(".rs").split('/');
        !parts.any(|part| ["tests", "benches"].contains(&part))
    }

    /// What runs for a user: its lines without comments, the contents of strings, and items under
    /// `#[cfg(test)]`.
    pub(crate) fn product(&self) -> &str {
        &self.product
    }

    /// The top-level module of the library that a file belongs to; none for `lib.rs` and for files of tests
    /// alone.
    pub(crate) fn library_module(&self) -> Option<String> {
        let folders = ["src/", "automata/src/", "syntax/src/", "law/src/"];
        let inside = folders.iter().find_map(|folder| self.path.strip_prefix(folder))?;
        let inside = inside.trim_end_matches(".rs");
        let module = inside.split('/').next()?;
        (self.is_product() && module != "lib").then(|| module.to_owned())
    }

    /// The first names of all paths that start at the root of a crate of the library, each with its line.
    pub(crate) fn library_paths(&self) -> Vec<(usize, String)> {
        let roots = [
            "crate::",
            "lexiform_automata::",
            "lexiform_syntax::",
            "lexiform_law::",
        ];
        let mut found = Vec::new();
        for root in roots {
            for at in self.words(root) {
                let line = self.line(at);
                first_names(&self.product[at + root.len()..], &mut |name| {
                    found.push((line, name))
                });
            }
        }
        found
    }

    /// The crates of this workspace that are named, each with its line.
    pub(crate) fn crates_named(&self) -> Vec<(usize, String)> {
        let name = |at: usize| {
            let rest = self.product[at..].chars();
            rest.take_while(|it| it.is_alphanumeric() || *it == '_')
                .collect::<String>()
        };
        let starts = self.words("lexiform_").into_iter();
        starts.map(|at| (self.line(at), name(at))).collect()
    }

    /// The places in product code where a word begins with this.
    fn words(&self, begins: &str) -> Vec<usize> {
        let found = self.product.match_indices(begins).map(|(at, _)| at);
        let starts_a_word = |at: &usize| {
            !self.product[..*at].ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == '$')
        };
        found.filter(starts_a_word).collect()
    }

    fn line(&self, at: usize) -> usize {
        1 + self.product[..at].matches('\n').count()
    }

    /// The places where product code holds one of `words`.
    pub(crate) fn lines_with(&self, words: &[&str]) -> Vec<String> {
        if self.is_product() {
            self.matching(&self.product, words)
        } else {
            Vec::new()
        }
    }

    /// The places where any code, tests too, holds one of `words`.
    pub(crate) fn lines_with_anywhere(&self, words: &[&str]) -> Vec<String> {
        self.matching(&self.code, words)
    }

    fn matching(&self, code: &str, words: &[&str]) -> Vec<String> {
        let numbered = code.lines().enumerate();
        let hits = numbered.filter_map(|(index, line)| {
            let word = words.iter().find(|word| contains_word(line, word))?;
            Some(format!("{}:{}: `{word}`", self.path, index + 1))
        });
        hits.collect()
    }

    /// Every function with a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let before = &self.code[..at];
            let name: String = self.code[at + 3..]
                .chars()
                .take_while(|it| it.is_alphanumeric() || *it == '_')
                .collect();
            if name.is_empty() || before.ends_with(|it: char| it.is_alphanumeric() || it == '_') {
                continue;
            }
            let Some(body) = body_of(&self.code[at..]) else {
                continue;
            };
            let code_lines = body
                .lines()
                .filter(|line| !line.trim().is_empty())
                .count()
                .saturating_sub(2);
            let line = 1 + before.matches('\n').count();
            functions.push(Function {
                line,
                name,
                code_lines,
                is_excused: is_excused(before),
            });
        }
        functions
    }
}

/// The attributes stand between the end of the previous item and the function.
fn is_excused(before: &str) -> bool {
    let attributes = before.rfind(['}', ';', '{']).map_or(before, |at| &before[at..]);
    attributes.contains("expect(clippy::too_many_lines")
}

/// The text from the brace that opens a function's body to the one that closes it; none for a bare signature.
fn body_of(code: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let open = code.char_indices().find_map(|(index, it)| {
        match it {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return Some(None),
            '{' if depth == 0 => return Some(Some(index)),
            _ => {}
        }
        None
    })??;
    Some(&code[open..open + braced_length(&code[open..])])
}

/// The length of the text in braces that `code` begins with.
fn braced_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (index, it) in code.char_indices() {
        match it {
            '{' => depth += 1,
            '}' if depth == 1 => return index + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Reads `a::b`, `{a, b::{c, d}}` or `*` after `crate::` and reports the names on the first level.
fn first_names(rest: &str, report: &mut dyn FnMut(String)) {
    if !rest.starts_with('{') {
        return report(
            rest.chars()
                .take_while(|it| it.is_alphanumeric() || *it == '_' || *it == '*')
                .collect(),
        );
    }
    let mut depth = 0_usize;
    let mut name = String::new();
    for it in rest[1..braced_length(rest) - 1].chars().chain([',']) {
        match it {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let first = name
                    .split("::")
                    .next()
                    .unwrap_or("")
                    .split(" as ")
                    .next()
                    .unwrap_or("")
                    .trim();
                if !first.is_empty() {
                    report(first.to_owned());
                }
                name.clear();
            }
            _ if depth == 0 => name.push(it),
            _ => {}
        }
    }
}

/// Whether `line` holds `word` with no letter grown onto it, where the word itself begins or ends in a
/// letter.
fn contains_word(line: &str, word: &str) -> bool {
    let is_letter = |it: char| it.is_alphanumeric() || it == '_';
    line.match_indices(word).any(|(at, _)| {
        let joined_before = word.starts_with(is_letter) && line[..at].ends_with(is_letter);
        let joined_after = word.ends_with(is_letter) && line[at + word.len()..].starts_with(is_letter);
        !joined_before && !joined_after
    })
}

/// Blanks out every item that stands under `#[cfg(test)]`.
fn blank_test_items(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, item) = rest.split_at(at);
        kept.push_str(before);
        let end = match (item.find('{'), item.find(';')) {
            (Some(brace), Some(semicolon)) if semicolon < brace => semicolon + 1,
            (None, Some(semicolon)) => semicolon + 1,
            (Some(brace), _) => brace + braced_length(&item[brace..]),
            (None, None) => item.len(),
        };
        blank(&item[..end], &mut kept);
        rest = &item[end..];
    }
    kept.push_str(rest);
    kept
}

/// Appends as many lines as `text` has, and nothing on them.
fn blank(text: &str, to: &mut String) {
    to.extend(text.chars().map(|it| if it == '\n' { '\n' } else { ' ' }));
}

/// Blanks out comments and what stands between quotes; the quotes stay, so that `"{"` opens nothing.
fn blank_comments_and_strings(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(it) = rest.chars().next() {
        let length = opaque_length(rest, code.chars().next_back());
        if length == 0 {
            code.push(it);
            rest = &rest[it.len_utf8()..];
        } else {
            let (opaque, after) = rest.split_at(length);
            blank(opaque, &mut code);
            rest = after;
        }
    }
    code
}

/// The length of the comment, string or character literal that `rest` begins with; 0 if it begins with none.
fn opaque_length(rest: &str, before: Option<char>) -> usize {
    let grown_on = before.is_some_and(|it| it.is_alphanumeric() || it == '_');
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_length(rest);
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        return 1 + quoted_length(quoted, '"');
    }
    if !grown_on && let Some(length) = raw_string_length(rest) {
        return length;
    }
    if rest.starts_with('\'') {
        character_length(rest)
    } else {
        0
    }
}

fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The length up to and with the closing quote.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, it) in rest.char_indices() {
        if it == quote && !escaped {
            return index + 1;
        }
        escaped = it == '\\' && !escaped;
    }
    rest.len()
}

fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = if rest.starts_with("br") {
        2
    } else {
        usize::from(rest.starts_with('r'))
    };
    let hashes = rest[prefix..].chars().take_while(|it| *it == '#').count();
    let open = prefix + hashes;
    if prefix == 0 || !rest[open..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let length = rest[open + 1..]
        .find(&close)
        .map_or(rest.len(), |at| open + 1 + at + close.len());
    Some(length)
}

/// Tells `'a'` and `'\n'` from the lifetime `'a`.
fn character_length(rest: &str) -> usize {
    let mut inside = rest.chars().skip(1);
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => 1 + quoted_length(&rest[1..], '\''),
        (Some(it), Some('\'')) => 2 + it.len_utf8(),
        _ => 0,
    }
}

#[test]
fn the_scanner_sees_through_comments_strings_and_tests() {
    let text = "//! doc\nuse crate::{grammar::Cfg, vocab as v};\n// crate::mask\nconst A: &str = \"crate::law {\";\n\
                const B: &str = r#\"crate::draft \"quoted\"\"#;\nfn f<'a>(x: &'a str) -> char { crate::regex::g('{') }\n\
                #[cfg(test)]\nmod tests { use crate::compile; }\n";
    let file = SourceFile::new("syntax/src/schema/x.rs".to_owned(), text.to_owned());
    let named: Vec<_> = file
        .library_paths()
        .into_iter()
        .map(|(line, name)| format!("{line} {name}"))
        .collect();
    assert_eq!(named, ["2 grammar", "2 vocab", "6 regex"]);
    assert_eq!(file.library_module().as_deref(), Some("schema"));
    assert_eq!(file.functions().len(), 1);
}

#[test]
fn the_scanner_counts_the_lines_of_a_body() {
    let text =
        "fn long(\n    a: u8,\n) {\n    // why\n    a();\n\n    if b {\n        c();\n    }\n}\nfn bare();\n";
    let file = SourceFile::new("src/x.rs".to_owned(), text.to_owned());
    let functions = file.functions();
    assert_eq!(
        functions.len(),
        2 - 1,
        "a signature without a body is no function here"
    );
    assert_eq!(
        (
            functions[0].name.as_str(),
            functions[0].line,
            functions[0].code_lines
        ),
        ("long", 1, 4)
    );
}

#[test]
fn words_are_whole() {
    assert!(contains_word("use tch::Tensor;", "tch::"));
    assert!(!contains_word("use fetch::It;", "tch::"));
    assert!(!contains_word("forbid(unsafe_code)", "unsafe"));
    assert!(contains_word("unsafe {", "unsafe"));
}
