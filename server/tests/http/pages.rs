//! The pages and the document: complete, true to the routes, and without anything from a network.

use std::collections::BTreeMap;
use std::path::Path;

use lexiform_server::routes::state::Offered;
use serde_json::{Value, json};

use super::service::{Service, chat};

const ROUTES: &str = include_str!("../../src/routes.rs");

fn document(service: &Service) -> Value {
    service.get("/openapi.json").json()
}

/// All that a page is made of, from its own text on: each path with its text.
fn parts_of(service: &Service, page: &str) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let mut open = vec![page.to_owned()];
    while let Some(path) = open.pop() {
        if parts.contains_key(&path) {
            continue;
        }
        let answer = service.get(&path);
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        let expected = match path.rsplit('.').next() {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            Some("ico") => "image/svg+xml",
            _ => "text/html",
        };
        assert!(kind.starts_with(expected), "{path}: {kind}");
        let text = answer.text().to_owned();
        let named = |before: &str| -> Vec<String> {
            let rest = text.split(before).skip(1);
            rest.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()))
                .collect()
        };
        if expected == "text/html" {
            open.extend(
                named("href=\"/pages/")
                    .into_iter()
                    .map(|name| format!("/pages/{name}")),
            );
            open.extend(named("src=\""));
        }
        if expected == "text/javascript" {
            let folder = path.rsplit_once('/').map_or("", |parts| parts.0);
            let above = folder.rsplit_once('/').map_or("", |parts| parts.0);
            open.extend(
                named("from \"./")
                    .into_iter()
                    .map(|name| format!("{folder}/{name}")),
            );
            open.extend(
                named("from \"../")
                    .into_iter()
                    .map(|name| format!("{above}/{name}")),
            );
        }
        parts.insert(path, text);
    }
    parts
}

/// Guards against pages that ask somebody else, files that are served and not built in, and files that no
/// page uses.
#[test]
fn the_pages_are_whole_and_need_no_network() {
    let service = Service::start();
    let mut parts = parts_of(&service, "/");
    parts.extend(parts_of(&service, "/docs/"));
    for (path, text) in &parts {
        let own = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!own.contains("http://") && !own.contains("https://"), "{path}");
        assert!(!text.contains("guided_"), "{path} sends a deprecated field");
    }
    for path in ["/", "/docs/"] {
        let page = service.get(path);
        let policy = page.header("content-security-policy").unwrap_or_default();
        assert!(
            policy.contains("connect-src 'self'") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pages");
    for room in ["", "playground", "answer", "docs"] {
        for entry in std::fs::read_dir(folder.join(room)).expect("a folder") {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name");
            let path = format!("/pages/{room}/{name}").replace("//", "/");
            let is_module = name.ends_with(".js") || name.ends_with(".css");
            assert!(!is_module || parts.contains_key(&path), "no page uses {path}");
        }
    }
}

/// Guards against old scripts beside a new page, and against files that are sent again and again.
#[test]
fn what_a_browser_has_already_is_not_sent_again() {
    let service = Service::start();
    for path in ["/", "/docs/", "/pages/theme.css", "/openapi.json", "/favicon.ico"] {
        let first = service.get(path);
        assert_eq!(first.header("cache-control"), Some("no-cache"), "{path}");
        let tag = first.header("etag").expect("a tag").to_owned();
        let again =
            |tag: &str| service.exchange(&format!("GET {path} HTTP/1.1\r\nif-none-match: {tag}"), b"");
        for known in [tag.clone(), format!("\"other\", W/{tag}")] {
            let answer = again(&known);
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{path} {known}");
            assert_eq!(answer.header("etag"), Some(tag.as_str()), "{path}");
        }
        let other = again("\"other\"");
        assert_eq!((other.status, &other.body), (200, &first.body), "{path}");
    }
}

#[test]
fn an_operator_may_leave_the_pages_out() {
    let settings = lexiform_server::routes::state::Settings {
        offered: Offered {
            pages: false,
            metrics: true,
        },
        ..Default::default()
    };
    let closed = Service::operated(super::service::roomy(), settings, Default::default());
    for path in ["/", "/docs/", "/openapi.json", "/pages/theme.css"] {
        assert_eq!(closed.get(path).status, 404, "{path}");
    }
}

/// Guards against answers without a word, and against links that lack a slash.
#[test]
fn what_browsers_and_proxies_ask_for_is_answered() {
    let service = Service::start();
    let answer = service.get("/docs");
    assert_eq!((answer.status, answer.header("location")), (308, Some("/docs/")));
    let icon = service.get("/favicon.ico");
    assert_eq!(
        (icon.status, icon.header("content-type")),
        (200, Some("image/svg+xml"))
    );
    for path in [
        "/docs/../x",
        "/docs/nothing.js",
        "/pages/nothing.js",
        "/pages/",
        "/pages/../openapi.json",
        "/docs/%2e%2e/x",
        "/v1/models/%ff",
        "/%00",
    ] {
        let answer = service.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(!answer.error_code().is_empty(), "{path}");
    }
}

/// Guards against probes that ask by HEAD and are told that there is nothing.
#[test]
fn whatever_can_be_read_can_be_asked_for_its_head() {
    let service = Service::start();
    for path in [
        "/",
        "/docs/",
        "/pages/api.js",
        "/favicon.ico",
        "/openapi.json",
        "/live",
        "/ready",
        "/health",
        "/version",
        "/metrics",
        "/v1/models",
        "/v1/models/m",
    ] {
        let (head, got) = (
            service.exchange(&format!("HEAD {path} HTTP/1.1"), b""),
            service.get(path),
        );
        assert_eq!((head.status, got.status), (200, 200), "{path}");
        assert_eq!(head.header("content-type"), got.header("content-type"), "{path}");
        assert!(head.body.is_empty() && !got.body.is_empty(), "{path}");
    }
    let head = service.exchange("HEAD /v1/chat/completions HTTP/1.1", b"");
    assert_eq!((head.status, head.header("allow")), (405, Some("POST")));
}

#[test]
fn the_document_lists_the_routes_that_there_are() {
    let service = Service::start();
    let document = document(&service);
    let described = document["paths"].as_object().expect("paths");
    let pages = ["/", "/openapi.json"];
    let routed = ROUTES
        .split("get(\"")
        .skip(1)
        .chain(ROUTES.split("post(\"").skip(1));
    let mut routed: Vec<String> = routed
        .filter_map(|rest| rest.split('"').next())
        .filter(|path| path.starts_with('/') && !pages.contains(path))
        .map(|path| path.replace("{id:.*}", "{id}"))
        .collect();
    routed.sort();
    // Some are served at the address for metrics, too.
    routed.dedup();
    let mut listed: Vec<String> = described.keys().cloned().collect();
    listed.sort();
    assert_eq!(routed, listed);
}

/// Every example is sent as it stands, and the answer is held against the schema that the document promises.
#[test]
fn every_example_works_and_every_answer_is_as_described() {
    let service = Service::start();
    let document = document(&service);
    let components = &document["components"];
    for (path, item) in document["paths"].as_object().expect("paths") {
        let operation = item["post"]
            .as_object()
            .or_else(|| item["get"].as_object())
            .expect("an operation");
        let mut example = operation
            .get("requestBody")
            .map(|body| body["content"]["application/json"].clone())
            .unwrap_or_default();
        if path.contains("{id}") {
            continue;
        }
        let answer = if item["post"].is_object() {
            hold(components, &example["schema"], &example["example"], path);
            if example["example"]["model"].is_string() {
                example["example"]["model"] = json!("m");
            }
            service.post(path, &example["example"].to_string())
        } else {
            service.get(path)
        };
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let content = &operation["responses"]["200"]["content"];
        if let Some(promised) = content.get("application/json") {
            hold(components, &promised["schema"], &answer.json(), path);
        }
    }
    let refused = service.post("/v1/chat/completions", "{}").json();
    hold(components, &components["schemas"]["Error"], &refused, "errors");
}

fn hold(components: &Value, schema: &Value, value: &Value, what: &str) {
    let whole = json!({"components": components, "allOf": [schema]});
    let validator = jsonschema::validator_for(&whole).expect("a schema");
    let problems: Vec<String> = validator
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert!(problems.is_empty(), "{what}: {problems:?} in {value}");
}

/// The details of the tokens of a streamed chat.
fn details(service: &Service, content: &str, more: Value) -> Vec<Value> {
    let answer = service.post("/v1/chat/completions", &chat(content, more).to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let tokens = |event: &Value| event["choices"][0]["lexiform_tokens"].as_array().cloned();
    answer.events().iter().filter_map(tokens).flatten().collect()
}

/// Holds token details against the document.
fn described(service: &Service, tokens: &[Value]) {
    let document = document(service);
    let components = &document["components"];
    for token in tokens {
        hold(
            components,
            &components["schemas"]["TokenDetail"],
            token,
            "a token",
        );
    }
}

#[test]
fn each_token_tells_what_else_was_allowed_and_how_it_came() {
    let service = Service::start();
    let more = json!({"guided_regex": "x[abc]z{9}", "stream": true, "token_details": true});
    let tokens = details(&service, "echo xbzzzzzzzzz", more);
    described(&service, &tokens);
    let text: String = tokens.iter().filter_map(|token| token["text"].as_str()).collect();
    assert_eq!(text, "xbzzzzzzzzz");
    let allowed = tokens.iter().filter_map(|token| token["allowed"].as_u64());
    assert_eq!(allowed.take(3).collect::<Vec<_>>(), [1, 3, 1]);
    assert!(tokens.iter().any(|token| token["origin"] == "forced"));
    let probability = tokens[1]["probability"].as_f64().expect("a number");
    let mass = tokens[1]["mass"].as_f64().expect("a number");
    assert!(
        probability > 0.0 && probability <= mass && mass <= 1.0,
        "{probability} {mass}"
    );
    for field in ["candidates", "places", "drafts"] {
        assert!(tokens.iter().all(|token| token[field].is_null()), "{field}");
    }
}

/// Guards against candidates of another law than that of the token, and against a removed token that is said
/// to be left.
#[test]
fn each_token_tells_what_the_model_wanted_and_what_the_constraint_left() {
    let service = Service::start();
    let grammar = "root ::= \"x\" item \".\"\nitem ::= letter | \"(\" item \")\"\nletter ::= [abc]";
    let details_wanted = json!({"top": 3, "places": true});
    let more = json!({"ebnf": grammar, "stream": true, "max_tokens": 20, "token_details": details_wanted});
    // The model wants to say `q` where the grammar wants one of four others, which the model likes alike.
    let tokens = details(&service, "echo xq", more);
    described(&service, &tokens);
    let candidates = tokens[1]["candidates"].as_array().expect("candidates");
    let of = |text: &str| {
        let found = candidates.iter().find(|candidate| candidate["text"] == text);
        found.unwrap_or_else(|| panic!("{text}: {candidates:?}"))
    };
    assert_eq!((&candidates[0], &of("q")["allowed"]), (of("q"), &json!(false)));
    assert!(of("q")["probability"].as_f64() > Some(0.9) && of("q")["share"] == 0.0);
    let left: Vec<&Value> = candidates
        .iter()
        .filter(|candidate| candidate["allowed"] == true)
        .collect();
    assert_eq!(left.len(), 3);
    let sum: f64 = left
        .iter()
        .filter_map(|candidate| candidate["share"].as_f64())
        .sum();
    let all = tokens[1]["allowed"].as_u64();
    assert!(all == Some(4) && (0.74..0.76).contains(&sum), "{all:?} {sum}");
    assert_eq!(tokens[1]["places"][0], json!(["item", "root"]));
}

/// What is kept of the drafts of a pass are the tokens that it has written, but for the last, which the model
/// drew; what is not kept was refused where the kept ones end, or stands below one that was.
#[test]
fn the_first_token_of_a_pass_tells_what_was_drafted_for_it() {
    let service = Service::start();
    let more =
        json!({"guided_regex": "x[abc]z{9}(q[0-9]){4}", "stream": true, "token_details": {"drafts": true}});
    let mut kept_in_all = 0;
    for text in [
        "xbzzzzzzzzzq1q1q1q1",
        "xbzzzzzzzzzq1q1q2q3",
        "xbzzzzzzzzzq1q1q1q4",
    ] {
        let tokens = details(&service, &format!("echo {text}"), more.clone());
        described(&service, &tokens);
        for (first, token) in tokens.iter().enumerate() {
            let Some(drafts) = token["drafts"].as_array() else {
                continue;
            };
            assert!(!drafts.is_empty());
            let kept: Vec<&Value> = drafts.iter().filter(|draft| draft["fate"] == "kept").collect();
            let mut last = Value::Null;
            for (number, draft) in kept.iter().enumerate() {
                assert_eq!(
                    (&draft["id"], &draft["parent"]),
                    (&tokens[first + number]["id"], &last),
                    "{drafts:?}"
                );
                last = json!(drafts.iter().position(|other| other == *draft));
            }
            kept_in_all += kept.len();
            let is_judged = |parent: &Value| match parent.as_u64() {
                Some(parent) => drafts[parent as usize]["fate"] == "kept",
                None => true,
            };
            for draft in drafts.iter().filter(|draft| draft["fate"] != "kept") {
                assert_eq!(
                    draft["fate"] == "refused",
                    is_judged(&draft["parent"]),
                    "{drafts:?}"
                );
            }
        }
    }
    assert!(kept_in_all > 20, "{kept_in_all}");
}

#[test]
fn each_token_tells_whether_max_tokens_narrowed_its_choice() {
    let service = Service::start();
    let more = json!({"guided_regex": "a*z", "stream": true, "max_tokens": 5, "token_details": {"top": 2}});
    let tokens = details(&service, "forever", more);
    let steered: Vec<bool> = tokens
        .iter()
        .filter_map(|token| token["steered"].as_bool())
        .collect();
    assert_eq!(
        steered.iter().position(|steered| *steered),
        Some(tokens.len() - 1),
        "{tokens:?}"
    );
    let last = &tokens[tokens.len() - 1];
    assert_eq!((&last["text"], &last["allowed"]), (&json!("z"), &json!(1)));
    let wanted = &last["candidates"][0];
    assert_eq!(
        (&wanted["text"], &wanted["allowed"]),
        (&json!("a"), &json!(false))
    );
}

#[test]
fn details_that_cannot_be_told_are_refused() {
    let service = Service::start();
    for more in [
        json!({"token_details": true}),
        json!({"stream": true, "token_details": {"top": 21}}),
        json!({"stream": true, "token_details": {"place": true}}),
        json!({"stream": true, "token_details": 1}),
    ] {
        let answer = service.chat("echo x", more.clone());
        assert_eq!(answer.status, 400, "{more}: {}", answer.text());
        assert!(answer.text().contains("token_details"), "{}", answer.text());
    }
    let answer = service.chat("echo x", json!({"token_details": false}));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Guards against rules that nobody wrote in what people are told.
#[test]
fn no_rule_is_named_that_its_author_does_not_know() {
    let service = Service::start();
    let loops = json!({"structured_outputs": {"grammar": "root ::= \"a\" root"}});
    let told = service.post("/v1/grammars/lint", &loops.to_string()).json();
    let finding = &told["diagnostics"][0];
    assert_eq!(
        (&told["valid"], &finding["path"]),
        (&json!(false), &json!("rule root"))
    );
    assert!(!finding["message"].to_string().contains("answer"), "{finding}");
    let mask = service.post(
        "/v1/grammars/mask",
        &json!({"ebnf": "root ::= \"a\" | \"(\" root \")\"", "prefix": "("}).to_string(),
    );
    assert_eq!(mask.json()["ways"][0]["rules"], json!(["root"]));
}
