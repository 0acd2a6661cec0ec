//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a machine can check.
//!
//! Each rule is one test that reads the sources as text and lists every violation. Parts that a rule must not
//! see (comments, string contents, test modules) are blanked out first, by `architecture/source.rs`.

mod cycles;
mod loops;
mod rooms;
mod source;

use std::collections::BTreeMap;

use cycles::Imports;
use rooms::{ENGINE_ROOMS, SERVER_ROOMS, TORCH_ROOMS};
use source::{SourceFile, all_sources};

/// The crates of the library, from the bottom to the top: the folder of each, and the crates that it may
/// depend on.
const LIBRARY: [(&str, &[&str]); 4] = [
    ("automata/src/", &[]),
    ("syntax/src/", &["lexiform_automata"]),
    ("law/src/", &["lexiform_automata"]),
    ("src/", &["lexiform_automata", "lexiform_syntax", "lexiform_law"]),
];

/// The dependencies that are allowed inside the library: a module, and the other modules that it may name, in
/// its crate or another.
///
/// Every module may name `error` and `limits`. The order is that of the pipeline.
const LAYERS: [(&str, &[&str]); 27] = [
    ("error", &[]),
    ("limits", &[]),
    // The cost of a query to a grammar; it is also counted where the grammar computes the length of a loop.
    ("work", &[]),
    ("idna", &[]),
    // A language that is not regular is identified by its validator.
    ("grammar", &["idna"]),
    ("language", &["grammar", "work"]),
    ("vocab", &[]),
    ("pushdown", &["grammar", "language", "work"]),
    // The cache of compiled regular languages is keyed by their structure, which the grammar knows.
    ("mask", &["grammar", "language", "pushdown", "vocab", "work"]),
    ("budget", &["language", "pushdown", "mask", "vocab", "work"]),
    (
        "matcher",
        &["grammar", "pushdown", "mask", "budget", "vocab", "work"],
    ),
    // Corrections for misspelled words.
    ("suggest", &[]),
    ("regex", &["grammar"]),
    // Building the automaton is how it finds out whether a part of a grammar is small enough for one.
    ("notation", &["grammar", "regex", "language", "schema", "suggest"]),
    ("schema", &["grammar", "regex", "language", "idna", "suggest"]),
    // Outside the main flow: a schema is rewritten from its normal forms.
    ("project", &["schema"]),
    // If the vocabulary has a token for the beginning or end of a tag, that token is used.
    ("tags", &["grammar", "regex", "schema", "suggest", "vocab"]),
    // What models wrote in the formats of tags is read again.
    ("answer", &["schema", "tags"]),
    ("law", &["vocab"]),
    ("draft", &["vocab", "law", "matcher"]),
    // The rule that verifies a draft depends on how its tokens were chosen.
    ("verify", &["vocab", "law", "draft"]),
    // The constraints of a host in addition to a grammar, and the tokens drawn under both.
    ("monitor", &["vocab", "law", "draft", "verify", "matcher"]),
    // Outside the main flow: the nearest valid text.
    ("repair", &["pushdown", "language", "matcher", "answer"]),
    // Outside the main flow, too: whether a given text belongs, and where it leaves the language.
    ("verdict", &["matcher"]),
    // Outside the main flow, too: projections on drawn texts, and the answers to them.
    ("drawn", &["schema", "project", "vocab", "compile", "matcher"]),
    (
        "receive",
        &[
            "schema", "project", "vocab", "regex", "repair", "compile", "matcher",
        ],
    ),
    (
        "compile",
        &[
            "grammar", "vocab", "regex", "schema", "notation", "tags", "pushdown", "mask", "matcher",
        ],
    ),
];

/// The crates in which no file may depend on itself through others.
const CRATES: [&str; 14] = [
    "automata/src/",
    "syntax/src/",
    "law/src/",
    "src/",
    "bindings/c/src/",
    "bindings/node/src/",
    "chat/src/",
    "cli/src/",
    "kernels/src/",
    "engine/src/",
    "server/src/",
    "models/demo/training/src/",
    "xtask/src/",
    "bindings/python/src/",
];

/// The maximum number of files in a folder.
const FILES_IN_ROOM: usize = 15;

/// The maximum number of folders between `src` and a file.
const DEPTH: usize = 2;

/// The files that may contain `unsafe`, each with the reason.
const UNSAFE_ALLOWED: [&str; 5] = [
    // Only an allocator knows the allocated memory, and libFuzzer is C++.
    "tests/limits/allocator.rs",
    "fuzz/src/meter.rs",
    "fuzz/src/drive.rs",
    // Only the exporter of a Python buffer owns its memory.
    "bindings/python/src/buffer.rs",
    // Only JavaScript owns the memory of its arrays.
    "bindings/node/src/mask.rs",
];

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 80;
const COMMENT_COLUMNS: usize = 110;

#[test]
fn library_modules_name_only_the_layers_below() {
    let mut problems = Vec::new();
    for (file, crates) in library_sources() {
        for (line, named) in file.crates_named() {
            if !crates.contains(&named.as_str()) {
                problems.push(format!("{}:{line}: names `{named}`", file.path));
            }
        }
        let Some(module) = file.library_module() else {
            continue;
        };
        let Some((_, may_name)) = LAYERS.iter().find(|(name, _)| *name == module) else {
            problems.push(format!(
                "{}: the module `{module}` has no layer; add it to LAYERS",
                file.path
            ));
            continue;
        };
        for (line, named) in file.library_paths() {
            let named_by_all = ["error", "limits"].contains(&named.as_str()) && module != "error";
            if named != module && !named_by_all && !may_name.contains(&named.as_str()) {
                problems.push(format!("{}:{line}: `{module}` names `{named}`", file.path));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn files_depend_on_each_other_in_one_direction() {
    let mut problems = Vec::new();
    for folder in CRATES {
        let imports = Imports::of(folder);
        problems.extend(imports.cycles().iter().map(|cycle| imports.told(cycle)));
    }
    assert_none(&problems);
}

#[test]
fn server_rooms_name_only_the_rooms_below() {
    assert_none(&named_upwards(
        "server/src/",
        "server/src/",
        "SERVER_ROOMS",
        &SERVER_ROOMS,
    ));
}

#[test]
fn engine_rooms_name_only_the_rooms_below() {
    let mut problems = named_upwards("engine/src/", "engine/src/", "ENGINE_ROOMS", &ENGINE_ROOMS);
    problems.extend(named_upwards(
        "engine/src/",
        "engine/src/torch/",
        "TORCH_ROOMS",
        &TORCH_ROOMS,
    ));
    assert_none(&problems);
}

/// Returns the places at which a file of a room, which is a direct child of this folder, names a room that
/// its table does not allow.
fn named_upwards(crate_folder: &str, folder: &str, table: &str, rooms: &[(&str, &[&str])]) -> Vec<String> {
    let imports = Imports::of(crate_folder);
    let room = |file: usize| imports.files[file].strip_prefix(folder)?.split(['/', '.']).next();
    let mut problems = Vec::new();
    for (file, named) in imports.named.iter().enumerate() {
        let path = &imports.files[file];
        let Some(own) = room(file).filter(|own| !["lib", "bin"].contains(own)) else {
            continue;
        };
        let Some((_, may_name)) = rooms.iter().find(|(name, _)| *name == own) else {
            problems.push(format!(
                "{path}: the room `{own}` has no place; add it to {table}"
            ));
            continue;
        };
        for other in named {
            if room(*other).is_some_and(|other| other != own && !may_name.contains(&other)) {
                problems.push(format!("{path}: `{own}` names {}", imports.files[*other]));
            }
        }
    }
    problems
}

#[test]
fn a_room_is_small_and_near_the_entrance() {
    let mut problems = Vec::new();
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for file in all_sources().filter(SourceFile::is_product) {
        let Some((folder, inside)) = CRATES
            .iter()
            .find_map(|folder| Some((folder, file.path.strip_prefix(folder)?)))
        else {
            continue;
        };
        let folders = inside.matches('/').count();
        if folders > DEPTH {
            problems.push(format!(
                "{}: {folders} folders below {folder}, more than {DEPTH}",
                file.path
            ));
        }
        let room = file.path.rsplit_once('/').map_or("", |(room, _)| room);
        // Next to the library's rooms are their entry points, one for each.
        if !LIBRARY
            .iter()
            .any(|(folder, _)| folder.trim_end_matches('/') == room)
        {
            *rooms.entry(room.to_owned()).or_default() += 1;
        }
    }
    for (room, files) in rooms {
        if files > FILES_IN_ROOM {
            problems.push(format!("{room}: {files} files, more than {FILES_IN_ROOM}"));
        }
    }
    assert_none(&problems);
}

#[test]
fn the_library_does_no_io_and_reads_no_clock() {
    let forbidden = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::io",
        "std::time",
        "std::thread",
        "SystemTime",
        "println!",
        "print!",
        "eprintln!",
        "eprint!",
        "async fn",
    ];
    let prompts = all_sources().filter(|file| file.path.starts_with("chat/src/"));
    let sources = library_sources().map(|(file, _)| file).chain(prompts);
    let problems: Vec<_> = sources.flat_map(|file| file.lines_with(&forbidden)).collect();
    assert_none(&problems);
}

#[test]
fn only_the_torch_backend_and_the_training_name_tch() {
    // The training program makes the demo model and is not part of the service; it is the only deliberate
    // exception.
    let mut problems = Vec::new();
    for file in all_sources() {
        let backend = file.path.starts_with("engine/src/torch") || file.path.starts_with("engine/tests/");
        if !backend && !file.path.starts_with("models/demo/training/") {
            problems.extend(file.lines_with(&["tch::", "torch_sys::", "use tch", "extern crate tch"]));
        }
    }
    assert_none(&problems);
}

#[test]
fn the_kernels_know_the_law_and_nothing_above_it() {
    let mut problems = Vec::new();
    for file in all_sources().filter(|file| file.path.starts_with("kernels/src/")) {
        for (line, named) in file.crates_named() {
            if named != "lexiform_law" {
                problems.push(format!("{}:{line}: names `{named}`", file.path));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn prompts_know_vocabularies_and_nothing_above_them() {
    let mut problems = Vec::new();
    for file in all_sources().filter(|file| file.path.starts_with("chat/src/")) {
        for (line, named) in file.crates_named() {
            if named != "lexiform_automata" {
                problems.push(format!("{}:{line}: names `{named}`", file.path));
            }
        }
    }
    assert_none(&problems);
}

/// Where structures become JSON: the answers of the service, and the reports of evaluations with their files
/// of answers, which this program alone writes and reads again.
const SERIALIZERS: [&str; 5] = [
    "server/src/wire",
    "cli/src/eval/compare/protocol.rs",
    "cli/src/report/model.rs",
    "cli/src/eval/generate",
    "cli/src/eval/tasks/ask.rs",
];

/// What asks others over HTTP.
const HTTP_CLIENTS: [&str; 4] = [
    "cli/src/eval/generate",
    "server/src/operate/callbacks",
    "server/src/operate/tls/client.rs",
    "server/src/operate/otlp",
];

#[test]
fn http_and_json_stay_in_their_rooms() {
    let mut problems = Vec::new();
    for file in all_sources() {
        if !file.path.starts_with("server/") {
            problems.extend(file.lines_with(&["actix_web"]));
        }
        if !HTTP_CLIENTS.iter().any(|place| file.path.starts_with(place)) {
            problems.extend(file.lines_with(&["ureq"]));
        }
        if file.is_product() && !SERIALIZERS.iter().any(|place| file.path.starts_with(place)) {
            problems.extend(file.lines_with(&["Serialize"]));
        }
    }
    assert_none(&problems);
}

/// A service whose log cannot be written goes on: what it says goes through `operate/lines.rs`. The macros of
/// the standard library panic there, or wait for a reader.
#[test]
fn a_running_service_prints_nothing_itself() {
    let macros = ["println!", "print!", "eprintln!", "eprint!"];
    let mut problems = Vec::new();
    for file in all_sources() {
        let runs = ["server/src", "engine/src", "kernels/src"];
        // A module of tests in a file of its own.
        let is_test = file.path == "engine/src/speculation/store/soak.rs";
        if runs.iter().any(|folder| file.path.starts_with(folder)) && !is_test {
            problems.extend(file.lines_with(&macros));
        }
        if file.path.starts_with("server/src/cli/serve") {
            problems.extend(file.lines_with(&[
                "output::out",
                "output::err",
                "io::stdout().w",
                "io::stderr().w",
            ]));
        }
    }
    assert_none(&problems);
}

#[test]
fn unsafe_stands_in_the_listed_files_only() {
    let mut problems = Vec::new();
    for file in all_sources() {
        // C++ or C begins beyond these: libtorch, the driver of a card (`card.rs` and `card/`), and callers.
        let is_border = ["engine/src/torch", "kernels/src/card", "bindings/c/src"]
            .iter()
            .any(|it| file.path.starts_with(it));
        if !UNSAFE_ALLOWED.contains(&file.path.as_str()) && !is_border {
            problems.extend(file.lines_with(&["unsafe"]));
        }
    }
    assert_none(&problems);
}

#[test]
fn files_and_functions_can_be_read_in_one_sitting() {
    let mut problems = Vec::new();
    for file in all_sources() {
        let lines = file.text.lines().count();
        if lines > FILE_LINES {
            problems.push(format!("{}: {lines} lines, more than {FILE_LINES}", file.path));
        }
        for function in file.functions() {
            if function.code_lines > FUNCTION_LINES && !function.is_excused {
                let (line, name, length) = (function.line, &function.name, function.code_lines);
                problems.push(format!(
                    "{}:{line}: `{name}` has {length} lines, more than {FUNCTION_LINES}",
                    file.path
                ));
            }
        }
    }
    assert_none(&problems);
}

/// Editors and diffs show comments next to the code, which rustfmt keeps within the same width. Diagrams,
/// tables and commands may be wider.
#[test]
fn comments_are_no_wider_than_code() {
    let mut problems = Vec::new();
    for file in all_sources() {
        let mut is_fenced = false;
        for (line, text) in (1..).zip(file.text.lines()) {
            let Some(comment) = text.trim_start().strip_prefix("//") else {
                is_fenced = false;
                continue;
            };
            let comment = comment.trim_start_matches(['/', '!']).trim_start();
            is_fenced ^= comment.starts_with("```");
            let is_prose = !is_fenced && !comment.starts_with('|') && comment.contains(' ');
            if is_prose && text.chars().count() > COMMENT_COLUMNS {
                problems.push(format!(
                    "{}:{line}: a comment beyond column {COMMENT_COLUMNS}",
                    file.path
                ));
            }
        }
    }
    assert_none(&problems);
}

#[test]
fn every_file_says_what_it_is() {
    let undocumented = all_sources().filter(|file| !file.text.starts_with("//!"));
    let problems: Vec<_> = undocumented
        .map(|file| format!("{}: does not begin with `//!`", file.path))
        .collect();
    assert_none(&problems);
}

#[test]
fn no_file_is_named_after_what_it_is_not() {
    let vague = ["util", "utils", "common", "helper", "helpers", "misc", "mod"];
    let named_vaguely = all_sources().filter(|file| {
        let mut parts = file.path.trim_end_matches(".rs").split('/');
        parts.any(|part| vague.contains(&part))
    });
    let problems: Vec<_> = named_vaguely
        .map(|file| format!("{}: name it after what it holds", file.path))
        .collect();
    assert_none(&problems);
}

#[test]
fn no_test_is_switched_off_and_nothing_is_left_undone() {
    let marks = ["#[ignore", "todo!(", "unimplemented!(", "dbg!("];
    let problems = all_sources()
        .flat_map(|file| file.lines_with_anywhere(&marks))
        .collect::<Vec<_>>();
    assert_none(&problems);
}

/// Returns the files of the library, each with the crates that it may name.
fn library_sources() -> impl Iterator<Item = (SourceFile, &'static [&'static str])> {
    all_sources().filter_map(|file| {
        let (_, crates) = LIBRARY.iter().find(|(folder, _)| file.path.starts_with(folder))?;
        Some((file, *crates))
    })
}

fn assert_none(problems: &[String]) {
    assert!(
        problems.is_empty(),
        "{} found:\n{}",
        problems.len(),
        problems.join("\n")
    );
}
