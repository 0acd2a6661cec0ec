//! The time of encoding a prompt whose every byte has an origin, beside that of `tokenizers` for the same text.
//!
//! The conversations are the pages of `docs/src`, a message for each paragraph, with the templates of
//! `chat/tests/data/templates` and the tokenizers of `.data/tokenizers`. Runs alternate, and the fastest of
//! each counts, because others use the machine too.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use lexiform_automata::vocab::Tokenizer;
use lexiform_chat::{ChatTemplate, Conversation, Ending, Prompt};
use serde_json::{Map, Value, json};

/// The tokenizers, each with a template in the manner of its model.
const MODELS: [(&str, &str); 5] = [
    ("llama3_1", "llama3_1"),
    ("qwen3", "qwen3"),
    ("gpt_oss", "gpt_oss"),
    ("mistral_v01", "mistral_v1"),
    ("gpt2", "chatml"),
];
/// How often each is run.
const RUNS: usize = 15;
/// The messages of a conversation.
const MESSAGES: usize = 24;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    println!(
        "| tokenizer | bytes | tokens | render, ms | encode, ms | `tokenizers`, ms | encode : `tokenizers` |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for (name, template) in MODELS {
        let file = root.join(format!(".data/tokenizers/{name}/tokenizer.json"));
        let Ok(json) = fs::read(&file) else {
            println!("skipped: {name}: {} is not there", file.display());
            continue;
        };
        let source = root.join(format!("chat/tests/data/templates/{template}.jinja"));
        let source = fs::read_to_string(source).expect("a template");
        measure(name, &json, &source, &conversations(&root));
    }
}

fn measure(name: &str, json: &[u8], source: &str, conversations: &[Vec<Value>]) {
    let tokenizer = Tokenizer::from_bytes(json).expect("a tokenizer");
    let peer = tokenizers::Tokenizer::from_bytes(json).expect("a tokenizer");
    let constants = vec![("eos_token".to_owned(), "</s>".to_owned())];
    let template = ChatTemplate::new(source, constants).expect("a template");
    let prompts: Vec<Prompt> = conversations
        .iter()
        .map(|messages| rendered(&template, messages))
        .collect();
    let mut fastest = [Duration::MAX; 3];
    let (mut own, mut others) = (0, 0);
    for _ in 0..RUNS {
        let [render, encode, other] = &mut fastest;
        timed(render, || {
            conversations
                .iter()
                .map(|messages| rendered(&template, messages).text().len())
                .sum()
        });
        own = timed(encode, || {
            prompts
                .iter()
                .map(|prompt| prompt.encode(&tokenizer).expect("tokens").len())
                .sum()
        });
        others = timed(other, || {
            prompts
                .iter()
                .map(|prompt| peer.encode_fast(prompt.text(), false).expect("tokens").len())
                .sum()
        });
    }
    let bytes: usize = prompts.iter().map(|prompt| prompt.text().len()).sum();
    let [render, encode, other] = fastest.map(|time| time.as_secs_f64() * 1e3);
    println!(
        "| {name} | {bytes} | {own} | {render:.2} | {encode:.1} | {other:.1} | {:.3} |",
        encode / other
    );
    if own != others {
        println!("  `tokenizers`: {others} tokens: it recognises marks that the pages mention");
    }
}

fn timed(fastest: &mut Duration, work: impl FnOnce() -> usize) -> usize {
    let start = Instant::now();
    let count = work();
    *fastest = start.elapsed().min(*fastest);
    count
}

fn rendered(template: &ChatTemplate, messages: &[Value]) -> Prompt {
    let conversation = Conversation {
        messages,
        ending: Ending::Answer,
        tools: &[],
        schema: None,
        arguments: &Map::new(),
        arguments_name: "variables",
        now: 0,
    };
    template.render(&conversation).expect("a conversation")
}

/// Returns the paragraphs of the pages as conversations.
fn conversations(root: &Path) -> Vec<Vec<Value>> {
    let mut paths: Vec<_> = fs::read_dir(root.join("docs/src"))
        .expect("the pages")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    paths.sort();
    let pages: Vec<String> = paths
        .iter()
        .map(|path| fs::read_to_string(path).expect("a page"))
        .collect();
    let paragraphs: Vec<&str> = pages.iter().flat_map(|page| page.split("\n\n")).collect();
    let messages = paragraphs
        .iter()
        .enumerate()
        .map(|(at, text)| json!({"role": if at % 2 == 0 { "user" } else { "assistant" }, "content": text}));
    let messages: Vec<Value> = messages.collect();
    messages.chunks(MESSAGES).map(<[Value]>::to_vec).collect()
}
