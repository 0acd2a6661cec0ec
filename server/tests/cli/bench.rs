//! `lexiform bench decode`, on tiny sizes: what can be counted, and what is refused. How fast it is depends
//! on the machine.

use serde_json::{Value, json};

use crate::program::{Run, lexiform};

fn bench(args: &[&str]) -> Run {
    lexiform(&[&["bench", "decode", "--threads", "1", "--rounds", "2"], args].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Every arm at every size, once: rows, tokens, shares, and pages.
#[test]
fn every_combination_is_measured_and_told() {
    let folder = std::env::temp_dir().join(format!("lexiform-cli-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [page, out] = ["page.html", "out.json"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    let sizes = [
        "--answers",
        "1,3",
        "--prompts",
        "5,40",
        "--temperatures",
        "1",
        "--tokens",
        "48",
    ];
    let run = bench(&[&sizes[..], &["--json", "--html", &page, "--out", &out]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).expect("one JSON object");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    assert_eq!(written, report);
    assert_eq!(report["rounds"], 1);
    assert_eq!(report["memory"]["measurements"], 4);
    assert_eq!(report["machine"]["threads"], 1);
    assert_eq!(
        (&report["command"][1], &report["command"][2]),
        (&json!("bench"), &json!("decode"))
    );
    let cells = report["cells"].as_array().unwrap();
    let named: Vec<_> = cells
        .iter()
        .map(|cell| {
            (
                &cell["answers"],
                &cell["prompt_tokens"],
                cell["arm"].as_str().unwrap(),
            )
        })
        .collect();
    let mut expected = Vec::new();
    let [short, long, one, three] = [5, 40, 1, 3].map(|number| json!(number));
    for prompt in [&short, &long] {
        for answers in [&one, &three] {
            expected.extend(
                ["free", "filtered", "schema", "drafts", "local", "global"].map(|arm| (answers, prompt, arm)),
            );
        }
    }
    assert_eq!(named, expected);
    cells.iter().for_each(|cell| is_plausible(cell, &report));
    let page = std::fs::read_to_string(page).unwrap();
    // Five figures for each length of prompts.
    assert_eq!(
        (page.matches("<svg").count(), page.matches("</svg>").count()),
        (10, 10)
    );
    assert_eq!(
        (
            page.matches("<h2>Prompts of").count(),
            page.matches("3 × drafts</text>").count()
        ),
        (2, 10)
    );
    std::fs::remove_dir_all(folder).unwrap();
}

fn is_plausible(cell: &Value, report: &Value) {
    let (arm, answers) = (cell["arm"].as_str().unwrap(), number(&cell["answers"]));
    let tokens = number(&cell["tokens"]);
    match arm {
        "free" | "filtered" | "schema" | "drafts" => assert_eq!(tokens, 48.0 * answers, "{cell}"),
        _ => assert!((5.0 * answers..=48.0 * answers).contains(&tokens), "{cell}"),
    }
    assert!(number(&cell["tokens_a_second"]) > 0.0);
    let first = &cell["first_token_ms"];
    assert!(0.0 < number(&first["median"]) && number(&first["median"]) <= number(&first["p95"]));
    let drafted = number(&cell["drafted"]);
    assert_eq!(drafted > 0.0, arm == "drafts", "{cell}");
    let attempts = number(&cell["attempts"]);
    assert!(
        attempts >= answers && (arm == "global" || attempts == answers),
        "{cell}"
    );
    if arm == "global" {
        assert_eq!((&cell["share"], &cell["pass_ms"]), (&Value::Null, &Value::Null));
    } else {
        // The demo model fits into the caches of most processors, and is still bound by more than its bytes.
        let share = number(&cell["share"]);
        assert!(0.0 < share && share < 1.2, "{cell}");
        let weights = number(&report["model"]["weight_bytes_a_pass"]);
        let cache = number(&report["model"]["cache_bytes_a_token"]);
        let prompt = number(&cell["prompt_tokens"]);
        let bytes = number(&cell["bytes_a_pass"]);
        let most = weights + answers * cache * (prompt + 48.0);
        assert!(weights < bytes && bytes < most, "{cell}: {weights} to {most}");
    }
    match cell["baseline"].as_str() {
        None => assert_eq!((arm, &cell["ratio"]), ("free", &Value::Null)),
        Some(_) => assert!(number(&cell["ratio"]) > 0.0, "{cell}"),
    }
}

/// The weights of the demo model as its file has them, in numbers of 16 bits, which are widened as they are
/// read. Norms are the rest.
#[test]
fn a_pass_reads_the_weights() {
    let run = bench(&[
        "--answers",
        "1",
        "--prompts",
        "4",
        "--tokens",
        "2",
        "--arms",
        "free",
        "--json",
    ]);
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/demo/model.safetensors");
    let stored = std::fs::metadata(file).unwrap().len() as f64;
    let weights = number(&report["model"]["weight_bytes_a_pass"]);
    assert!(
        0.99 * stored < weights && weights < stored,
        "{weights} of {stored}"
    );
    // Six layers with keys and values of four heads of 32.
    let cache = 6.0 * 2.0 * 4.0 * 32.0 * 4.0;
    assert_eq!(report["model"]["cache_bytes_a_token"], cache);
    // The first of the two tokens comes with the prompt; the pass of the other reads all weights, and the
    // prompt and the first.
    let [cell] = report["cells"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(cell["bytes_a_pass"], weights + 5.0 * cache);
}

#[test]
fn a_shape_needs_no_weights() {
    let sizes = [
        "--answers",
        "2",
        "--prompts",
        "9",
        "--temperatures",
        "0,1",
        "--tokens",
        "32",
    ];
    let arms = ["--arms", "free,global", "--shape", "tiny", "--json"];
    let run = bench(&[&sizes[..], &arms].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["model"]["name"], "tiny with random weights");
    // Two layers and the head, in numbers of 16 bits.
    let layer = (256 + 2 * 128 + 256 + 3 * 640) * 256;
    let expected = f64::from(2 * (2 * layer + 4096 * 256));
    assert_eq!(report["model"]["weight_bytes_a_pass"], expected);
    let arms: Vec<_> = report["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| &cell["arm"])
        .collect();
    assert_eq!(arms, ["free", "free", "global"]);
    assert_eq!(
        report["skipped"],
        json!(["global at temperature 0: it needs one above 0"])
    );
    let last = &report["cells"][2];
    // A random model writes no record by itself: after 16 attempts the local law writes it.
    assert_eq!(last["attempts"], 2 * 17, "{last}");
}

#[test]
fn people_get_a_table() {
    let run = bench(&[
        "--answers",
        "1",
        "--prompts",
        "4",
        "--temperatures",
        "0",
        "--tokens",
        "40",
    ]);
    assert_eq!(run.code, 0, "{}", run.err);
    for part in [
        "Memory: ",
        "tokens/s",
        "      1      4    0 schema ",
        "x: filtered to free, schema to free, drafts to schema, local to free.",
        "Not measured: global at temperature 0: it needs one above 0.",
    ] {
        assert!(run.out.contains(part), "{part}: {}", run.out);
    }
}

#[test]
fn flags_that_make_no_sense_are_named_all_at_once() {
    let run = bench(&[
        "--answers",
        "0,1,9999",
        "--prompts",
        "0",
        "--tokens",
        "1",
        "--temperatures",
        "3",
    ]);
    assert_eq!(run.code, 2);
    let expected = "error: --answers 0: expected 1 to 1024\n--answers 9999: expected 1 to 1024\n\
                    --prompts 0: expected 1 to 1048576\n--tokens 1: expected 2 to 1048576\n\
                    --temperatures 3: expected 0 to 2\n";
    assert_eq!(run.err, expected);
    for (args, part) in [
        (&["--rounds", "1"][..], "--rounds"),
        (&["--arms", "quick"], "'quick' for '--arms"),
        (&["--shape", "7b"], "expected tiny, 135m, 1b, 3b or 8b"),
        (&["--peer", "vllm"], "'vllm' for '--peer"),
        (
            &["--arms", "global", "--temperatures", "0"],
            "--arms global: the global law needs a temperature",
        ),
        (
            &["--prompts", "8,5000"],
            "--prompts 5000 with --tokens 64: the model takes 4096 tokens",
        ),
        (
            &["--arms", "local", "--tokens", "3", "--answers", "1"],
            "arm local: ",
        ),
    ] {
        let run = lexiform(&[&["bench", "decode"], args].concat());
        assert_eq!(
            (run.code, run.err.contains(part)),
            (2, true),
            "{args:?}: {}",
            run.err
        );
    }
}

/// A Python that is none, and one without the package.
#[test]
fn a_peer_that_is_not_there_is_refused_by_name() {
    let refused = |python: &str| {
        let run = bench(&[
            "--peer",
            "transformers",
            "--python",
            python,
            "--answers",
            "1",
            "--tokens",
            "2",
        ]);
        assert_eq!(run.code, 2, "{}", run.err);
        run.err
    };
    let none = refused("/nope/python");
    assert!(
        none.contains("--peer transformers: /nope/python cannot be started: no such file or directory"),
        "{none}"
    );
    let mute = refused("true");
    assert!(
        mute.contains("it has ended without an answer") || mute.contains("it cannot be asked"),
        "{mute}"
    );
    assert!(
        mute.contains("pip install transformers") && mute.contains("--python"),
        "{mute}"
    );
}

/// Several cards are several processes.
#[test]
fn a_model_on_several_cards_is_refused_with_what_to_do_instead() {
    for args in [
        &["serve", "--device", "cuda:0,cuda:1"][..],
        &["serve", "--tensor-parallel-size", "2"],
        &["serve", "--tensor-parallel"],
        &["generate", "x", "--tensor-parallel-size=8"],
        &["bench", "decode", "--device", "cuda:0,cuda:1"],
    ] {
        let run = lexiform(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.err);
        for part in [
            "one process a card",
            "docs/src/operating.md",
            "deploy/haproxy.cfg",
        ] {
            assert!(run.err.contains(part), "{args:?}: {part}: {}", run.err);
        }
    }
    let run = lexiform(&["generate", "", "--tensor-parallel-size", "1", "--regex", "(a"]);
    assert_eq!(run.code, 3, "one card is one process: {}", run.err);
}
