//! What the requests of one client leave in the service tells another client nothing: keys apart, and without
//! keys the addresses of clients.

use std::collections::BTreeMap;

use lexiform_engine::EngineConfig;
use lexiform_server::operate::clients::Clients;
use lexiform_server::operate::keys::{Keys, hashed};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, Service, chat, roomy, served, unhurried};
use crate::tokenizer::TEMPLATE;

/// Two clients, as their requests name them: by a key, or by the address that a proxy reports.
const KEYS: [&str; 2] = ["authorization: Bearer one", "authorization: Bearer other"];
const ADDRESSES: [&str; 2] = ["x-forwarded-for: 10.0.0.1", "x-forwarded-for: 10.0.0.2"];

/// What keys share.
#[derive(Clone, Copy, Default)]
struct Sharing {
    prompts: bool,
    drafts: bool,
    grammars: bool,
}

fn config(sharing: Sharing) -> EngineConfig {
    let mut config = EngineConfig {
        share_prompts: sharing.prompts,
        // The decode thread computes the masks, so that none is late and what is counted is always the same.
        mask_threads: 0,
        ..roomy()
    };
    config.draft_stores.shared = sharing.drafts;
    config
}

/// A service with a key for each client, or a trusted proxy in front of it.
fn service(clients: [&str; 2], sharing: Sharing) -> Service {
    let key = |name| format!("[[keys]]\nname = \"{name}\"\nsha256 = \"{}\"\n", hashed(name));
    let settings = match clients {
        KEYS => Settings {
            keys: Keys::parse(&["one", "other"].map(key).concat()).expect("a file of keys"),
            ..Settings::default()
        },
        _ => Settings {
            clients: Clients::behind(vec!["127.0.0.1".parse().expect("an address")]),
            ..Settings::default()
        },
    };
    let served = served(config(sharing), (TEMPLATE, &[])).with_limits(unhurried());
    served.grammars().shelf().share(sharing.grammars);
    Service::of_served(served, settings)
}

fn ask(service: &Service, client: &str, path: &str, body: &Value) -> Answer {
    let head = format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\n{client}");
    let answer = service.exchange(&head, body.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer
}

/// The number of tokens of its prompt that an answer of any route says were cached.
fn cached(answer: &Answer) -> u64 {
    let usage = &answer.json()["usage"];
    let details = [&usage["prompt_tokens_details"], &usage["input_tokens_details"]];
    let told = details
        .iter()
        .find_map(|details| details["cached_tokens"].as_u64());
    told.unwrap_or_else(|| panic!("no number in {usage}"))
}

/// How many tokens of each guess at a digit are cached for the second client, after the first has sent the
/// right one, or has sent nothing.
fn guesses(clients: [&str; 2], sharing: Sharing, is_sent: bool) -> Vec<u64> {
    let service = service(clients, sharing);
    let text = |digit: u32| {
        let text = format!("echo ok. My PIN is {digit}, and this is the rest of what I have to say.");
        chat(&text, json!({"max_tokens": 2}))
    };
    if is_sent {
        ask(&service, clients[0], "/v1/chat/completions", &text(7));
    }
    let guess = |digit| cached(&ask(&service, clients[1], "/v1/chat/completions", &text(digit)));
    (0..10).map(guess).collect()
}

/// Guards against prompts of another client that are read from the number of cached tokens, a block at a
/// time.
#[test]
fn a_pin_in_the_prompt_of_another_client_cannot_be_guessed() {
    let shared = Sharing {
        prompts: true,
        ..Sharing::default()
    };
    for clients in [KEYS, ADDRESSES] {
        let unsent = guesses(clients, Sharing::default(), false);
        assert_eq!(guesses(clients, Sharing::default(), true), unsent, "{clients:?}");
        // Where prompts are shared, the right digit stands out: the guesses are good ones.
        let told = guesses(clients, shared, true);
        let others = (0..10).filter(|&digit| digit != 7);
        assert!(others.clone().all(|digit| told[digit] < told[7]), "{told:?}");
    }
}

/// All routes that take prompts, with a body each.
fn prompts() -> [(&'static str, Value); 5] {
    let question = json!({"type": "predicate", "instructions": "echo yes, it is a long question"});
    let rewrite = json!({"model": "m", "guided_regex": "x[bc]", "text": "xx", "rewrite": {"draft": false}});
    [
        (
            "/v1/chat/completions",
            chat("echo a prompt of some length", json!({"max_tokens": 2})),
        ),
        (
            "/v1/completions",
            json!({"model": "m", "prompt": "echo a prompt of some length", "max_tokens": 2}),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": "echo a prompt of some length", "max_output_tokens": 2}),
        ),
        (
            "/v1/decisions",
            json!({"model": "m", "input": "x", "questions": [question]}),
        ),
        ("/v1/repair", rewrite),
    ]
}

/// The body with a field, which a request for a rewrite has in its `rewrite`.
fn with(path: &str, mut body: Value, name: &str, value: &Value) -> Value {
    let fields = match path {
        "/v1/repair" => &mut body["rewrite"],
        _ => &mut body,
    };
    fields[name] = value.clone();
    body
}

#[test]
fn a_salt_separates_the_prompts_of_one_client_on_every_route() {
    for (path, body) in prompts() {
        let service = service(KEYS, Sharing::default());
        let count = |client: usize, body: &Value| cached(&ask(&service, KEYS[client], path, body));
        let alone = count(0, &body);
        let again = count(0, &body);
        assert!(again > alone, "{path}: {again} cached");
        for name in ["cache_salt", "prompt_cache_key"] {
            let salted = with(path, body.clone(), name, &json!("pepper"));
            let counts = [0, 0, 1].map(|client| count(client, &salted));
            assert_eq!(counts, [alone, again, alone], "{path} {name}");
            assert_eq!(
                count(0, &with(path, body.clone(), name, &json!("salt"))),
                alone,
                "{path} {name}"
            );
            assert_eq!(
                count(0, &with(path, body.clone(), name, &Value::Null)),
                again,
                "{path} {name}"
            );
            for wrong in [json!(3), json!({}), json!([])] {
                let head = format!(
                    "POST {path} HTTP/1.1\r\ncontent-type: application/json\r\n{}",
                    KEYS[0]
                );
                let refused = with(path, body.clone(), name, &wrong).to_string();
                let refused = service.exchange(&head, refused.as_bytes());
                let place = match path {
                    "/v1/repair" => format!("rewrite.{name}"),
                    _ => name.to_owned(),
                };
                assert_eq!(
                    (refused.status, &refused.json()["error"]["param"]),
                    (400, &json!(place)),
                    "{path} {wrong}"
                );
            }
        }
    }
}

/// Everything that a client can count about a request: the numbers of its answer that are no times, and
/// whether its constraint had to be compiled, which takes time.
fn counted(service: &Service, client: &str, (path, body): &(&str, Value)) -> BTreeMap<String, u64> {
    let compiled = || service.served().grammars().shelf().now().cache_entries;
    let before = compiled();
    let mut counts = BTreeMap::new();
    numbers("", &ask(service, client, path, body).json(), &mut counts);
    // Without keys, grammars are shared.
    if KEYS.contains(&client) {
        counts.insert("compiled".to_owned(), compiled() - before);
    }
    counts
}

/// Collects the whole numbers of an answer by their paths, without times.
fn numbers(path: &str, value: &Value, found: &mut BTreeMap<String, u64>) {
    match value {
        Value::Object(fields) => {
            let steady = |name: &str| !["created", "created_at", "completed_at", "times"].contains(&name);
            for (name, value) in fields.iter().filter(|(name, _)| steady(name)) {
                numbers(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) => {
            for (number, value) in items.iter().enumerate() {
                numbers(&format!("{path}[{number}]"), value, found);
            }
        }
        other => found.extend(other.as_u64().map(|number| (path.to_owned(), number))),
    }
}

/// A request for each of the caches: of prompts, of the other prompts of contrasts, of values that are
/// weighed, of grammars, of answers to draft from, and of attempts.
fn requests() -> Vec<(&'static str, (&'static str, Value))> {
    let other = json!([{"role": "user", "content": "another prompt that is longer than a block"}]);
    let chats = [
        ("prompts", json!({"max_tokens": 4})),
        (
            "contrasts",
            json!({"max_tokens": 4, "contrast": {"messages": other}}),
        ),
        (
            "weighed values",
            json!({"guided_json": {"enum": ["blue", "green"]}, "enum_scores": true}),
        ),
        ("grammars", json!({"guided_regex": "(blue|green){3}"})),
        (
            "drafts",
            json!({"max_tokens": 40, "temperature": 0, "draft": {"sources": ["answers"]}}),
        ),
        (
            "attempts",
            json!({"guided_regex": "[b-z]", "temperature": 1, "law": "global", "share_attempts": true,
                   "logit_bias": {"97": -20}}),
        ),
    ];
    let chats = chats.map(|(kind, more)| {
        let mut body = chat("forever and a day", more);
        body["seed"] = json!(1);
        (kind, ("/v1/chat/completions", body))
    });
    let question = json!({"type": "predicate", "instructions": "echo yes, it is a long question"});
    let decisions = json!({"model": "m", "input": "x", "questions": [question]});
    let mut all = chats.to_vec();
    all.push(("decisions", ("/v1/decisions", decisions)));
    all
}

/// Guards against a cache that somebody adds and that clients share: nothing that is counted about a request
/// may depend on what another client has sent.
#[test]
fn nothing_counted_tells_what_another_client_sent() {
    for clients in [KEYS, ADDRESSES] {
        for (kind, request) in requests() {
            if kind == "grammars" && clients == ADDRESSES {
                // Without keys, grammars are shared.
                continue;
            }
            let alone = counted(&service(clients, Sharing::default()), clients[1], &request);
            let service = service(clients, Sharing::default());
            assert_eq!(counted(&service, clients[0], &request), alone, "{kind}");
            let again = counted(&service, clients[0], &request);
            assert_ne!(
                again, alone,
                "{kind}: the cache is not used, so this test sees nothing"
            );
            let told = |client: usize| counted(&service, clients[client], &request);
            assert_eq!(told(1), alone, "{kind} {clients:?}");
            assert_eq!(told(1), again, "{kind} {clients:?}");
        }
    }
}

/// Each flag shares what it says.
#[test]
fn clients_share_what_the_operator_says() {
    let all = Sharing {
        prompts: true,
        drafts: true,
        grammars: true,
    };
    for (kind, request) in requests() {
        if kind == "attempts" {
            // There is no flag for these.
            continue;
        }
        let service = service(KEYS, all);
        let alone = counted(&service, KEYS[0], &request);
        assert_ne!(counted(&service, KEYS[1], &request), alone, "{kind}");
    }
}

/// Guards against a client without a key that takes all places with many connections.
#[test]
fn many_connections_of_one_client_leave_a_place_for_another() {
    let places = 4;
    let settings = Settings {
        clients: Clients::behind(vec!["127.0.0.1".parse().expect("an address")]),
        ..Settings::default()
    };
    let config = EngineConfig {
        max_running: places,
        ..config(Sharing::default())
    };
    let service = Service::operated(config, settings, unhurried());
    let endless = chat("forever", json!({"max_tokens": 1 << 18, "stream": true}));
    let path = "/v1/chat/completions";
    let held: Vec<_> = (0..3 * places)
        .map(|_| service.begin_as(ADDRESSES[0], path, &endless))
        .collect();
    service.until("all places are taken", |stats| {
        stats.running == places && stats.waiting == 2 * places
    });
    let other = ask(
        &service,
        ADDRESSES[1],
        path,
        &chat("forever", json!({"max_tokens": 5})),
    );
    assert_eq!(other.json()["usage"]["completion_tokens"], 5);
    service.until("the other has ended, and none of the streams", |stats| {
        stats.running + stats.waiting == 3 * places
    });
    drop(held);
}
