//! Answers for which the tokens are few, and log-probabilities before and after the constraint.

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// What the model says, longer than the tokens of most tests.
const SAID: &str = r#"echo {"name":"Ada Lovelace of London"}"#;
const WHOLE: &str = r#"{"name":"Ada Lovelace of London"}"#;

fn wish(more: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                        "additionalProperties": false});
    let mut wish = json!({"guided_json": schema, "whitespace": "compact"});
    if let (Value::Object(wish), Value::Object(more)) = (&mut wish, more) {
        wish.extend(more);
    }
    wish
}

fn content(answer: &Answer) -> (String, String, Value) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choice = answer.json()["choices"][0].take();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (
        text(&choice["message"]["content"]),
        text(&choice["finish_reason"]),
        choice["lexiform"]["budget"].clone(),
    )
}

/// C2: JSON that `max_tokens` cuts, which clients cannot parse and pay for again. The answer is complete and
/// says `stop`, because clients fail on `length` even where the text can be read; where it was steered stands
/// beside it: six tokens before the end is no time any more for a character of four bytes.
#[test]
fn an_answer_is_completed_in_time_and_says_from_where_it_was_steered() {
    let service = Service::start();
    let (text, finish, budget) = content(&service.chat(SAID, wish(json!({"max_tokens": 15}))));
    assert_eq!((text.as_str(), finish.as_str()), (r#"{"name":"Ada "}"#, "stop"));
    assert_eq!(
        budget,
        json!({"steered": true, "from_token": 10, "max_tokens": 15})
    );
    assert_eq!(service.metric("lexiform_budget_steered_total"), 1);
    let steered = service.chat(SAID, wish(json!({"max_tokens": 15})));
    assert_eq!(steered.header("x-lexiform-budget"), Some("steered"));

    let streamed = service.chat(SAID, wish(json!({"max_tokens": 15, "stream": true})));
    let told: Vec<Value> = (streamed.events().iter())
        .filter_map(|event| event["choices"][0]["lexiform"].get("budget").cloned())
        .collect();
    assert_eq!(told, [budget], "in the last chunk of the sample, and only there");
    assert_eq!(service.metric("lexiform_budget_steered_total"), 3);

    let ample = content(&service.chat(SAID, wish(json!({"max_tokens": 200}))));
    assert_eq!(ample, (WHOLE.to_owned(), "stop".to_owned(), Value::Null));
    let free = content(&service.chat("echo abcdef", json!({"max_tokens": 3})));
    assert_eq!(free, ("abc".to_owned(), "length".to_owned(), Value::Null));
    assert_eq!(service.metric("lexiform_budget_steered_total"), 3);
    let ample = service.chat(SAID, wish(json!({"max_tokens": 200})));
    assert_eq!(ample.header("x-lexiform-budget"), None);
}

/// A3: free text that `max_tokens` cuts, and says `stop`, because the model might also have called a tool. Of
/// the text that is told, the finish reason and the budget are those of an answer without tools; a text that
/// ends by itself is whole, however near the tokens' end it is, unless what the model wanted was a call that
/// no longer fitted.
#[test]
fn free_text_that_is_cut_says_so_though_there_are_tools() {
    let service = Service::start();
    let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
                            "additionalProperties": false});
    let tools = json!([{"type": "function", "function": {"name": "say", "parameters": parameters}}]);
    let steered = |from: usize, max_tokens: usize| json!({"steered": true, "from_token": from, "max_tokens": max_tokens});
    let table = [
        // Three tokens before the end is no time any more for a character of four bytes.
        ("a long text", 6, "a long", "length", steered(3, 6)),
        ("a text", 40, "a text", "stop", Value::Null),
        // What would be the beginning of a call is taken away, and was not wanted.
        ("<tool_call x", 30, "<tool_call x", "stop", steered(10, 30)),
        // It was wanted, and something else stands there.
        ("<tool_call>", 30, "<tool_call\"", "length", steered(10, 30)),
    ];
    for (said, max_tokens, text, finish, budget) in table {
        let more = json!({"tools": tools, "max_tokens": max_tokens});
        let answer = service.chat(&format!("echo {said}"), more.clone());
        let told = content(&answer);
        assert_eq!(
            told,
            (text.to_owned(), finish.to_owned(), budget.clone()),
            "{said}"
        );
        let header = (!budget.is_null()).then_some("steered");
        assert_eq!(answer.header("x-lexiform-budget"), header, "{said}");
        let mut streamed = more;
        streamed["stream"] = json!(true);
        let events = service.chat(&format!("echo {said}"), streamed).events();
        let mut ends = events
            .iter()
            .filter(|event| event["choices"][0]["finish_reason"].is_string());
        assert_eq!(
            ends.next().expect("an end")["choices"][0]["finish_reason"],
            finish,
            "{said}"
        );
    }
}

/// A call that is begun is whole: clients run it, and what steered it stands beside it.
#[test]
fn a_call_that_is_steered_is_a_call() {
    let service = Service::start();
    let parameters = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
                            "additionalProperties": false});
    let tools = json!([{"type": "function", "function": {"name": "say", "parameters": parameters}}]);
    let arguments = r#"{"text":"a text that is too long for so few tokens"}"#;
    let framed = format!(r#"{{"name": "say", "arguments": {arguments}}}"#);
    for (choice, said, max_tokens) in [("auto", framed.as_str(), 48), ("required", arguments, 24)] {
        let more = json!({"tools": tools, "tool_choice": choice, "max_tokens": max_tokens});
        let answer = service.chat(&format!("echo {said}"), more);
        let choice = answer.json()["choices"][0].take();
        assert_eq!(choice["finish_reason"], "tool_calls", "{choice}");
        assert_eq!(choice["lexiform"]["budget"]["steered"], true, "{choice}");
        assert_eq!(answer.header("x-lexiform-budget"), Some("steered"));
        let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str();
        let arguments: Value = serde_json::from_str(arguments.expect("arguments")).expect("JSON");
        assert!(
            arguments["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("a ")),
            "{arguments}"
        );
    }
}

/// The raw input of a custom tool may end anywhere, unless it obeys a grammar.
#[test]
fn raw_input_that_is_cut_says_so() {
    let service = Service::start();
    let raw = json!([{"type": "custom", "custom": {"name": "sql"}}]);
    let grammar = json!({"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z ]+;"}});
    let regular = json!([{"type": "custom", "custom": {"name": "sql", "format": grammar}}]);
    for (tools, max_tokens, finish) in [
        (&raw, 6, "length"),
        (&raw, 60, "tool_calls"),
        (&regular, 6, "tool_calls"),
    ] {
        let more = json!({"tools": tools, "tool_choice": "required", "max_tokens": max_tokens});
        let answer = service.chat("echo a long text;", more).json();
        assert_eq!(answer["choices"][0]["finish_reason"], finish, "{answer}");
    }
}

/// Free text in which tags may stand is cut like any other; a tag that is begun is completed.
#[test]
fn free_text_between_tags_is_cut_like_any_other() {
    let service = Service::start();
    let tags = json!({"type": "structural_tag", "triggers": ["<f="], "structures": [
        {"begin": "<f=n>", "schema": {"type": "integer"}, "end": "</f>"}]});
    for (said, max_tokens, finish) in [("a long text", 6, "length"), ("a text", 40, "stop")] {
        let answer = service.chat(
            &format!("echo {said}"),
            json!({"response_format": tags, "max_tokens": max_tokens}),
        );
        assert_eq!(content(&answer).1, finish, "{said}");
    }
}

#[test]
fn completions_and_responses_tell_the_same() {
    let service = Service::start();
    let body = wish(json!({"model": "m", "prompt": "x", "max_tokens": 15}));
    let body = service.post("/v1/completions", &body.to_string()).json();
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["choices"][0]["lexiform"]["budget"]["max_tokens"], 15);

    let asked = |more: Value| {
        let mut body = wish(json!({"model": "m", "input": SAID, "max_output_tokens": 15}));
        body["on_budget"] = more;
        service.post("/v1/responses", &body.to_string()).json()
    };
    let body = asked(json!("complete"));
    assert_eq!(
        (&body["status"], &body["lexiform"]["budget"]["from_token"]),
        (&json!("completed"), &json!(10))
    );
    let body = asked(json!("truncate"));
    assert_eq!(
        (&body["status"], &body["incomplete_details"]["reason"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    assert_eq!(body["output"][0]["content"][0]["text"], WHOLE[..15]);
    assert!(body["lexiform"].get("budget").is_none());
    assert_eq!(asked(json!("error"))["error"]["code"], "budget_exceeded");
}

#[test]
fn an_answer_is_cut_if_that_is_wanted() {
    let service = Service::start();
    for (max_tokens, finish) in [(3, "length"), (15, "length"), (WHOLE.len(), "stop")] {
        let more = json!({"max_tokens": max_tokens, "on_budget": "truncate"});
        let told = content(&service.chat(SAID, wish(more.clone())));
        assert_eq!(
            told,
            (WHOLE[..max_tokens].to_owned(), finish.to_owned(), Value::Null)
        );
        let mut streamed = more;
        streamed["stream"] = json!(true);
        streamed["stream_options"] = json!({"json_patch": true});
        let events = service.chat(SAID, wish(streamed)).events();
        let last = events
            .iter()
            .rev()
            .find(|event| event["choices"][0]["finish_reason"].is_string());
        assert_eq!(last.expect("an end")["choices"][0]["finish_reason"], finish);
    }
    assert_eq!(service.metric("lexiform_budget_steered_total"), 0);
}

#[test]
fn an_answer_that_would_be_cut_is_an_error_if_that_is_wanted() {
    let service = Service::start();
    let ask = |max_tokens: usize, stream: bool| {
        let more = json!({"max_tokens": max_tokens, "on_budget": "error", "stream": stream});
        service.chat(SAID, wish(more))
    };
    assert_eq!(content(&ask(WHOLE.len(), false)).0, WHOLE);
    let answer = ask(15, false);
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (422, "budget_exceeded")
    );
    assert_eq!(answer.json()["error"]["param"], "max_tokens");
    let events = ask(15, true).events();
    assert_eq!(
        events.last().expect("an event")["error"]["code"],
        "budget_exceeded"
    );
    let text: String = (events.iter())
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(
        text,
        WHOLE[..15],
        "what was sent is the beginning of the unsteered answer"
    );
    let answer = ask(3, false);
    assert_eq!(
        (answer.status, answer.error_code().as_str()),
        (400, "budget_too_small")
    );
    let free = service.chat("echo abcdef", json!({"max_tokens": 3, "on_budget": "error"}));
    assert_eq!(free.error_code(), "budget_exceeded");
}

#[test]
fn words_that_mean_nothing_are_refused_with_their_place() {
    let service = Service::start();
    for (field, value) in [
        ("on_budget", json!("finish")),
        ("on_budget", json!(1)),
        ("logprobs_mode", json!("raw_logits")),
        ("logprobs_mode", json!(true)),
    ] {
        for path in ["/v1/chat/completions", "/v1/completions", "/v1/responses"] {
            let body = json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "prompt": "x", "input": "x",
                              field: value.clone()});
            let answer = service.post(path, &body.to_string());
            assert_eq!(
                (answer.status, answer.error_code().as_str()),
                (400, "invalid_value"),
                "{path}"
            );
            assert_eq!(answer.json()["error"]["param"], field, "{path}");
        }
    }
    let more = json!({"on_budget": "truncate", "law": "global", "temperature": 1, "max_tokens": 50});
    let answer = service.chat(SAID, wish(more));
    assert_eq!(
        (answer.status, answer.json()["error"]["param"].as_str()),
        (400, Some("on_budget"))
    );
}

/// What the model wanted and what it could have: `!` is no letter, so before the constraint it is likely and
/// what is drawn is not; after it, what is drawn has nearly everything.
#[test]
fn log_probabilities_are_told_before_or_after_the_constraint() {
    let service = Service::start();
    let ask = |mode: Option<&str>| {
        let mut more = json!({"guided_regex": "[a\"]", "logprobs": true, "top_logprobs": 5});
        if let Some(mode) = mode {
            more["logprobs_mode"] = json!(mode);
        }
        let answer = service.chat("echo !", more);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["choices"][0]["logprobs"]["content"][0].take()
    };
    let raw = ask(None);
    assert_eq!(ask(Some("raw_logprobs")), raw);
    assert_eq!(
        (&raw["token"], &raw["top_logprobs"][0]["token"]),
        (&json!("\""), &json!("!"))
    );
    assert!(
        raw["logprob"].as_f64().is_some_and(|logprob| logprob < -10.0),
        "{raw}"
    );
    assert_eq!(raw["top_logprobs"].as_array().map(Vec::len), Some(5));

    let processed = ask(Some("processed_logprobs"));
    // The script gives the quote a logit of 2 and the letter one of 0.
    let expected = -(1.0 + (-2.0f64).exp()).ln();
    let near = |value: &Value, wanted: f64| value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-5);
    assert!(near(&processed["logprob"], expected), "{processed}");
    let top = processed["top_logprobs"].as_array().expect("a list");
    assert_eq!(top.len(), 2, "no more are allowed");
    assert!(
        near(&top[0]["logprob"], expected) && near(&top[1]["logprob"], expected - 2.0),
        "{processed}"
    );
}
