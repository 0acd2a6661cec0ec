//! Callbacks: hosts that the operator allows, asked about texts while these are written.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use super::callback_host::{Host, Reply, named};
use super::service::{Answer, PATIENCE, Service, chat};

/// Asks for `x` and two letters, which are all alike to the model.
fn body(more: Value) -> Value {
    let mut body =
        json!({"response_format": {"type": "regex", "pattern": "x[a-d]{2}"}, "temperature": 1, "seed": 5});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

fn ask(service: &Service, more: Value) -> Answer {
    service.chat("echo x", body(more))
}

fn monitored(more: Value) -> Value {
    let mut body = json!({"monitors": [{"type": "callback", "name": "schema"}]});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    body
}

fn contents(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let choices = answer.json()["choices"].as_array().expect("choices").clone();
    let content = |choice: &Value| choice["message"]["content"].as_str().expect("a text").to_owned();
    choices.iter().map(content).collect()
}

/// No letter twice, and no b at the end.
fn judged(text: &str, is_whole: bool) -> Value {
    let letters: BTreeSet<char> = text.chars().collect();
    let is_at_end = is_whole || text.len() == 3;
    json!(letters.len() == text.len() && !(is_at_end && text.ends_with('b')))
}

#[test]
fn a_text_obeys_the_constraint_and_the_callback() {
    let host = Host::judging(|text, is_whole| match text {
        // Whatever begins like this may end in b, too.
        "xd" => json!("allowed"),
        _ => judged(text, is_whole),
    });
    let service = Service::calling(host.callbacks());
    let mut found = BTreeSet::new();
    let laws = [
        json!({"n": 8}),
        json!({"law": "smc", "particles": 4, "n": 4}),
        json!({"law": "sir", "particles": 4, "proposal": "awrs"}),
        json!({"n": 2, "monitors": [{"type": "regex", "pattern": "x[ad]."}, {"type": "callback", "name": "schema"}]}),
    ];
    for seed in 0..12 {
        for law in &laws {
            let mut more = monitored(json!({ "seed": seed }));
            if let (Value::Object(more), Value::Object(law)) = (&mut more, law.clone()) {
                more.extend(law);
            }
            found.extend(contents(&ask(&service, more)));
        }
    }
    let mut expected: BTreeSet<String> = BTreeSet::from(["xdd".to_owned(), "xdb".to_owned()]);
    for first in ["a", "b", "c", "d"] {
        let second = ["a", "c", "d"].into_iter().filter(|second| *second != first);
        expected.extend(second.map(|second| format!("x{first}{second}")));
    }
    assert_eq!(found, expected);
}

/// The names that exist are known only when the text comes to their place.
#[test]
fn what_comes_next_is_said_at_run_time_and_written_without_questions() {
    let host = Host::judging(|text, is_whole| match text {
        "x" => json!(["ab", "cd", "zz"]),
        _ => json!(is_whole || text.is_empty() || text.len() == 3),
    });
    let service = Service::calling(host.callbacks());
    let mut found = BTreeSet::new();
    for seed in 0..20 {
        let answer = ask(&service, monitored(json!({ "seed": seed })));
        assert_eq!(answer.json()["choices"][0]["lexiform"]["law"], "local");
        found.extend(contents(&answer));
    }
    assert_eq!(found, BTreeSet::from(["xab".to_owned(), "xcd".to_owned()]));
    let texts: BTreeSet<String> = host.texts().into_iter().collect();
    // All that the constraint allows was asked about, and nothing inside a name.
    assert!(
        texts
            .iter()
            .all(|text| ["", "x", "xab", "xcd"].contains(&text.as_str())),
        "{texts:?}"
    );
}

/// The beginning and the first token are asked about together, and later tokens once each, over one
/// connection.
#[test]
fn a_token_takes_one_question_of_one_connection() {
    let host = Host::judging(judged);
    let service = Service::calling(host.callbacks());
    let data = json!({"database": "shop"});
    let monitors = json!([{"type": "callback", "name": "schema", "data": data}]);
    contents(&ask(&service, json!({ "monitors": monitors, "draft": false })));
    let questions = host.questions();
    assert_eq!(questions.len(), 4, "{questions:?}");
    assert_eq!(questions[0]["texts"], json!(["", "x"]));
    assert_eq!(
        questions[1]["texts"].as_array().map(Vec::len),
        Some(4),
        "{questions:?}"
    );
    assert_eq!(questions[3]["done"], json!([true]));
    for question in &questions {
        assert_eq!(
            (&question["callback"], &question["want"], &question["data"]),
            (&json!("schema"), &json!("verdicts"), &data)
        );
        assert!(question["id"].as_str().is_some_and(|id| id.starts_with("cb_")));
        assert_eq!(question["id"], questions[0]["id"]);
    }
    assert_eq!(*host.connections.lock().expect("no panic"), 1);
    // A connection that the host has closed meanwhile is replaced.
    let closing = Host::of(|question| {
        let verdicts = vec![true; question["texts"].as_array().map_or(0, Vec::len)];
        let body = json!({ "verdicts": verdicts }).to_string();
        Reply::Raw(format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    });
    let service = Service::calling(closing.callbacks());
    assert_eq!(contents(&ask(&service, monitored(json!({})))).len(), 1);
    assert!(*closing.connections.lock().expect("no panic") > 2);
}

fn failed(answer: &Answer, status: u16, param: &str) -> String {
    let error = answer.json()["error"].clone();
    assert_eq!(answer.status, status, "{error}");
    assert_eq!(
        (&error["code"], &error["type"], &error["param"]),
        (&json!("callback_failed"), &json!("server_error"), &json!(param)),
        "{error}"
    );
    assert!(
        !answer.text().contains("127.0.0.1"),
        "{error}: a client need not know the address"
    );
    error["message"].as_str().expect("a message").to_owned()
}

#[test]
fn a_callback_without_an_answer_fails_the_request_and_nothing_is_written() {
    let elsewhere = Host::judging(judged);
    let (moved, chunked) = (
        format!(
            "HTTP/1.1 302 Found\r\nlocation: http://{}/judge\r\ncontent-length: 0\r\n\r\n",
            elsewhere.address
        ),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    );
    let raw = |text: &str| {
        let text = text.to_owned();
        Host::of(move |_| Reply::Raw(text.clone()))
    };
    let of = |answer: Value| Host::of(move |_| Reply::Json(answer.clone()));
    for (host, word) in [
        (
            raw("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n"),
            "status 500",
        ),
        (raw(&moved), "status 302"),
        (raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{]"), "not JSON"),
        (
            raw("HTTP/1.1 200 OK\r\ncontent-length: 200\r\n\r\n{}"),
            "closed the connection",
        ),
        (raw(chunked), "chunk length"),
        (raw("nonsense\r\n\r\n"), "not HTTP"),
        (raw(""), "closed the connection"),
        (of(json!({"verdicts": [true]})), "1 verdicts"),
        (of(json!({"verdicts": [true, null]})), "verdicts[1]"),
        (of(json!({"verdict": true})), "no list of verdicts"),
    ] {
        let service = Service::calling(host.callbacks());
        let message = failed(&ask(&service, monitored(json!({}))), 502, "monitors[0]");
        assert!(
            message.contains(word) && message.contains("callback schema"),
            "{word}: {message}"
        );
        // For particles, a text without an answer is not one that is impossible.
        failed(
            &ask(&service, monitored(json!({"law": "smc", "particles": 2}))),
            502,
            "monitors[0]",
        );
        let streamed = ask(&service, monitored(json!({"stream": true})));
        assert!(streamed.text().contains("callback_failed"), "{}", streamed.text());
        assert!(
            !streamed.text().contains("\"content\":\"x"),
            "{}",
            streamed.text()
        );
        assert_eq!(
            contents(&ask(&service, json!({}))).len(),
            1,
            "the next request is as good"
        );
    }
    assert!(elsewhere.questions().is_empty(), "a redirect was followed");
    // Nobody listens there any more.
    let port = TcpListener::bind(("127.0.0.1", 0))
        .expect("a free port")
        .local_addr()
        .expect("an address")
        .port();
    let gone = named(&[("schema", format!("http://127.0.0.1:{port}"))], PATIENCE, None);
    let message = failed(
        &ask(&Service::calling(gone), monitored(json!({}))),
        502,
        "monitors[0]",
    );
    assert!(message.contains("cannot be reached"), "{message}");
}

/// The host is silent. Its request ends after its time, and others do not wait for it.
#[test]
fn a_callback_that_is_silent_ends_its_request_after_its_time() {
    let host = Host::of(|_| Reply::Silence);
    let service = Service::calling(host.within(Duration::from_millis(200)));
    let waiting = service.begin(
        "/v1/chat/completions",
        &chat("echo x", body(monitored(json!({})))),
    );
    assert_eq!(contents(&ask(&service, json!({}))).len(), 1);
    let message = failed(&Answer::read(waiting), 504, "monitors[0]");
    assert!(message.contains("0.2 s"), "{message}");
}

#[test]
fn only_callbacks_that_the_operator_allows_are_asked() {
    let host = Host::judging(judged);
    let service = Service::calling(host.callbacks());
    let url = format!("http://{}/judge", host.address);
    let with = |more: Value| json!({ "monitors": [more] });
    for (more, param) in [
        (
            with(json!({"type": "callback", "name": "other"})),
            "monitors[0].name",
        ),
        (with(json!({"type": "callback", "name": url})), "monitors[0].name"),
        (with(json!({"type": "callback"})), "monitors[0].name"),
        (with(json!({"type": "callback", "name": 5})), "monitors[0].name"),
        (
            with(json!({"type": "callback", "name": "schema", "url": url})),
            "monitors[0].url",
        ),
        (
            with(json!({"type": "callback", "name": "schema", "data": "x".repeat(20_000)})),
            "monitors[0].data",
        ),
        (monitored(json!({"law": "global"})), "monitors"),
        (monitored(json!({"response_format": null})), "monitors"),
        (json!({"tilt": {"callback": "schema"}}), "tilt"),
        (json!({"tilt": {"callback": "schema"}, "law": "global"}), "tilt"),
        (
            json!({"tilt": {"callback": "schema"}, "law": "smc", "proposal": "twisted"}),
            "tilt",
        ),
        (
            json!({"tilt": {"callback": "schema"}, "use_beam_search": true}),
            "tilt",
        ),
        (
            json!({"tilt": {"callback": "other"}, "law": "sir"}),
            "tilt.callback",
        ),
        (json!({"tilt": {}, "law": "sir"}), "tilt.callback"),
        (json!({"tilt": "schema", "law": "sir"}), "tilt"),
        (
            json!({"tilt": {"callback": "schema", "prefixes": true}, "law": "sir"}),
            "tilt.prefixes",
        ),
    ] {
        let answer = ask(&service, more.clone());
        let error = answer.json()["error"].clone();
        assert_eq!(answer.status, 400, "{more}: {error}");
        assert_eq!(error["param"], param, "{more}: {error}");
    }
    assert!(host.questions().is_empty());
    let without = ask(&Service::start(), monitored(json!({})));
    assert!(without.text().contains("--callback"), "{}", without.text());
}

/// A callback is asked about the content: a thought before it is free, and so is a call in its place.
#[test]
fn thoughts_and_calls_are_not_asked_about() {
    let host = Host::judging(|text, _| json!("{\"age\":35}".starts_with(text)));
    let service = Service::calling_of(host.callbacks(), &["<think>", "</think>"]);
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
                        "additionalProperties": false});
    let more = monitored(
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}}),
    );
    let text = "echo <think>an {object}?</think>\n\n{\"age\":35}";
    let answer = service.chat(text, more.clone());
    assert_eq!(contents(&answer), ["{\"age\":35}"]);
    assert_eq!(
        answer.json()["choices"][0]["message"]["reasoning"],
        "an {object}?"
    );
    assert!(
        host.texts()
            .iter()
            .all(|text| !text.contains("think") && !text.contains("object")),
        "{:?}",
        host.texts()
    );
    let tool = json!({"type": "function", "function": {"name": "mk", "parameters": schema}});
    let call = "echo <tool_call>\n{\"name\": \"mk\", \"arguments\": {\"age\":36}}\n</tool_call>";
    let mut more = more;
    more["tools"] = json!([tool]);
    let answer = service.chat(call, more);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let message = &answer.json()["choices"][0]["message"];
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"], "{\"age\":36}",
        "{message}"
    );
}

/// All texts are alike to the model, so that what distinguishes their weights is the score.
#[test]
fn weights_are_those_of_the_model_times_the_metric() {
    fn score(text: &str) -> f64 {
        text.bytes()
            .skip(1)
            .map(|letter| f64::from(letter - b'a') * 0.75)
            .sum()
    }
    for (more, prefixes) in [
        (json!({"law": "sir", "particles": 16}), false),
        (
            json!({"law": "smc", "particles": 16, "ess_threshold": 0.01}),
            false,
        ),
        (
            json!({"law": "smc", "particles": 16, "ess_threshold": 0.01}),
            true,
        ),
    ] {
        let host = Host::scoring(move |text, is_whole| {
            assert!(is_whole || prefixes, "{text}");
            json!(score(text))
        });
        let service = Service::calling(host.callbacks());
        let mut more = more;
        more["tilt"] = json!({"callback": "schema", "prefixes": prefixes});
        more["return_particles"] = json!(true);
        let answer = ask(&service, more);
        assert_eq!(contents(&answer).len(), 1);
        let population = answer.json()["choices"][0]["lexiform"]["population"].clone();
        let constant = |particle: &Value| {
            let text = particle["text"].as_str().expect("a text");
            particle["log_weight"].as_f64().expect("a weight") - score(text)
        };
        let constants: Vec<f64> = population
            .as_array()
            .expect("texts")
            .iter()
            .map(constant)
            .collect();
        assert_eq!(constants.len(), 16);
        assert!(
            constants
                .iter()
                .all(|constant| (constant - constants[0]).abs() < 1e-6),
            "{constants:?}"
        );
        assert!(
            host.questions()
                .iter()
                .all(|question| question["want"] == "scores")
        );
    }
    let never = Host::scoring(|text, _| if text == "xaa" { json!(0) } else { json!("-inf") });
    let service = Service::calling(never.callbacks());
    let more = json!({"law": "sir", "particles": 64, "tilt": {"callback": "schema"}, "seed": 3});
    assert_eq!(contents(&ask(&service, more)), ["xaa"]);
    let wrong = Host::scoring(|_, _| json!(null));
    let service = Service::calling(wrong.callbacks());
    let more = json!({"law": "sir", "particles": 4, "tilt": {"callback": "schema"}});
    assert!(failed(&ask(&service, more), 502, "tilt").contains("scores[0]"));
}

/// The answers have the law of the weights: shares of texts are about the model's times `exp` of the score.
#[test]
fn the_texts_of_a_tilted_population_have_its_law() {
    let host = Host::scoring(|text, _| json!(if text.ends_with('a') { 2.0_f64.ln() } else { 0.0 }));
    let service = Service::calling(host.callbacks());
    let mut ends = 0;
    for seed in 0..40 {
        let more =
            json!({"law": "sir", "particles": 64, "n": 8, "tilt": {"callback": "schema"}, "seed": seed});
        ends += contents(&ask(&service, more))
            .iter()
            .filter(|text| text.ends_with('a'))
            .count();
    }
    // Two fifths, where without a score it is a quarter; seeds are fixed.
    let share = ends as f64 / 320.0;
    assert!((share - 0.4).abs() < 0.07, "{share}");
}

#[test]
fn a_callback_over_https_is_certified_by_the_authorities_that_the_operator_names() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key =
        rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let tls = rustls::ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("a configuration");
    let host = Host::over(Some(tls.into()), |question| {
        let verdicts = vec![true; question["texts"].as_array().map_or(0, Vec::len)];
        Reply::Json(json!({ "verdicts": verdicts }))
    });
    let url = format!("https://localhost:{}/judge", host.address.port());
    let trusting = |certificate: &rcgen::Certificate, name: &str| {
        let file = std::env::temp_dir().join(format!("lexiform-callback-{}-{name}.pem", std::process::id()));
        std::fs::write(&file, certificate.pem()).expect("a file");
        let callbacks = named(&[("schema", url.clone())], PATIENCE, Some(&file));
        std::fs::remove_file(&file).expect("the file");
        Service::calling(callbacks)
    };
    let answer = ask(&trusting(&certified.cert, "right"), monitored(json!({})));
    assert_eq!(contents(&answer).len(), 1);
    assert!(!host.questions().is_empty());
    let before = host.questions().len();
    failed(
        &ask(&trusting(&other.cert, "wrong"), monitored(json!({}))),
        502,
        "monitors[0]",
    );
    assert_eq!(
        host.questions().len(),
        before,
        "a host was asked that nobody certifies"
    );
}
