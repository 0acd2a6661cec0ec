//! A fixed set of compiles and masks, whose instructions are counted: `cargo xtask counts`.
//!
//! Times differ by a tenth from run to run, so that a slow change goes unseen; counts of instructions
//! differ by a thousandth. This program does the work, and valgrind's callgrind counts the instructions
//! within each call of [`counted`]. `xtask/src/check/counts.rs` reads the counts and compares them with
//! `benches/record/counts.tsv`. The names of the counted parts are printed in their order.
//!
//! ```text
//!   schemas/, grammars/, benches/counts/ ──► for each: compile; step and mask for each token of its texts
//! ```
//!
//! All of it is in this repository, so that the counts are the same everywhere: also the vocabulary, which is
//! that of the demo model. Each source is compiled by a compiler that is primed with JSON and knows no other
//! source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lexiform::grammar::Notation;
use lexiform::schema::KeyOrder;
use lexiform::vocab::Tokenizer;
use lexiform::{Compiler, Grammar, Options, Source};

/// The token that ends a text, in the vocabulary of the demo model.
const END: u32 = 1;

/// A source with the texts that it allows.
struct Case {
    name: String,
    /// The notation of a grammar; `None` for a JSON Schema.
    notation: Option<Notation>,
    source: String,
    texts: Vec<String>,
}

/// Runs a piece of work. Callgrind counts the instructions of this function, which it finds by name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bytes =
        std::fs::read(root.join("models/demo/tokenizer.json")).expect("the tokenizer of the demo model");
    let tokenizer = Tokenizer::from_bytes(&bytes).expect("a tokenizer file");
    let vocabulary = Arc::new(tokenizer.vocabulary(&[END]).expect("a vocabulary"));
    let mut options = Options::default();
    options.schema.key_order = KeyOrder::Any;
    let mut compiler = None;
    println!("vocabulary\tprime");
    counted(&mut || compiler = Compiler::new(vocabulary.clone()).primed(&options).ok());
    let compiler = compiler.expect("what compilers are primed with compiles");
    for case in schemas(root).chain(grammars(root)) {
        count(&case, &compiler.fresh(), &options, &tokenizer);
    }
}

/// Compiles a source and walks its texts.
fn count(case: &Case, compiler: &Compiler, options: &Options, tokenizer: &Tokenizer) {
    let mut options = options.clone();
    options.grammar.notation = case.notation;
    let source = match case.notation {
        Some(_) => Source::Grammar(&case.source),
        None => Source::JsonSchema(&case.source),
    };
    let texts = case.texts.iter().filter_map(|text| tokenizer.encode(text).ok());
    let texts: Vec<Vec<u32>> = texts.collect();
    let mut compiled = None;
    println!("{}\tcompile", case.name);
    counted(&mut || compiled = compiler.compile(source, &options).ok());
    let Some((grammar, _)) = compiled else { return };
    println!("{}\tmasks", case.name);
    counted(&mut || texts.iter().for_each(|tokens| walk(&grammar, tokens)));
}

/// Walks a text as far as it is allowed, with the mask at each position.
fn walk(grammar: &Grammar, tokens: &[u32]) {
    let mut state = grammar.start();
    std::hint::black_box(grammar.mask(state));
    for &token in tokens {
        let Some(next) = grammar.step(state, token) else {
            return;
        };
        std::hint::black_box(grammar.mask(next));
        state = next;
    }
}

/// Returns the schemas of `schemas/`, and the longer ones of `benches/counts/`.
fn schemas(root: &Path) -> impl Iterator<Item = Case> {
    let folders = sorted(&root.join("schemas")).into_iter();
    let folders = folders.chain(sorted(&root.join("benches/counts")));
    folders
        .filter(|folder| folder.join("schema.json").is_file())
        .map(|folder| Case {
            name: named(&folder),
            notation: None,
            source: read(&folder.join("schema.json")),
            texts: read(&folder.join("valid.jsonl"))
                .lines()
                .map(str::to_owned)
                .collect(),
        })
}

/// Returns the grammars of `grammars/`.
fn grammars(root: &Path) -> impl Iterator<Item = Case> {
    sorted(&root.join("grammars")).into_iter().filter_map(|folder| {
        let file = |notation: &Notation| folder.join(format!("grammar.{notation}"));
        let notation = Notation::all().find(|notation| file(notation).is_file())?;
        let accepted = read(&folder.join("accept.txt"));
        let texts = accepted
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        Some(Case {
            name: named(&folder),
            notation: Some(notation),
            source: read(&file(&notation)),
            texts: texts.collect(),
        })
    })
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn named(folder: &Path) -> String {
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns the text of a file, empty if there is none.
fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}
