//! `POST /v1/decisions`: probabilities of closed answers.

use std::sync::Arc;
use std::time::Duration;

use lexiform_engine::{Options, Request, Sampling, Weigh};
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::model::weighing::weigh;
use lexiform_server::wire::response::Usage;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::service::{PATIENCE, Service, roomy, served};
use crate::tokenizer::TEMPLATE;

fn decide(service: &Service, input: &str, questions: Value) -> Vec<Value> {
    let body = json!({"model": "m", "input": input, "questions": questions});
    let answer = service.post("/v1/decisions", &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert!(
        json["usage"]["input_tokens"]
            .as_u64()
            .is_some_and(|tokens| tokens > 0)
    );
    json["answers"].as_array().cloned().unwrap_or_default()
}

fn sum(entries: &Value) -> f64 {
    let entries = entries.as_array().expect("a list");
    entries
        .iter()
        .filter_map(|entry| entry["probability"].as_f64())
        .sum()
}

#[test]
fn the_answer_that_the_model_would_write_is_the_likely_one() {
    let service = Service::start();
    // The last message is the question, and the script echoes what stands behind its first word.
    let questions = json!([
        {"type": "choice", "name": "c", "instructions": "echo banana", "choices":
            [{"value": "blue"}, {"value": "banana", "description": "a fruit"}, {"value": true}]},
        {"type": "score", "instructions": "echo good", "levels": [{"label": "bad"}, {"label": "good"}]},
        {"type": "predicate", "instructions": "echo yes"},
        {"type": "predicate", "instructions": [{"type": "input_text", "text": "echo no"}]},
    ]);
    let answers = decide(&service, "some input", questions);
    assert_eq!(
        (&answers[0]["choice"], &answers[0]["name"]),
        (&json!("banana"), &json!("c"))
    );
    assert!((sum(&answers[0]["probabilities"]) - 1.0).abs() < 1e-9);
    assert!(
        answers[0]["confidence"].as_f64().is_some_and(|p| p > 0.99),
        "{}",
        answers[0]
    );
    assert!(
        answers[1]["score"].as_f64().is_some_and(|score| score > 0.99),
        "{}",
        answers[1]
    );
    assert_eq!(answers[1]["probabilities"][1]["label"], "good");
    assert!(
        answers[2]["probability"].as_f64().is_some_and(|p| p > 0.99),
        "{}",
        answers[2]
    );
    assert!(
        answers[3]["probability"].as_f64().is_some_and(|p| p < 0.01),
        "{}",
        answers[3]
    );
}

#[test]
fn an_answer_that_begins_another_is_told_apart_by_its_end() {
    let service = Service::start();
    let choices: Vec<Value> = ["a", "a ", "a b", "a bc"]
        .iter()
        .map(|text| json!({"value": text}))
        .collect();
    // Behind the options, nothing follows that could be the answer: the script goes on with the whole
    // question.
    let question = json!([{"type": "choice", "instructions": "echo a b", "choices": choices}]);
    let answers = decide(&service, "x", question);
    assert!((sum(&answers[0]["probabilities"]) - 1.0).abs() < 1e-9);
    assert!(
        answers[0]["probabilities"][2]["probability"].as_f64()
            > answers[0]["probabilities"][3]["probability"].as_f64()
    );
}

#[test]
fn many_choices_and_many_questions_are_answered() {
    let service = Service::start();
    let choices: Vec<Value> = (0..4096)
        .map(|number| json!({"value": format!("option {number:04}")}))
        .collect();
    let question = json!({"type": "choice", "instructions": "echo option 0777", "choices": choices});
    let answers = decide(&service, "x", json!([question]));
    assert_eq!(answers[0]["choice"], "option 0777");
    assert!((sum(&answers[0]["probabilities"]) - 1.0).abs() < 1e-9);
    let questions: Vec<Value> = (0..40)
        .map(|_| json!({"type": "predicate", "instructions": "echo yes"}))
        .collect();
    assert_eq!(decide(&service, "x", json!(questions)).len(), 40);
}

/// The prompt of a question is read once, and each token that its choices begin with counts once.
#[test]
fn the_usage_is_that_of_the_prompt_and_the_tree_of_choices() {
    let service = Service::start();
    let usage = |choices: Value| {
        let question = json!({"type": "choice", "instructions": "which?", "choices": choices});
        let body = json!({"model": "m", "input": "x", "questions": [question]});
        let answer = service.post("/v1/decisions", &body.to_string()).json();
        let of = |name: &str| answer["usage"][name].as_u64().expect("a number");
        assert_eq!(of("total_tokens"), of("input_tokens") + of("output_tokens"));
        (of("input_tokens"), of("output_tokens"))
    };
    let (input, output) = usage(json!([{"value": "red"}, {"value": "reed"}, {"value": "green"}]));
    // A token for each byte: r, e, d, e, d and g, r, e, e, n.
    assert_eq!(output, 10);
    let body = json!({"messages": [{"role": "user", "content": "x"}, {"role": "user",
        "content": "which?\n\nAnswer with one of:\n- red\n- reed\n- green"}], "model": "m"});
    let chat = service.post("/tokenize", &body.to_string()).json();
    assert_eq!(chat["count"], input, "{chat}");
    assert_eq!(usage(json!([{"value": "a"}, {"value": "b"}])).1, 2);
}

/// Where every byte is a token, a text has one spelling, and both kinds of probability are the same.
#[test]
fn all_tokenisations_are_summed_where_they_are_asked_for() {
    let service = Service::start();
    let ask = |tokenisations: Value| {
        let choices = json!([{"value": "banana"}, {"value": "blue"}, {"value": true}]);
        let question = json!({"type": "choice", "instructions": "echo banana", "choices": choices});
        let body =
            json!({"model": "m", "input": "x", "questions": [question], "tokenisations": tokenisations});
        service.post("/v1/decisions", &body.to_string())
    };
    let canonical = ask(json!("canonical")).json();
    assert_eq!(canonical["answers"][0]["choice"], "banana");
    assert_eq!(ask(json!("all")).json()["answers"], canonical["answers"]);
    assert_eq!(ask(Value::Null).json()["answers"], canonical["answers"]);
    let wrong = ask(json!("every"));
    assert_eq!(
        (wrong.status, wrong.error_code().as_str()),
        (400, "invalid_value")
    );
    assert_eq!(wrong.json()["error"]["param"], "tokenisations");
}

#[test]
fn options_that_are_too_much_are_refused_with_their_question() {
    let service = Service::start();
    // 100 texts of 1,000 bytes that have no beginning in common.
    let choices: Vec<Value> = (0..100)
        .map(|number: u8| json!({"value": format!("{number:02}{}", "x".repeat(998))}))
        .collect();
    let question = json!({"type": "choice", "instructions": "which?", "choices": choices});
    let fine = json!({"type": "predicate", "instructions": "is it?"});
    let body = json!({"model": "m", "input": "x", "questions": [fine, question]});
    let answer = service.post("/v1/decisions", &body.to_string());
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "invalid_value")
    );
    assert_eq!(answer.json()["error"]["param"], "questions[1]");
    let message = answer.json()["error"]["message"].as_str().map(str::to_owned);
    assert!(message.is_some_and(|message| message.contains("the limit is 65536")));
}

/// The oracle asks for a choice among all spans, which is weighed completely. The script goes on alike for
/// both.
#[test]
fn the_likeliest_spans_of_a_text_are_those_of_a_choice_among_all() {
    let service = Service::start();
    let text = "Eva, né Adam, is Ada: Ada 34";
    let extract = |more: Value| {
        let mut question =
            json!({"type": "extract", "name": "who", "instructions": "echo Ada", "text": text});
        question
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        decide(&service, "x", json!([question])).remove(0)
    };
    let found = extract(json!({"spans": 6, "max_words": 2}));
    assert_eq!(
        (&found["text"], &found["name"], &found["type"]),
        (&json!("Ada"), &json!("who"), &json!("extract"))
    );
    let best = &found["spans"][0];
    assert_eq!(
        (&best["start"], &best["end"]),
        (&json!(17), &json!(20)),
        "in characters: {found}"
    );
    let spans = [
        "Eva",
        "Eva,",
        ",",
        ", n\u{e9}",
        "n\u{e9}",
        "n\u{e9} Adam",
        "Adam",
        "Adam,",
        ", is",
        "is",
        "is Ada",
        "Ada",
        "Ada:",
        ":",
        ": Ada",
        "Ada 34",
        "34",
    ];
    let choices: Vec<Value> = spans.iter().map(|span| json!({"value": span})).collect();
    let all = decide(
        &service,
        "x",
        json!([{"type": "choice", "instructions": "echo Ada", "choices": choices}]),
    )
    .remove(0);
    let mut all: Vec<(&str, f64)> = all["probabilities"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            (
                entry["value"].as_str().expect("a text"),
                entry["probability"].as_f64().expect("a number"),
            )
        })
        .collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1));
    for (number, (_, probability)) in all[..6].iter().enumerate() {
        let ratio = found["spans"][number]["probability"].as_f64().expect("a number")
            / best["probability"].as_f64().expect("one");
        assert!(
            (ratio.ln() - (probability / all[0].1).ln()).abs() < 1e-6,
            "{number}: {found} {all:?}"
        );
    }
    let one = extract(json!({"boundary": "character", "max_words": 1}));
    assert_eq!(
        (&one["text"], one["spans"].as_array().map(Vec::len)),
        (&json!("A"), Some(1))
    );
}

#[test]
fn spans_that_cannot_be_found_are_refused() {
    let service = Service::start();
    let long: String = (0..9000).map(|number| format!("w{number} ")).collect();
    for (wrong, param, meant) in [
        (json!({"text": ""}), "questions[0].text", "1 to 65536 bytes"),
        (json!({"text": " \n"}), "questions[0].text", "visible"),
        (
            json!({"text": long}),
            "questions[0].text",
            "65536 different spans",
        ),
        (
            json!({"text": "a", "max_words": 65}),
            "questions[0].max_words",
            "64",
        ),
        (json!({"text": "a", "spans": 21}), "questions[0].spans", "20"),
        (
            json!({"text": "a", "boundary": "line"}),
            "questions[0].boundary",
            "'character'",
        ),
        (json!({"text": "a", "choices": []}), "questions[0].choices", ""),
        (json!({}), "questions[0].text", ""),
    ] {
        let mut question = json!({"type": "extract", "instructions": "which?"});
        question
            .as_object_mut()
            .expect("an object")
            .extend(wrong.as_object().cloned().unwrap_or_default());
        let body = json!({"model": "m", "input": "x", "questions": [question]});
        let answer = service.post("/v1/decisions", &body.to_string());
        assert_eq!(answer.status, 400, "{wrong}");
        let error = answer.json()["error"].clone();
        assert_eq!(error["param"], param, "{error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| message.contains(meant)),
            "{error}"
        );
    }
    let question = json!({"type": "extract", "instructions": "which?", "text": "a b"});
    let body = json!({"model": "m", "input": "x", "questions": [question], "tokenisations": "all"});
    let answer = service.post("/v1/decisions", &body.to_string());
    assert_eq!(
        (answer.status, &answer.json()["error"]["param"]),
        (400, &json!("tokenisations"))
    );
}

#[test]
fn the_same_question_gets_the_same_numbers() {
    let service = Service::start();
    let question = json!([{"type": "predicate", "instructions": "is it?"}]);
    assert_eq!(
        decide(&service, "x", question.clone()),
        decide(&service, "x", question)
    );
}

/// The log-probability of each byte of a text where the script wants another text, where `None` wants the
/// letter `a` for ever.
fn script_logs(text: &str, wanted: Option<&str>) -> Vec<f64> {
    let log = |(place, byte): (usize, u8)| {
        let next = wanted.map_or(Some(b'a'), |wanted| wanted.as_bytes().get(place).copied());
        let logit = |token: usize| match token {
            _ if next.map_or(257, usize::from) == token => 20.0_f64,
            34 | 93 | 125 => 2.0,
            257 => 1.0,
            _ => 0.0,
        };
        let sum: f64 = (0..259).map(|token| logit(token).exp()).sum();
        logit(usize::from(byte)) - sum.ln()
    };
    text.bytes().enumerate().map(log).collect()
}

/// The answer to a question that is answered by a method.
fn chosen(service: &Service, said: &str, texts: &[&str], method: &str) -> Value {
    let choices: Vec<Value> = texts.iter().map(|text| json!({"value": text})).collect();
    let question = json!({"type": "choice", "name": "q", "instructions": format!("echo {said}"),
        "choices": choices, "choices_method": method});
    let answer = decide(service, "x", json!([question])).remove(0);
    assert_eq!(
        (&answer["choices_method"], &answer["name"]),
        (&json!(method), &json!("q"))
    );
    answer
}

fn close(logs: &Value, expected: &[f64]) {
    let logs = logs.as_array().expect("logs").iter();
    let logs: Vec<f64> = logs.filter_map(Value::as_f64).collect();
    let mut pairs = logs.iter().zip(expected);
    let is_close = pairs.all(|(log, expected)| (log - expected).abs() < 1e-4);
    assert!(logs.len() == expected.len() && is_close, "{logs:?} {expected:?}");
}

/// The scripted model is computed anew here, token by token: a token for each byte.
#[test]
fn choices_are_chosen_by_the_means_of_their_tokens() {
    let service = Service::start();
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    for (said, texts) in [
        ("banana", &["blue", "banana", "ba"][..]),
        ("no", &["aaaaaa", "nope", "nnnn", "b"]),
        ("aab", &["aac", "aab", "aabcc", "a"]),
    ] {
        // What the script says goes on with the words of the question.
        let list: String = texts.iter().map(|text| format!("\n- {text}")).collect();
        let wanted = format!("{said}\n\nAnswer with one of:{list}");
        let logs: Vec<Vec<f64>> = texts
            .iter()
            .map(|text| script_logs(text, Some(&wanted)))
            .collect();
        let mut without: Vec<Vec<f64>> = texts.iter().map(|text| script_logs(text, None)).collect();
        without.iter_mut().for_each(|logs| logs[0] = 0.0);
        let zipped = logs.iter().zip(&without);
        let differences: Vec<Vec<f64>> = zipped
            .map(|(with, without)| with.iter().zip(without).map(|(a, b)| a - b).collect())
            .collect();
        for (method, compared) in [
            ("token_length_normalized", &logs),
            ("unconditional_likelihood_normalized", &differences),
        ] {
            let answer = chosen(&service, said, texts, method);
            let scores: Vec<f64> = compared.iter().map(|logs| mean(logs)).collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let best = scores.iter().position(|&score| score == most);
            assert_eq!(answer["choice"], texts[best.expect("a best one")], "{answer}");
            let entries = answer["scores"].as_array().expect("a list");
            for (place, entry) in entries.iter().enumerate() {
                assert_eq!(entry["value"], texts[place]);
                close(&json!([entry["score"]]), &[scores[place]]);
                close(&entry["token_logprobs"], &logs[place]);
                if method == "unconditional_likelihood_normalized" {
                    close(&entry["unconditional_token_logprobs"], &without[place]);
                }
            }
        }
    }
}

#[test]
fn choices_are_chosen_token_by_token() {
    let service = Service::start();
    let chosen = |said: &str, texts: &[&str]| {
        let answer = chosen(&service, said, texts, "greedy_token_selection");
        assert!(answer["scores"][0].get("score").is_none(), "{answer}");
        answer["choice"].as_str().map(str::to_owned)
    };
    // `banana` goes on as well as it begins, and `bx` does not.
    assert_eq!(
        chosen("banana", &["bx", "banana", "c"]).as_deref(),
        Some("banana")
    );
    // The first token decides.
    assert_eq!(chosen("ab", &["ax", "b"]).as_deref(), Some("ax"));
}

#[test]
fn a_method_needs_choices_in_canonical_tokens() {
    let service = Service::start();
    let ask = |question: Value, more: Value| {
        let mut body = json!({"model": "m", "input": "x", "questions": [question]});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        service.post("/v1/decisions", &body.to_string())
    };
    let choice = |method: &str| {
        json!({"type": "choice", "instructions": "q", "choices": [{"value": "a"}, {"value": "b"}],
               "choices_method": method})
    };
    for answer in [
        ask(choice("greedy_token_selection"), json!({"tokenisations": "all"})),
        ask(choice("longest"), json!({})),
        ask(
            json!({"type": "predicate", "instructions": "q", "choices_method": "greedy_token_selection"}),
            json!({}),
        ),
    ] {
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["param"]),
            (400, &json!("questions[0].choices_method")),
            "{error}"
        );
    }
}

/// Guards against questions that get the time of an answer anew for every sixteen of them.
#[test]
fn all_questions_together_have_the_time_of_one_answer() {
    let limits = RequestLimits::new(PATIENCE, Duration::from_secs(1), 1 << 20);
    let served = served(roomy(), (TEMPLATE, &[])).with_limits(limits);
    let options = Options::canonical(&[vec![u32::from(b'a')], vec![u32::from(b'b')]]).expect("options");
    let request = Request::new(vec![u32::from(b'x')], 1)
        .task(Weigh {
            options: Arc::new(options),
            likeliest: None,
        })
        .sampling(Sampling::seeded(0));
    let begun = Instant::now() - Duration::from_secs(2);
    let mut usage = Usage::default();
    let weighed = weigh(&served, vec![request], begun, &mut usage);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let error = runtime
        .expect("a runtime")
        .block_on(weighed)
        .expect_err("the time is over");
    assert_eq!((error.status().as_u16(), error.code()), (408, "request_timeout"));
    assert!(error.to_string().contains("ran for more than 1 s"), "{error}");
}
