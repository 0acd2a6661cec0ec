//! What the service says of wrong requests, to be read in one sitting: `tests/data/http/messages.txt`.
//!
//! Each line that begins with a route holds a request, and the lines below it its answer. Requests of chats,
//! completions and responses get a model and an input of their own if they have none. After a change that is
//! meant:
//!
//! ```sh
//! LEXIFORM_RENEW_SNAPSHOTS=1 cargo test -p lexiform-server --test http messages
//! git diff server/tests/data/http/messages.txt
//! ```

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::service::{Answer, Service};

/// Set to write what was heard instead of comparing it.
const RENEW: &str = "LEXIFORM_RENEW_SNAPSHOTS";

/// What a request of a route has, unless it says otherwise.
fn base(route: &str) -> Value {
    match route {
        "/v1/chat/completions" => json!({"model": "m", "messages": [{"role": "user", "content": "echo x"}]}),
        "/v1/completions" => json!({"model": "m", "prompt": "echo x"}),
        "/v1/responses" => json!({"model": "m", "input": "echo x"}),
        "/v1/decisions" => json!({"model": "m"}),
        _ => json!({}),
    }
}

/// The body to send: the object of the line over the base, or the line itself where it is no object.
fn body(route: &str, given: &str) -> String {
    let mut body = base(route);
    match (&mut body, serde_json::from_str(given)) {
        (Value::Object(body), Ok(Value::Object(given))) => body.extend(given),
        _ => return given.to_owned(),
    }
    body.to_string()
}

/// Status, code and field, and the message; with the problems of a source where it has some.
fn told(answer: &Answer) -> String {
    if answer.status == 200 {
        return format!(
            "  200 {}\n",
            answer.header("x-lexiform-ignored").unwrap_or("well")
        );
    }
    let error = answer.json()["error"].clone();
    let word = |name: &str| error[name].as_str().unwrap_or("-").to_owned();
    let mut told = format!("  {} {} {}\n", answer.status, word("code"), word("param"));
    for line in word("message").lines() {
        let _ = writeln!(told, "    {line}");
    }
    let problems = error["lexiform"]["diagnostics"].as_array().into_iter().flatten();
    for problem in problems {
        let text = problem["message"].as_str().unwrap_or_default();
        let _ = writeln!(told, "      {}: {text}", problem["path"].as_str().unwrap_or("-"));
    }
    told
}

#[test]
fn the_service_says_what_it_said() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/http/messages.txt");
    let expected = std::fs::read_to_string(&path).expect("the file of messages");
    let service = Service::start();
    let mut heard = String::new();
    let mut count = 0;
    for line in expected.lines().filter(|line| !line.starts_with(' ')) {
        let _ = writeln!(heard, "{line}");
        if let Some((route, given)) = line.split_once(' ').filter(|(route, _)| route.starts_with('/')) {
            let answer = service.post(route, &body(route, given));
            heard.push_str(&told(&answer));
            count += 1;
        }
    }
    assert!(count >= 60, "{count} requests were found");
    if heard != expected && std::env::var_os(RENEW).is_some() {
        return std::fs::write(&path, heard).expect("written");
    }
    let lines = heard
        .lines()
        .zip(expected.lines().chain(std::iter::repeat("(nothing)")));
    let different: Vec<(&str, &str)> = lines.filter(|(one, other)| one != other).take(8).collect();
    assert!(
        heard == expected,
        "set {RENEW}=1 to renew; heard and expected: {different:#?}"
    );
}
