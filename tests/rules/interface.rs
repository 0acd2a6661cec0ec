//! The public interface of the library, compared with `tests/data/interface.txt`.
//!
//! A change to the public names shows in the diff of that file, and in a commit that mentions it:
//! `GOLDEN=write cargo test --test rules interface` renews the file. The interface is read from the source:
//! each public item under the path by which it is reached, without bodies, docs and private fields, with the
//! methods and traits of its types. Items that are hidden in the docs are for the other crates of this
//! workspace, and not part of the interface. Items that macros generate are not seen; the library has no
//! public ones.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type, UseTree, Visibility, parse_quote};

const INTERFACE: &str = "tests/data/interface.txt";

/// A module of the source, public or not.
struct Module {
    items: Vec<Item>,
    modules: HashMap<String, Module>,
}

fn is_tested_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|name| name == "test" || name == "doctest")
    })
}

/// Reads a module and its submodules. `folder` is the folder of the files of its modules.
fn module(items: Vec<Item>, folder: &Path) -> Module {
    let mut modules = HashMap::new();
    let mut others = Vec::new();
    for item in items {
        let Item::Mod(inner) = item else {
            others.push(item);
            continue;
        };
        if is_tested_only(&inner.attrs) {
            continue;
        }
        let name = inner.ident.to_string();
        let below = folder.join(&name);
        let items = match &inner.content {
            Some((_, items)) => items.clone(),
            None => parse(&folder.join(format!("{name}.rs"))),
        };
        modules.insert(name, module(items, &below));
        others.push(Item::Mod(inner));
    }
    Module {
        items: others,
        modules,
    }
}

fn parse(file: &Path) -> Vec<Item> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        .items
}

/// The interface as sections, by the path of the public module.
#[derive(Default)]
struct Interface {
    sections: BTreeMap<String, Vec<Item>>,
    /// The section of each reached item, by its definition.
    reached: HashMap<Definition, String>,
}

/// A module of the source and a name in it.
type Definition = (Vec<String>, String);

impl Interface {
    /// Adds the public items of a module that is reached by a path.
    fn module(&mut self, root: &Module, at: &[String], path: &str) {
        let module = below(root, at).expect("a module");
        for item in &module.items {
            match item {
                Item::Mod(inner) if is_public(&inner.vis) => {
                    let name = inner.ident.to_string();
                    self.module(
                        root,
                        &[at, std::slice::from_ref(&name)].concat(),
                        &format!("{path}::{name}"),
                    );
                }
                Item::Use(inner) if is_public(&inner.vis) => {
                    for (segments, name) in leaves(&inner.tree, &[]) {
                        self.reexported(root, at, &segments, &name, path);
                    }
                }
                item => self.item(item, at, None, path),
            }
        }
    }

    fn reexported(&mut self, root: &Module, at: &[String], segments: &[String], name: &str, path: &str) {
        let (target, last) = resolved(at, segments);
        let Some(module) = below(root, &target) else {
            let segments = segments.join("::");
            let line = syn::parse_str(&format!("pub use {segments} as {name};")).expect("a use");
            self.sections.entry(path.to_owned()).or_default().push(line);
            return;
        };
        if module.modules.contains_key(&last) {
            return self.module(root, &[&target[..], &[last]].concat(), &format!("{path}::{name}"));
        }
        let items: Vec<&Item> = module.items.iter().filter(|item| is_named(item, &last)).collect();
        for item in &items {
            self.item(item, &target, (name != last).then_some(name), path);
        }
        if items.is_empty() {
            let again = module.items.iter().filter_map(|item| match item {
                Item::Use(inner) => leaves(&inner.tree, &[])
                    .into_iter()
                    .find(|(_, found)| *found == last),
                _ => None,
            });
            for (segments, _) in again.collect::<Vec<_>>() {
                self.reexported(root, &target, &segments, name, path);
            }
        }
    }

    /// Adds a public item that is defined in a module.
    fn item(&mut self, item: &Item, at: &[String], renamed: Option<&str>, path: &str) {
        let Some(mut item) = stripped(item) else {
            return;
        };
        if let Some(name) = name_of(&mut item) {
            let definition = (at.to_vec(), name.to_string());
            self.reached.entry(definition).or_insert_with(|| path.to_owned());
            if let Some(renamed) = renamed {
                *name = syn::Ident::new(renamed, name.span());
            }
        }
        self.sections.entry(path.to_owned()).or_default().push(item);
    }

    /// Adds the methods of public types in a module and its submodules, and the traits that they implement.
    fn implementations(&mut self, root: &Module, at: &[String]) {
        let module = below(root, at).expect("a module");
        for item in &module.items {
            if let Item::Impl(found) = item
                && let Type::Path(to) = &*found.self_ty
                && let Some(path) = self.section(root, at, &to.path).cloned()
                && !self.is_of_hidden_trait(root, at, found)
                && let Some(kept) = kept(found)
            {
                self.sections.entry(path).or_default().push(Item::Impl(kept));
            }
        }
        let mut below: Vec<&String> = module.modules.keys().collect();
        below.sort();
        for name in below {
            self.implementations(root, &[at, std::slice::from_ref(name)].concat());
        }
    }

    /// Returns the section of the type that is named in a module.
    fn section(&self, root: &Module, at: &[String], named: &syn::Path) -> Option<&String> {
        self.reached.get(&definition(root, at, &segments(named), 8)?)
    }

    /// Returns `true` if a trait is the library's own and users cannot name it.
    fn is_of_hidden_trait(&self, root: &Module, at: &[String], found: &ItemImpl) -> bool {
        found.trait_.as_ref().is_some_and(|(_, named, _)| {
            definition(root, at, &segments(named), 8).is_some_and(|one| !self.reached.contains_key(&one))
        })
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments
        .iter()
        .map(|segment| segment.ident.to_string())
        .collect()
}

/// Returns the definition of the item that a path in a module names, following at most this many imports, or
/// `None` if it belongs to another crate.
fn definition(root: &Module, at: &[String], segments: &[String], imports: usize) -> Option<Definition> {
    let (target, last) = resolved(at, segments);
    let module = below(root, &target);
    if let Some(module) = module {
        if module.items.iter().any(|item| is_called(item, &last)) {
            return Some((target, last));
        }
        if imports == 0 {
            return None;
        }
        if let Some(path) = imported(module, &last) {
            return definition(root, &target, &path, imports - 1);
        }
    }
    // The first of several segments may be imported: `forms::Shape`.
    let (first, rest) = segments.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let path = imported(below(root, at)?, first)?;
    definition(root, at, &[&path, rest].concat(), imports.checked_sub(1)?)
}

/// Returns the path by which a module imports a name.
fn imported(module: &Module, name: &str) -> Option<Vec<String>> {
    let imports = module.items.iter().filter_map(|item| match item {
        Item::Use(inner) if !is_glob(&inner.tree) => Some(leaves(&inner.tree, &[])),
        _ => None,
    });
    imports
        .flatten()
        .find(|(_, found)| found == name)
        .map(|(path, _)| path)
}

fn is_glob(tree: &UseTree) -> bool {
    match tree {
        UseTree::Path(path) => is_glob(&path.tree),
        UseTree::Group(group) => group.items.iter().any(is_glob),
        UseTree::Glob(_) => true,
        UseTree::Name(_) | UseTree::Rename(_) => false,
    }
}

/// Returns `true` if an item is defined under a name, public or not.
fn is_called(item: &Item, name: &str) -> bool {
    name_of(&mut item.clone()).is_some_and(|found| found == name)
}

fn below<'m>(root: &'m Module, path: &[String]) -> Option<&'m Module> {
    path.iter()
        .try_fold(root, |module, name| module.modules.get(name))
}

/// Returns the target of a path in a module: the target's module, and its name there.
fn resolved(at: &[String], segments: &[String]) -> (Vec<String>, String) {
    let (last, segments) = segments.split_last().expect("a path");
    let mut target = match segments.first().map(String::as_str) {
        Some("crate") => at
            .first()
            .filter(|name| is_crate(name))
            .cloned()
            .into_iter()
            .collect(),
        Some(name) if is_crate(name) => Vec::new(),
        _ => at.to_vec(),
    };
    for segment in segments {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(target.pop()),
            name => target.push(name.to_owned()),
        }
    }
    (target, last.clone())
}

/// The crates whose items the library re-exports, and their folders. They are read as private modules of the
/// library.
const CRATES: [(&str, &str); 3] = [
    ("lexiform_automata", "automata/src"),
    ("lexiform_law", "law/src"),
    ("lexiform_syntax", "syntax/src"),
];

fn is_crate(name: &str) -> bool {
    CRATES.iter().any(|(known, _)| *known == name)
}

fn leaves(tree: &UseTree, before: &[String]) -> Vec<(Vec<String>, String)> {
    let with = |name: String| [before, &[name]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(path.ident.to_string())),
        UseTree::Name(name) => vec![(with(name.ident.to_string()), name.ident.to_string())],
        UseTree::Rename(rename) => vec![(with(rename.ident.to_string()), rename.rename.to_string())],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| leaves(tree, before)).collect(),
        UseTree::Glob(_) => panic!("the library re-exports items by their names"),
    }
}

/// Returns `true` if an item is hidden in the docs.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("doc")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|name| name == "hidden")
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_named(item: &Item, name: &str) -> bool {
    stripped(item).is_some_and(|mut item| name_of(&mut item).is_some_and(|found| found == name))
}

fn name_of(item: &mut Item) -> Option<&mut syn::Ident> {
    match item {
        Item::Struct(item) => Some(&mut item.ident),
        Item::Enum(item) => Some(&mut item.ident),
        Item::Trait(item) => Some(&mut item.ident),
        Item::Type(item) => Some(&mut item.ident),
        Item::Fn(item) => Some(&mut item.sig.ident),
        Item::Const(item) => Some(&mut item.ident),
        Item::Static(item) => Some(&mut item.ident),
        _ => None,
    }
}

/// Keeps the attributes that matter to users.
fn seen(attributes: &mut Vec<Attribute>) {
    let kept = ["derive", "non_exhaustive", "must_use", "deprecated"];
    attributes.retain(|attribute| kept.iter().any(|name| attribute.path().is_ident(name)));
}

/// Keeps the public fields, and adds a field that says so if there are others.
fn seen_fields(fields: &mut Fields) {
    match fields {
        Fields::Named(named) => {
            let all = named.named.len();
            named.named = std::mem::take(&mut named.named)
                .into_iter()
                .filter(|field| is_public(&field.vis))
                .collect();
            if named.named.len() < all {
                named.named.push(parse_quote!(_private: ()));
            }
        }
        Fields::Unnamed(unnamed) if !unnamed.unnamed.iter().all(|field| is_public(&field.vis)) => {
            *unnamed = parse_quote!((()));
        }
        _ => {}
    }
    fields.iter_mut().for_each(|field| seen(&mut field.attrs));
}

/// Returns a public item without its private parts.
fn stripped(item: &Item) -> Option<Item> {
    if matches!(item, Item::Fn(inner) if is_hidden(&inner.attrs)) {
        return None;
    }
    let mut item = item.clone();
    match &mut item {
        Item::Struct(inner) if is_public(&inner.vis) => {
            seen(&mut inner.attrs);
            seen_fields(&mut inner.fields);
        }
        Item::Enum(inner) if is_public(&inner.vis) => {
            seen(&mut inner.attrs);
            for variant in &mut inner.variants {
                seen(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|field| seen(&mut field.attrs));
            }
        }
        Item::Trait(inner) if is_public(&inner.vis) => {
            seen(&mut inner.attrs);
            for item in &mut inner.items {
                match item {
                    TraitItem::Fn(inner) => {
                        seen(&mut inner.attrs);
                        inner.default = inner.default.is_some().then(|| parse_quote!({}));
                    }
                    TraitItem::Const(inner) => seen(&mut inner.attrs),
                    TraitItem::Type(inner) => seen(&mut inner.attrs),
                    _ => {}
                }
            }
        }
        Item::Type(inner) if is_public(&inner.vis) => seen(&mut inner.attrs),
        Item::Fn(inner) if is_public(&inner.vis) => {
            seen(&mut inner.attrs);
            inner.block = parse_quote!({});
        }
        Item::Const(inner) if is_public(&inner.vis) => seen(&mut inner.attrs),
        Item::Static(inner) if is_public(&inner.vis) => seen(&mut inner.attrs),
        _ => return None,
    }
    Some(item)
}

/// Returns the part of an `impl` of a public type that users see.
fn kept(found: &ItemImpl) -> Option<ItemImpl> {
    let mut found = found.clone();
    seen(&mut found.attrs);
    if found.trait_.is_some() {
        found.items.retain(|item| matches!(item, ImplItem::Type(_)));
        return Some(found);
    }
    if is_hidden(&found.attrs) {
        return None;
    }
    found.items.retain_mut(|item| match item {
        ImplItem::Fn(inner) => {
            let is_hidden = is_hidden(&inner.attrs);
            seen(&mut inner.attrs);
            inner.block = parse_quote!({});
            is_public(&inner.vis) && !is_hidden
        }
        ImplItem::Const(inner) => {
            seen(&mut inner.attrs);
            is_public(&inner.vis)
        }
        _ => false,
    });
    (!found.items.is_empty()).then_some(found)
}

#[test]
fn the_public_interface_is_that_of_the_file() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = |source: &str| {
        let source = folder.join(source);
        module(parse(&source.join("lib.rs")), &source)
    };
    let mut root = read("src");
    for (name, source) in CRATES {
        root.modules.insert(name.to_owned(), read(source));
    }
    let mut interface = Interface::default();
    interface.module(&root, &[], "lexiform");
    interface.implementations(&root, &[]);
    let mut found = String::new();
    for (path, items) in interface.sections {
        let file = syn::File {
            shebang: None,
            attrs: Vec::new(),
            items,
        };
        found += &format!("// {path}\n\n{}\n", prettyplease::unparse(&file));
    }
    let file = folder.join(INTERFACE);
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&file, &found).expect("the file can be written");
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    let changed = found
        .lines()
        .zip(expected.lines())
        .position(|(one, other)| one != other);
    let line = changed.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    assert!(
        found == expected,
        "the public interface is no longer that of {INTERFACE}, from line {} on:\n  {}\nwhere the file has\n  {}\nGOLDEN=write writes it anew",
        line + 1,
        found.lines().nth(line).unwrap_or_default(),
        expected.lines().nth(line).unwrap_or_default(),
    );
}
