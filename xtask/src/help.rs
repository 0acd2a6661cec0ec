//! The help of the commands: one line for each, and more for a single command.

use crate::process::Failure;

/// A command: its name, a one-line description, and the full help.
struct Topic {
    name: &'static str,
    line: &'static str,
    more: &'static str,
}

/// A group of related commands.
struct TopicGroup {
    title: &'static str,
    topics: &'static [Topic],
}

const fn topic(name: &'static str, line: &'static str, more: &'static str) -> Topic {
    Topic { name, line, more }
}

const GROUPS: [TopicGroup; 4] = [
    TopicGroup {
        title: "To run",
        topics: &[
            topic(
                "serve",
                "serve a model",
                "serve [--dev] [ARGS]\n\nSets up, builds and runs `lexiform serve ARGS`. Without a --model among them it fetches \
                 SmolLM2-135M-Instruct (93 MB), once for each user. It builds the profile `serve`; --dev as the first argument builds \
                 as for tests.",
            ),
            topic(
                "setup",
                "bring libtorch and a model",
                "setup [--cuda] [--model]\n\nFetches libtorch once for each user and links it into .libtorch/, which the other commands \
                 do by themselves. --cuda brings the files for a card, --model the model that `serve` serves.",
            ),
            topic(
                "wheel",
                "build the Python package",
                "wheel\n\nThe wheel is in target/wheels.",
            ),
            topic(
                "npm",
                "build the package for Node",
                "npm\n\nThe package is in target/npm.",
            ),
            topic(
                "container",
                "build and try the image",
                "container\n\nBuilds the image of deploy/Containerfile with buildah, starts it, and asks its model a question.",
            ),
            topic(
                "docs",
                "build the site of docs/",
                "docs\n\nBuilds docs/ with mdBook, and the API of the library.",
            ),
        ],
    },
    TopicGroup {
        title: "Before a change goes in",
        topics: &[
            topic(
                "test",
                "every test",
                "test [clients | python | node]\n\nRuns every test of the workspace, those with clients and those of Python and Node too. \
                 `clients`, `python` and `node` run these alone.",
            ),
            topic(
                "check",
                "what a reviewer should not have to look for",
                "check [kernels | publish]\n\nFormatting, clippy, documentation, house rules, dependencies and licences, kernels, and \
                 whether the library could be published. `kernels` compiles the kernels for sm_90 alone, which needs no card; \
                 `publish` packs the library alone.",
            ),
            topic(
                "loom",
                "lock-free tables under all orders of threads",
                "loom\n\nAlso the threads that share a pass of a model.",
            ),
        ],
    },
    TopicGroup {
        title: "For longer",
        topics: &[
            topic(
                "fuzz",
                "coverage-guided fuzzing of every reader",
                "fuzz [ARGS]\n\nSeconds or hours; `cargo xtask fuzz --help` lists the arguments.",
            ),
            topic(
                "soak",
                "property tests with many more cases, or the service for minutes",
                "soak [CASES] | soak drafts [N] | soak service [ARGS]\n\nThe property tests of the library with CASES random cases \
                 each (20000), or N requests (1000000) through what the engine learns from answers, and the memory that it holds; \
                 or streams of 200 clients while the service is killed, drained and reloaded, and its models change places: \
                 `cargo xtask soak service --help` lists the arguments.",
            ),
            topic(
                "plugins",
                "the plugins within vLLM and SGLang",
                "plugins\n\nInstalls these engines into .venv/plugins (1.3 GB), and tests the examples for candle and mistral.rs.",
            ),
            topic(
                "card",
                "a bundle for a machine with a GPU",
                "card [--dev]\n\nWrites a bundle into .card/ that checks and times what needs an NVIDIA card.",
            ),
        ],
    },
    TopicGroup {
        title: "To measure",
        topics: &[
            topic(
                "bench",
                "benchmarks of the library, and beside others",
                "bench [ARGS] | bench peers [ARGS] | bench llama --model FILE [ARGS] | bench drafts [ARGS] \
                 | bench servers --data FILE [ARGS]\n\nThe library alone, beside llguidance, or the service beside llama.cpp's, \
                 or with each kind of drafts; servers asks vLLM with each of its backends, llama.cpp, transformers and the service \
                 for the same answers.",
            ),
            topic(
                "counts",
                "instructions of compiles and masks",
                "counts [--write]\n\nCounts the instructions of a fixed set of compiles and masks with valgrind, and compares them with \
                 benches/record/counts.tsv; fails if a part takes a tenth more, or all of them 2 % more. --write renews the record.",
            ),
            topic(
                "load",
                "many clients of a running service",
                "load [ARGS]\n\n`cargo xtask load --help` lists the arguments.",
            ),
            topic(
                "crowd",
                "clients that all want eight texts",
                "crowd [ARGS]\n\nBy particles and by beams; `cargo xtask crowd --help` lists the arguments.",
            ),
            topic(
                "fair",
                "a light client beside heavy ones",
                "fair [ARGS]\n\n`cargo xtask fair --help` lists the arguments.",
            ),
            topic(
                "attack",
                "requests made to end, stall or fatten the service",
                "attack [ARGS]\n\n`cargo xtask attack --help` lists the arguments.",
            ),
        ],
    },
];

/// Returns the list of all commands, one line each.
pub(crate) fn overview() -> String {
    let mut text = String::from("Usage: cargo xtask COMMAND\n");
    for group in &GROUPS {
        text += &format!("\n{}:\n", group.title);
        for topic in group.topics {
            text += &format!("  {:10} {}\n", topic.name, topic.line);
        }
    }
    text + "\n`cargo xtask help COMMAND` says more about one."
}

/// Returns the help of one command.
pub(crate) fn of(name: &str) -> Result<String, Failure> {
    let mut topics = GROUPS.iter().flat_map(|group| group.topics);
    let found = topics.find(|topic| topic.name == name);
    found
        .map(|topic| format!("Usage: cargo xtask {}", topic.more))
        .ok_or_else(|| Failure::new(format!("there is no command {name:?}\n\n{}", overview())))
}
