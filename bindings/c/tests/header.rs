//! Compares the header with the sources: the same functions, with the same number and kinds of arguments.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each function with its signature in a common form: the result first, then the arguments.
type Functions = BTreeMap<String, Vec<String>>;

fn in_sources() -> Functions {
    let mut functions = Functions::new();
    for file in [
        "boundary",
        "vocabulary",
        "compiler",
        "grammar",
        "session",
        "project",
        "answers",
    ] {
        let text = read(&format!("src/{file}.rs"));
        for part in text.split("extern \"C\" fn ").skip(1) {
            let (name, rest) = part.split_once('(').expect("arguments");
            let (arguments, rest) = rest.split_once(')').expect("an end of the arguments");
            let result = rest.split('{').next().unwrap_or_default().trim();
            let result = result.strip_prefix("->").unwrap_or("()").trim();
            let arguments = arguments
                .split(',')
                .filter_map(|argument| argument.split_once(':'));
            let mut signature = vec![rust(result)];
            signature.extend(arguments.map(|(_, kind)| rust(kind)));
            functions.insert(name.to_owned(), signature);
        }
    }
    functions
}

/// Returns the C spelling of a Rust type.
fn rust(kind: &str) -> String {
    let kind = kind.trim();
    if let Some(inner) = kind.strip_prefix("*mut ") {
        return rust(inner) + "*";
    }
    if let Some(inner) = kind.strip_prefix("*const ") {
        return format!("const {}*", rust(inner));
    }
    let known = [
        ("()", "void"),
        ("c_char", "char"),
        ("u8", "uint8_t"),
        ("u32", "uint32_t"),
        ("i32", "int32_t"),
        ("i64", "int64_t"),
        ("usize", "size_t"),
        ("bool", "bool"),
        ("Status", "int32_t"),
        ("VocabularyHandle", "lexiform_vocabulary"),
        ("CompilerHandle", "lexiform_compiler"),
        ("GrammarHandle", "lexiform_grammar"),
        ("SessionHandle", "lexiform_session"),
        ("ProjectionHandle", "lexiform_projection"),
        ("ReaderHandle", "lexiform_answer_reader"),
        ("RowOfC", "lexiform_row"),
    ];
    let found = known.iter().find(|(name, _)| *name == kind);
    found
        .unwrap_or_else(|| panic!("{kind} has no name in C"))
        .1
        .to_owned()
}

fn in_header() -> Functions {
    let text = read("include/lexiform.h");
    let mut functions = Functions::new();
    let declarations = text
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with(' '));
    for line in declarations {
        let (before, arguments) = line.trim_end_matches(");").split_once('(').expect("arguments");
        let (result, name) = declared(before);
        let mut signature = vec![result];
        let arguments = arguments.split(", ").filter(|argument| *argument != "void");
        signature.extend(arguments.map(|argument| declared(argument).0));
        functions.insert(name, signature);
    }
    functions
}

/// Splits a declaration such as `const char *text` into its type and name.
fn declared(text: &str) -> (String, String) {
    let at = text.rfind([' ', '*']).expect("a type and a name") + 1;
    let kind = text[..at].replace(' ', "").replace("const", "const ");
    let kind = kind
        .replace("lexiform_state", "uint32_t")
        .replace("lexiform_status", "int32_t");
    (kind, text[at..].to_owned())
}

#[test]
fn the_header_declares_what_the_library_has() {
    let (sources, header) = (in_sources(), in_header());
    assert!(sources.len() > 25, "{} functions were found", sources.len());
    assert_eq!(header, sources);
}

#[test]
fn every_function_of_the_header_is_called_by_a_test() {
    let calls = read("tests/programs/calls.c") + &read("tests/programs/digests.c");
    for name in in_header().keys() {
        assert!(calls.contains(&format!("{name}(")), "{name}");
    }
}
