//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a machine can hold.
//!
//! Each rule is one test, reads the sources as text, and lists every place that breaks it. What a rule must
//! not see (comments, string contents, test modules) is blanked out first, by `architecture/source.rs`.

mod cycles;
mod source;

use std::collections::BTreeMap;

use cycles::Imports;
use source::{SourceFile, all_sources};

/// The crates of the library, from the bottom to the top: the folder of each, and the crates that its sources
/// may name.
const LIBRARY: [(&str, &[&str]); 4] = [
    ("automata/src/", &[]),
    ("syntax/src/", &["lexiform_automata"]),
    ("law/src/", &["lexiform_automata"]),
    ("src/", &["lexiform_automata", "lexiform_syntax", "lexiform_law"]),
];

/// Who may name whom inside the library: a module, and the modules it may name besides itself, of its crate
/// or another.
///
/// `error` and `limits` may be named by all. The order is that of the pipeline.
const LAYERS: [(&str, &[&str]); 22] = [
    ("error", &[]),
    ("limits", &[]),
    // What a question to a grammar may cost; it is paid for wherever the grammar decides how long a loop is.
    ("work", &[]),
    ("idna", &[]),
    // A language that is no regular one is named with who tells its words.
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
    // What a misspelt word was probably meant to be.
    ("suggest", &[]),
    ("regex", &["grammar"]),
    // Whether a part of a grammar is small enough to be one automaton is found out by making it.
    ("notation", &["grammar", "regex", "language", "suggest"]),
    ("schema", &["grammar", "regex", "language", "idna", "suggest"]),
    // What a vocabulary has a token for is that token where a tag begins or ends.
    ("tags", &["grammar", "regex", "schema", "suggest", "vocab"]),
    ("law", &["vocab"]),
    ("draft", &["vocab", "law", "matcher"]),
    // How the tokens of a draft were chosen says which rule judges them.
    ("verify", &["vocab", "law", "draft"]),
    // What a host allows beside a grammar, and the tokens drawn under both.
    ("monitor", &["vocab", "law", "draft", "verify", "matcher"]),
    // Beside the main flow: the nearest valid text.
    ("repair", &["pushdown", "language", "matcher"]),
    (
        "compile",
        &[
            "grammar", "vocab", "regex", "schema", "notation", "tags", "pushdown", "mask", "matcher",
        ],
    ),
];

/// Who may name whom inside the server: a room, and the rooms it may name besides itself, from the bottom to
/// the top.
///
/// A request comes in at the top and is passed down; what it needs from below it names, and nothing below
/// knows it.
const SERVER_ROOMS: [(&str, &[&str]); 8] = [
    ("wire", &[]),
    ("operate", &["wire"]),
    ("grammars", &["wire", "operate"]),
    ("model", &["wire", "operate", "grammars"]),
    ("request", &["wire", "operate", "grammars", "model"]),
    ("answer", &["wire", "operate", "grammars", "model", "request"]),
    (
        "routes",
        &["wire", "operate", "grammars", "model", "request", "answer"],
    ),
    (
        "cli",
        &[
            "wire", "operate", "grammars", "model", "request", "answer", "routes",
        ],
    ),
];

/// Who may name whom inside the engine, in the same order.
const ENGINE_ROOMS: [(&str, &[&str]); 14] = [
    ("error", &[]),
    ("config", &[]),
    ("fairness", &[]),
    ("metrics", &[]),
    ("request", &["error", "fairness", "metrics"]),
    ("model", &["error"]),
    ("torch", &["error", "model"]),
    ("blocks", &[]),
    ("speculation", &["config", "error", "fairness", "request"]),
    ("grammar", &["error", "request", "speculation"]),
    (
        "sequence",
        &[
            "error",
            "fairness",
            "metrics",
            "request",
            "blocks",
            "speculation",
            "grammar",
        ],
    ),
    (
        "scheduler",
        &[
            "config",
            "fairness",
            "request",
            "blocks",
            "speculation",
            "sequence",
        ],
    ),
    (
        "sampling",
        &[
            "error",
            "metrics",
            "request",
            "model",
            "speculation",
            "grammar",
            "sequence",
        ],
    ),
    (
        "engine",
        &[
            "error",
            "config",
            "fairness",
            "metrics",
            "request",
            "model",
            "blocks",
            "speculation",
            "grammar",
            "sequence",
            "scheduler",
            "sampling",
        ],
    ),
];

/// Who may name whom among the engine's models on libtorch.
const TORCH_ROOMS: [(&str, &[&str]); 14] = [
    ("device", &[]),
    ("bandwidth", &["device"]),
    ("options", &["device"]),
    ("gguf", &[]),
    ("checkpoint", &["gguf"]),
    ("config", &["checkpoint"]),
    ("crew", &[]),
    ("loops", &["gguf", "config", "crew"]),
    ("layers", &["config", "crew", "loops"]),
    // What others know of passes by kernels.
    ("passes", &["config", "loops", "layers"]),
    ("flight", &["loops", "layers", "passes"]),
    (
        "decoder",
        &[
            "options",
            "checkpoint",
            "config",
            "crew",
            "loops",
            "layers",
            "passes",
            "flight",
        ],
    ),
    (
        "load",
        &["options", "checkpoint", "config", "layers", "passes", "decoder"],
    ),
    (
        "kernels",
        &[
            "device",
            "options",
            "checkpoint",
            "config",
            "loops",
            "layers",
            "passes",
            "load",
        ],
    ),
];

/// The crates in which no file may depend on itself through others.
const CRATES: [&str; 12] = [
    "automata/src/",
    "syntax/src/",
    "law/src/",
    "src/",
    "bindings/c/src/",
    "cli/src/",
    "kernels/src/",
    "engine/src/",
    "server/src/",
    "models/demo/training/src/",
    "xtask/src/",
    "bindings/python/src/",
];

/// The most files of a folder that can be held in mind.
const FILES_IN_ROOM: usize = 15;

/// The most folders between `src` and a file.
const DEPTH: usize = 2;

/// Files that may hold `unsafe`, each with the reason.
const UNSAFE_ALLOWED: [&str; 4] = [
    // Only an allocator knows what is allocated, and libFuzzer is C++.
    "tests/limits/allocator.rs",
    "fuzz/src/meter.rs",
    "fuzz/src/drive.rs",
    // Only the exporter of a buffer of Python owns its memory.
    "bindings/python/src/buffer.rs",
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

/// Where a file of a room, which is what stands directly in this folder, names a room that its table does not
/// allow.
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
        // Beside the library's rooms stand their entrances, one each.
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
    let problems = library_sources()
        .flat_map(|(file, _)| file.lines_with(&forbidden))
        .collect::<Vec<_>>();
    assert_none(&problems);
}

#[test]
fn only_the_torch_backend_and_the_training_name_tch() {
    // The training program makes the demo model and serves nobody; it is the one deliberate exception.
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
fn only_the_server_knows_http_and_only_its_wire_module_serializes() {
    let mut problems = Vec::new();
    for file in all_sources() {
        if !file.path.starts_with("server/") {
            problems.extend(file.lines_with(&["actix_web"]));
        }
        if file.is_product() && !file.path.starts_with("server/src/wire") {
            problems.extend(file.lines_with(&["Serialize"]));
        }
    }
    assert_none(&problems);
}

#[test]
fn unsafe_stands_in_the_listed_files_only() {
    let mut problems = Vec::new();
    for file in all_sources() {
        // Beyond these lies C++ or C: libtorch, the driver of a card (`card.rs` and `card/`), and callers.
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

/// Editors and diffs show comments beside the code, which rustfmt keeps within as many columns. Pictures,
/// tables and commands are as wide as they must be.
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

/// The files of the library, each with the crates that it may name.
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
