//! Which files of a crate name which, and the import cycles among them.
//!
//! ```text
//!   use crate::a::{B, c::D};   crate::a::f()   super::g()   child::h()        what a file names
//!     └─ modules are followed to their files, re-exports to the file that defines the item
//! ```
//!
//! A file depends on the file that *defines* what it names: a re-export that its own file does not use is no
//! dependency, and whoever names an item through one depends on the item's file alone. Methods are not seen:
//! what counts is what must be named. Paths inside inline modules are read as if they stood in the file
//! itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::source::all_sources;

/// The files of one crate, and for each the files that it depends on.
pub(crate) struct Imports {
    /// Relative to the root of the checkout.
    pub(crate) files: Vec<String>,
    /// By file, the places of the files that it names.
    pub(crate) named: Vec<BTreeSet<usize>>,
}

/// One path of a `use` declaration, and the name that it binds.
struct Binding {
    path: Vec<String>,
    /// `*` for a glob import.
    name: String,
    is_public: bool,
}

/// A file as a module: what it binds, what it defines and what it names.
struct Module {
    /// The names of the modules from the root of the crate.
    path: Vec<String>,
    bindings: Vec<Binding>,
    /// Paths that stand in code, outside of `use` declarations.
    paths: Vec<Vec<String>>,
    defined: BTreeSet<String>,
    /// All identifiers outside of `use` declarations.
    words: BTreeSet<String>,
}

/// All modules of a crate, with the file of each module path.
struct Crate {
    modules: Vec<Module>,
    by_path: BTreeMap<Vec<String>, usize>,
}

/// What a path leads to.
#[derive(Clone, Copy)]
enum Target {
    /// A module itself.
    Module(usize),
    /// An item of a module.
    Item(usize),
}

/// How many re-exports are followed, one through another.
const HOPS: usize = 8;

impl Imports {
    /// Reads the crate whose sources stand in this folder, which ends in a slash.
    pub(crate) fn of(folder: &str) -> Self {
        let sources = all_sources().filter(|file| file.path.starts_with(folder) && file.is_product());
        let (files, texts): (Vec<_>, Vec<_>) = sources
            .map(|file| (file.path.clone(), file.product().to_owned()))
            .unzip();
        let library = files.contains(&format!("{folder}lib.rs"));
        let root = if library { "lib" } else { "main" };
        let inside = |file: &String| file[folder.len()..].trim_end_matches(".rs").to_owned();
        let paths = files.iter().map(|file| match inside(file) {
            name if name == root => Vec::new(),
            name => name.split('/').map(str::to_owned).collect(),
        });
        let paths: Vec<Vec<String>> = paths.collect();
        let found = Crate::new(paths, &texts);
        let named = (0..files.len()).map(|module| found.named_by(module)).collect();
        Self { files, named }
    }

    /// The import cycles: groups of files each of which depends on all others of its group.
    pub(crate) fn cycles(&self) -> Vec<Vec<usize>> {
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| self.reached(file)).collect();
        let mut cycles: Vec<Vec<usize>> = Vec::new();
        for file in 0..self.files.len() {
            if !reached[file].contains(&file) || cycles.iter().flatten().any(|known| *known == file) {
                continue;
            }
            let others = reached[file]
                .iter()
                .filter(|other| reached[**other].contains(&file));
            cycles.push(others.copied().collect());
        }
        cycles
    }

    /// A cycle in words: its files, each with those of the cycle that it names.
    pub(crate) fn told(&self, cycle: &[usize]) -> String {
        let line = |file: &usize| {
            let named = self.named[*file].iter().filter(|other| cycle.contains(other));
            let named: Vec<&str> = named.map(|other| self.files[*other].as_str()).collect();
            format!("  {} names {}", self.files[*file], named.join(", "))
        };
        let lines: Vec<String> = cycle.iter().map(line).collect();
        format!("a cycle of {} files:\n{}", cycle.len(), lines.join("\n"))
    }

    /// Whatever a file depends on, directly or not.
    fn reached(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<usize> = self.named[file].iter().copied().collect();
        while let Some(next) = open.pop() {
            if reached.insert(next) {
                open.extend(&self.named[next]);
            }
        }
        reached
    }
}

impl Crate {
    fn new(paths: Vec<Vec<String>>, texts: &[String]) -> Self {
        let by_path: BTreeMap<_, _> = paths.iter().cloned().zip(0..).collect();
        let modules = paths
            .into_iter()
            .zip(texts)
            .map(|(path, text)| Module::read(path, text));
        Self {
            modules: modules.collect(),
            by_path,
        }
    }

    /// The modules that a module depends on.
    fn named_by(&self, module: usize) -> BTreeSet<usize> {
        let mut named = BTreeSet::new();
        let this = &self.modules[module];
        for binding in &this.bindings {
            let is_used = !binding.is_public || this.words.contains(&binding.name);
            // What is named through a module is found where it is named.
            match self.resolve(module, &binding.path, HOPS) {
                Some(Target::Item(file)) if is_used => named.insert(file),
                Some(Target::Module(file)) if is_used && binding.name == "*" => named.insert(file),
                _ => false,
            };
        }
        for path in &this.paths {
            if let Some(Target::Item(file) | Target::Module(file)) = self.resolve(module, path, HOPS) {
                named.insert(file);
            }
        }
        named.remove(&module);
        named
    }

    /// Follows a path from a module; none if it leaves the crate.
    fn resolve(&self, from: usize, path: &[String], hops: usize) -> Option<Target> {
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => *self.by_path.get(&[][..])?,
            "self" => from,
            "super" => self.parent(from)?,
            name => match self.within(from, name, hops)? {
                Target::Module(module) => module,
                item => return Some(item),
            },
        };
        for name in rest {
            at = match name.as_str() {
                "self" | "*" => at,
                "super" => self.parent(at)?,
                name => match self.within(at, name, hops) {
                    Some(Target::Module(module)) => module,
                    Some(item) => return Some(item),
                    // A re-export from another crate, or what a macro defines.
                    None if self.binding(at, name).is_some() => return None,
                    None => return Some(Target::Item(at)),
                },
            };
        }
        Some(Target::Module(at))
    }

    /// What a name means in a module: a part of it, something it binds, something it defines.
    fn within(&self, module: usize, name: &str, hops: usize) -> Option<Target> {
        let mut child = self.modules[module].path.clone();
        child.push(name.to_owned());
        if let Some(child) = self.by_path.get(&child) {
            return Some(Target::Module(*child));
        }
        let hops = hops.checked_sub(1)?;
        if let Some(binding) = self.binding(module, name) {
            return self.resolve(module, &binding.path, hops);
        }
        if self.modules[module].defined.contains(name) {
            return Some(Target::Item(module));
        }
        let globs = self.modules[module].bindings.iter();
        let mut globs = globs.filter(|binding| binding.name == "*");
        globs.find_map(|glob| match self.resolve(module, &glob.path, hops)? {
            Target::Module(other) if other != module => self.within(other, name, hops),
            _ => None,
        })
    }

    fn binding(&self, module: usize, name: &str) -> Option<&Binding> {
        let mut bindings = self.modules[module].bindings.iter();
        // A binding of a name to a path that begins with it (`use serde;`) leads nowhere.
        bindings.find(|binding| binding.name == name && binding.path.first().is_some_and(|it| it != name))
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let (_, parent) = self.modules[module].path.split_last()?;
        self.by_path.get(parent).copied()
    }
}

impl Module {
    fn read(path: Vec<String>, text: &str) -> Self {
        let tokens = tokens(text);
        let mut module = Self {
            path,
            bindings: Vec::new(),
            paths: Vec::new(),
            defined: BTreeSet::new(),
            words: BTreeSet::new(),
        };
        let mut at = 0;
        while at < tokens.len() {
            at = module.item(&tokens, at);
        }
        module
    }

    /// Reads on from a token, and tells where to go on.
    fn item(&mut self, tokens: &[&str], at: usize) -> usize {
        let before = |back: usize| at.checked_sub(back).map_or("", |at| tokens[at]);
        if tokens[at] == "use" {
            let end = at + tokens[at..].iter().position(|it| *it == ";").unwrap_or(0);
            let is_public = before(1) == "pub" || before(1) == ")" && (before(4) == "pub");
            self.bind(&tokens[at + 1..end.max(at + 1)], &[], is_public);
            return end.max(at) + 1;
        }
        if !is_name(tokens[at]) {
            return at + 1;
        }
        if DEFINING.contains(&before(1)) || before(1) == "!" && before(2) == "macro_rules" {
            self.defined.insert(tokens[at].to_owned());
            return at + 1;
        }
        let mut path = vec![tokens[at].to_owned()];
        let mut next = at + 1;
        while tokens.get(next) == Some(&"::") && tokens.get(next + 1).is_some_and(|it| is_name(it)) {
            path.push(tokens[next + 1].to_owned());
            next += 2;
        }
        self.words.extend(path.first().cloned());
        if path.len() > 1 && before(1) != "::" {
            self.paths.push(path);
        }
        next
    }

    /// Reads the tree of a `use` declaration below a prefix.
    fn bind(&mut self, tree: &[&str], prefix: &[String], is_public: bool) {
        let mut path = prefix.to_vec();
        for (at, token) in tree.iter().enumerate() {
            match *token {
                "{" => {
                    let inner = &tree[at + 1..tree.len().saturating_sub(1).max(at + 1)];
                    branches(inner)
                        .into_iter()
                        .for_each(|branch| self.bind(branch, &path, is_public));
                    return;
                }
                "as" => break,
                "::" => {}
                name => path.push(name.to_owned()),
            }
        }
        let renamed = tree
            .iter()
            .position(|it| *it == "as")
            .and_then(|at| tree.get(at + 1));
        let own = path.iter().rev().find(|name| *name != "self");
        let name = renamed.map(|name| (*name).to_owned()).or_else(|| own.cloned());
        let Some(name) = name.filter(|_| path.len() > prefix.len()) else {
            return;
        };
        self.bindings.push(Binding {
            path,
            name,
            is_public,
        });
    }
}

/// What stands before the name of an item that is defined.
const DEFINING: [&str; 9] = [
    "fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod",
];

/// The parts of a list, cut at the commas that stand in no braces.
fn branches<'t>(tokens: &'t [&'t str]) -> Vec<&'t [&'t str]> {
    let mut depth = 0_usize;
    let cut = tokens.split(|token| {
        match *token {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        *token == "," && depth == 0
    });
    cut.filter(|branch| !branch.is_empty()).collect()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|it: char| it.is_alphabetic() || it == '_')
}

/// Names, `::` and single signs; whatever else there is between them does not matter here.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
        let length = match word.unwrap_or(rest.len()) {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            length => length,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

#[cfg(test)]
mod checks {
    use super::*;

    fn named(files: &[(&str, &str)]) -> Vec<String> {
        let path = |name: &str| match name {
            "lib" => Vec::new(),
            name => name.split('/').map(str::to_owned).collect(),
        };
        let paths = files.iter().map(|(name, _)| path(name)).collect();
        let texts: Vec<String> = files.iter().map(|(_, text)| (*text).to_owned()).collect();
        let found = Crate::new(paths, &texts);
        let edges = (0..files.len()).flat_map(|from| {
            let named = found.named_by(from).into_iter();
            named.map(move |to| format!("{} > {}", files[from].0, files[to].0))
        });
        edges.collect()
    }

    #[test]
    fn a_file_depends_on_the_file_that_defines_what_it_names() {
        let files = [
            ("lib", "pub mod a; mod b; pub use a::part::Part;"),
            (
                "a",
                "mod part; pub use part::{Part, other as renamed}; pub struct Own;",
            ),
            ("a/part", "use super::Own; pub struct Part; pub fn other() {}"),
            (
                "b",
                "use crate::{a::{Own, renamed}, Part}; use std::fmt; fn f() -> fmt::Result { g() }",
            ),
        ];
        assert_eq!(named(&files), ["a/part > a", "b > a", "b > a/part"]);
    }

    #[test]
    fn paths_in_code_and_through_modules_count() {
        let files = [
            ("lib", "mod a; mod b; mod c;"),
            (
                "a",
                "use crate::b; fn f() { b::inner::g(); super::c::h::<u8>(); }",
            ),
            ("b", "pub mod inner; fn f() { inner::g(); x::inner::y(); }"),
            ("b/inner", "pub fn g() {}"),
            (
                "c",
                "pub use crate::b::inner::*; fn f() { self::g() } use crate::a as _;",
            ),
        ];
        assert_eq!(
            named(&files),
            ["a > b/inner", "a > c", "b > b/inner", "c > b/inner"]
        );
    }

    #[test]
    fn a_reexport_that_is_used_is_a_dependency() {
        let files = [
            ("lib", "mod a;"),
            ("a", "mod b; pub use b::B; fn f(b: B) {}"),
            ("a/b", "use super::*; pub struct B;"),
        ];
        assert_eq!(named(&files), ["a > a/b", "a/b > a"]);
    }

    #[test]
    fn cycles_are_found_whole() {
        let named = [vec![1], vec![2], vec![0, 3], vec![], vec![3, 5], vec![4]];
        let imports = Imports {
            files: ["a", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec(),
            named: named.map(|named| named.into_iter().collect()).to_vec(),
        };
        assert_eq!(imports.cycles(), [vec![0, 1, 2], vec![4, 5]]);
        assert!(imports.told(&[4, 5]).contains("e names f"));
    }
}
