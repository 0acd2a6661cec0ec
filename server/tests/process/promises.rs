//! What an operator chooses of how the model computes: weights in eight bits, and texts that do not depend on
//! other requests.

use serde_json::{Value, json};

use crate::program::{Service, get, lexiform, model_folder, shown};

#[test]
fn weights_in_eight_bits_are_named_at_the_start_and_in_answers() {
    for format in ["int8", "fp8"] {
        let folder = model_folder(&format!("rounded-{format}"));
        let mut service = Service::start_with(&folder, &["--weights", format]);
        let models = get(&service.address, "/v1/models");
        assert!(models.contains(&format!(r#""weights":"{format}""#)), "{models}");
        let answer = service
            .post(&json!({"model": "tiny", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}));
        assert!(answer.contains(&format!("-{format}\"")), "{answer}");
        assert!(service.told("Weights: ").starts_with(&format!("{format}, ")));
        service.signal("-TERM");
        assert!(service.ended_well());
    }
}

#[test]
fn what_only_the_processor_can_do_is_refused_elsewhere() {
    for (flags, names) in [
        (&["--weights", "int8"][..], "weights in int8"),
        (&["--weights", "fp8"], "weights in fp8"),
        (&["--batch-invariant"], "batch-invariant passes"),
    ] {
        let mut command = lexiform();
        command.args(["generate", "x", "--regex", "a", "--dtype", "bf16", "--model"]);
        let output = command.arg(model_folder("unrounded")).args(flags).output();
        let output = output.expect("the program runs");
        let said = shown(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(names) && !said.contains("Hugging Face"), "{said}");
    }
}

/// A request with a prompt of so many letters.
fn wanted(letters: usize, seed: usize) -> Value {
    let prompt: String = (0..letters)
        .map(|at| char::from(b'a' + ((at * 7 + seed) % 26) as u8))
        .collect();
    json!({
        "model": "tiny", "messages": [{"role": "user", "content": prompt}], "seed": seed, "temperature": 1,
        "max_tokens": 24, "ignore_eos": false, "logprobs": true, "batch_invariant": true
    })
}

/// The answer without its identity, its times, and the counts of drafts: what a client had before is drafted,
/// and changes no text.
fn choices(answer: &str) -> Value {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let start = body.find('{').expect("a body");
    let end = body.rfind('}').expect("a body");
    let answer: Value = serde_json::from_str(&body[start..=end]).expect("JSON");
    let mut choices = answer["choices"].clone();
    for choice in choices.as_array_mut().into_iter().flatten() {
        for count in ["drafted", "accepted"] {
            choice["lexiform"][count] = Value::Null;
        }
    }
    choices
}

/// Texts and log-probabilities of seeds alone, and among others that come and go, with prompts that are cut
/// into pieces of a pass as there is room.
#[test]
fn the_text_of_a_seed_is_the_same_in_any_company_if_the_operator_says_so() {
    let more = [
        "--batch-invariant",
        "--pass-tokens",
        "40",
        "--max-batch",
        "8",
        "--no-pages",
    ];
    let service = Service::start_with(&model_folder("company"), &more);
    let asked = |seed: usize| choices(&service.post(&wanted(60 + 17 * seed, seed)));
    let alone: Vec<Value> = (0..6).map(asked).collect();
    assert!(alone.iter().any(|choices| *choices != alone[0]), "seeds matter");
    std::thread::scope(|scope| {
        for client in 0..6 {
            let service = &service;
            scope.spawn(move || {
                for number in 0..6 {
                    choices(&service.post(&wanted(5 + 31 * ((client + number) % 6), 100 * client + number)));
                }
            });
        }
        for (seed, alone) in alone.iter().enumerate() {
            assert_eq!(asked(seed), *alone, "seed {seed}");
        }
    });
}

#[test]
fn without_the_operators_word_the_promise_is_refused() {
    let service = Service::start_with(&model_folder("alone"), &[]);
    let answer = service.post(&wanted(5, 1));
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("batch_invariant cannot be promised"), "{answer}");
    assert!(get(&service.address, "/v1/models").contains(r#""batch_invariant":false"#));
}
