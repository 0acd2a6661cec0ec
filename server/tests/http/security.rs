//! Keys, limits of keys, origins, TLS, and bodies that are meant to hurt.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lexiform_server::operate::audit::Audit;
use lexiform_server::operate::clients::Clients;
use lexiform_server::operate::cors::Cors;
use lexiform_server::operate::keys::{Keys, hashed};
use lexiform_server::operate::tls::{Certificate, ClientAuthority};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, PATIENCE, Service, chat, roomy, unhurried};

fn guarded(more: &str) -> Service {
    let text = format!(
        "[[keys]]\nname = \"shop\"\nsha256 = \"{}\"\n{more}",
        hashed("s3cret")
    );
    let settings = Settings {
        keys: Keys::parse(&text).expect("a file of keys"),
        ..Settings::default()
    };
    Service::operated(roomy(), settings, unhurried())
}

fn ask(service: &Service, key: &str) -> Answer {
    ask_with(service, key, json!({}))
}

fn ask_with(service: &Service, key: &str, more: Value) -> Answer {
    let body = chat("echo x", more).to_string();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer {key}"
    );
    service.exchange(&head, body.as_bytes())
}

#[test]
fn the_scheme_of_a_key_may_be_written_in_any_case() {
    let service = guarded("");
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let head = format!("GET /v1/models HTTP/1.1\r\nauthorization: {scheme} s3cret");
        assert_eq!(service.exchange(&head, b"").status, 200, "{scheme}");
    }
    assert_eq!(
        service
            .exchange("GET /v1/models HTTP/1.1\r\nauthorization: Basic s3cret", b"")
            .status,
        401
    );
}

/// Guards against grammars of one client that another reads or uses, if it knows or guesses their identity.
#[test]
fn a_registered_grammar_is_that_of_its_key_alone() {
    let service = guarded(&format!(
        "[[keys]]\nname = \"other\"\nsha256 = \"{}\"\n",
        hashed("0ther")
    ));
    let post = |path: &str, key: &str, body: &Value| {
        let head =
            format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer {key}");
        service.exchange(&head, body.to_string().as_bytes())
    };
    let read = |key: &str, id: &str| {
        let head = format!("GET /v1/grammars/{id} HTTP/1.1\r\nauthorization: Bearer {key}");
        service.exchange(&head, b"")
    };
    let registered = post(
        "/v1/grammars",
        "s3cret",
        &json!({"guided_choice": ["secret x", "secret y"]}),
    );
    let id = registered.json()["id"].as_str().expect("an identity").to_owned();
    let named = json!({"grammar_id": id});
    assert_eq!(read("s3cret", &id).status, 200);
    assert_eq!(ask_with(&service, "s3cret", named.clone()).status, 200);
    let nothing = read("0ther", "gr_00000000000000000000000000000000");
    let shown = read("0ther", &id);
    assert_eq!(shown.status, 404);
    assert_eq!(
        shown.text().replace(&id, "ID"),
        nothing
            .text()
            .replace("gr_00000000000000000000000000000000", "ID")
    );
    assert_eq!(
        ask_with(&service, "0ther", named.clone()).error_code(),
        "grammar_not_found"
    );
    for path in ["/v1/grammars/explain", "/v1/grammars/lint", "/v1/grammars/mask"] {
        assert_eq!(
            post(path, "0ther", &named).error_code(),
            "grammar_not_found",
            "{path}"
        );
    }
    // Who registers the same has it, too.
    post(
        "/v1/grammars",
        "0ther",
        &json!({"guided_choice": ["secret x", "secret y"]}),
    );
    assert_eq!(read("0ther", &id).status, 200);
    assert_eq!(read("s3cret", &id).status, 200);
}

/// Guards against answers that are read by whoever knows, or guesses, their name.
#[test]
fn a_stream_is_read_on_only_with_the_key_that_began_it() {
    let service = guarded(&format!(
        "[[keys]]\nname = \"other\"\nsha256 = \"{}\"\n",
        hashed("0ther")
    ));
    let begun = ask_with(
        &service,
        "s3cret",
        json!({"stream": true, "stream_options": {"resumable": true}}),
    );
    let id = begun.header("x-lexiform-stream").expect("its name").to_owned();
    let read = |key: &str| {
        let head = format!("GET /v1/streams/{id} HTTP/1.1\r\nauthorization: Bearer {key}");
        service.exchange(&head, b"")
    };
    assert_eq!((read("s3cret").status, read("s3cret").body), (200, begun.body));
    assert_eq!(read("0ther").error_code(), "stream_not_found");
    assert_eq!(read("nobody").status, 401);
}

/// Guards against grammars in the cache that nobody answers for, so that one key could push out those of all
/// others.
#[test]
fn whoever_has_a_grammar_compiled_is_charged_for_it() {
    let service = guarded("");
    let charged = || {
        let served = service.served();
        let grammars = served.grammars();
        (grammars.charged(&Some("shop".into())), grammars.charged(&None))
    };
    let constraint = |number: usize| json!({"model": "m", "guided_regex": format!("a{{{number}}}")});
    let text = |number: usize| {
        let mut body = constraint(number);
        body["prompt"] = json!("echo a");
        body
    };
    let bodies = [
        ("/v1/completions", text(1)),
        (
            "/v1/chat/completions",
            chat("echo a", json!({"guided_regex": "a{2}"})),
        ),
        (
            "/v1/responses",
            json!({"model": "m", "input": "echo a", "guided_regex": "a{3}"}),
        ),
        ("/v1/grammars", constraint(4)),
        ("/v1/grammars/lint", constraint(5)),
    ];
    let mut before = 0;
    for (path, body) in bodies {
        let head =
            format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer s3cret");
        let answer = service.exchange(&head, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let (shop, nobody) = charged();
        assert!(shop > before && nobody == 0, "{path}: {shop} {nobody}");
        before = shop;
    }
}

/// Guards against routes beside the API that a key does not protect, such as metrics and tokenizers.
#[test]
fn without_a_key_only_the_probes_and_the_pages_answer() {
    let service = guarded("");
    // The pages hold what everybody can read in the repository, and ask for a key themselves.
    for path in [
        "/live",
        "/ready",
        "/health",
        "/",
        "/docs/",
        "/openapi.json",
        "/favicon.ico",
        "/pages/api.js",
    ] {
        assert_eq!(service.get(path).status, 200, "{path}");
    }
    for path in [
        "/pages/",
        "/pages/nothing.js",
        "/docs/x",
        "/metrics",
        "/version",
        "/v1/models",
        "/nothing",
        "//live",
        "/live/x",
    ] {
        let answer = service.get(path);
        assert_eq!(
            (answer.status, answer.error_code().as_str()),
            (401, "invalid_api_key"),
            "{path}"
        );
    }
    assert_eq!(service.chat("echo x", json!({})).status, 401);
    assert_eq!(ask(&service, "wrong").status, 401);
    assert_eq!(ask(&service, "s3cret").status, 200);
}

#[test]
fn a_key_that_has_nothing_left_is_told_when_to_come_back() {
    let service = guarded("requests_per_minute = 2");
    let first = ask(&service, "s3cret");
    assert_eq!(first.header("x-ratelimit-limit-requests"), Some("2"));
    assert_eq!((first.status, ask(&service, "s3cret").status), (200, 200));
    let refused = ask(&service, "s3cret");
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (429, "rate_limit_exceeded")
    );
    let wait: u64 = refused
        .header("retry-after")
        .and_then(|wait| wait.parse().ok())
        .expect("a time");
    assert!((1..=30).contains(&wait), "{wait}");
    let service = guarded("tokens_per_minute = 5");
    let first = ask(&service, "s3cret");
    assert_eq!((first.status, ask(&service, "s3cret").status), (200, 429));
    assert_eq!(first.header("x-ratelimit-limit-tokens"), Some("5"));
    let refused = ask(&service, "s3cret");
    assert_eq!(refused.header("x-ratelimit-remaining-tokens"), Some("0"));
}

/// Guards against routes whose tokens count for nobody.
#[test]
fn tokens_of_decisions_count_as_those_of_chats() {
    let service = guarded("tokens_per_minute = 5");
    let body = json!({"model": "m", "input": "echo x", "questions": [{"type": "predicate", "instructions": "yes?"}]});
    let head =
        "POST /v1/decisions HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer s3cret";
    let ask = || service.exchange(head, body.to_string().as_bytes());
    let first = ask();
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!((ask().status, self::ask(&service, "s3cret").status), (429, 429));
}

/// The same route asks nothing of the model where no rewrite is asked for; then only the request counts.
#[test]
fn tokens_of_rewritten_texts_count_as_those_of_chats() {
    let service = guarded("tokens_per_minute = 5");
    let head = "POST /v1/repair HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer s3cret";
    let ask = |rewrite: bool| {
        let body = json!({"model": "m", "guided_regex": "a{3}", "text": "aab", "rewrite": rewrite});
        service.exchange(head, body.to_string().as_bytes())
    };
    assert_eq!((ask(false).status, ask(false).status), (200, 200));
    let first = ask(true);
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(
        (ask(true).status, self::ask(&service, "s3cret").status),
        (429, 429)
    );
}

/// Guards against secrets and texts of users that end up in files.
#[test]
fn the_audit_tells_who_and_what_but_neither_keys_nor_texts() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("audit.jsonl");
    let _ = std::fs::remove_file(&path);
    let text = format!("[[keys]]\nname = \"shop\"\nsha256 = \"{}\"", hashed("s3cret"));
    let settings = Settings {
        keys: Keys::parse(&text).expect("a file of keys"),
        audit: Arc::new(Audit::open(&path).expect("an audit log")),
        ..Settings::default()
    };
    let service = Service::operated(roomy(), settings, unhurried());
    assert_eq!(ask(&service, "s3cret").status, 200);
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer s3cret";
    assert_eq!(service.exchange(head, b"{\"model\":\"m\",\"n\":0}").status, 400);
    let mut left = TcpStream::connect(service.address).expect("the server listens");
    let body = chat("forever", json!({})).to_string();
    write!(
        left,
        "{head}\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("the request is sent");
    service.until("it runs", |stats| stats.running == 1 && stats.generated > 9);
    drop(left);
    service.until("it ended", |stats| stats.running == 0);
    // A line is written when its request is dropped, which is some time after the engine has let it go.
    let read = || std::fs::read_to_string(&path).expect("the log");
    let begun = Instant::now();
    while read().lines().count() < 3 {
        assert!(begun.elapsed() < PATIENCE, "{}", read());
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(service);
    let log = read();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        (&lines[0]["key"], &lines[0]["verdict"]),
        (&json!("shop"), &json!("answered"))
    );
    assert_eq!(lines[0]["completion_tokens"], 2);
    assert_eq!(
        (&lines[0]["finish"], &lines[0]["grammar_bytes"]),
        (&json!(["stop"]), &json!(0))
    );
    assert_eq!(lines[1]["verdict"], "invalid_value");
    assert_eq!(
        (&lines[2]["verdict"], &lines[2]["phase"]),
        (&json!("cancelled"), &json!("decode"))
    );
    assert!(!log.contains("s3cret") && !log.contains("echo"), "{log}");
}

/// Guards against attempts at a key of which the operator never learns.
#[test]
fn the_audit_tells_of_requests_that_were_not_let_in() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("refused.jsonl");
    let _ = std::fs::remove_file(&path);
    let hash = hashed("s3cret");
    let text = format!("[[keys]]\nname = \"shop\"\nsha256 = \"{hash}\"\nrequests_per_minute = 1");
    let audit = Arc::new(Audit::open(&path).expect("an audit log"));
    let settings = Settings {
        keys: Keys::parse(&text).expect("a file of keys"),
        clients: Clients::behind(vec!["127.0.0.1".parse().expect("a proxy")]),
        audit: audit.clone(),
        ..Settings::default()
    };
    let service = Service::operated(roomy(), settings, unhurried());
    let head = "GET /v1/models HTTP/1.1\r\nauthorization: Bearer guess\r\nx-forwarded-for: 6.6.6.6, 1.2.3.4";
    assert_eq!(service.exchange(head, b"").status, 401);
    assert_eq!(ask(&service, "s3cret").status, 200);
    assert_eq!(ask(&service, "s3cret").status, 429);
    audit.flush();
    let log = std::fs::read_to_string(&path).expect("the log");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let told = |line: &Value| {
        ["key", "client", "path", "verdict"].map(|name| line[name].as_str().unwrap_or("null").to_owned())
    };
    let chats = "/v1/chat/completions";
    assert_eq!(
        told(&lines[0]),
        ["null", "1.2.3.4", "/v1/models", "invalid_api_key"]
    );
    assert_eq!(told(&lines[1]), ["shop", "127.0.0.1", chats, "answered"]);
    assert_eq!(
        told(&lines[2]),
        ["shop", "127.0.0.1", chats, "rate_limit_exceeded"]
    );
    assert!(lines.len() == 3 && !log.contains("guess"), "{log}");
}

#[test]
fn pages_of_other_origins_may_ask_only_if_they_are_listed() {
    let settings = Settings {
        cors: Cors::new(vec!["https://good.example".to_owned()]),
        ..Settings::default()
    };
    let service = Service::operated(roomy(), settings, unhurried());
    let preflight = |origin: &str| {
        let head = format!(
            "OPTIONS /v1/chat/completions HTTP/1.1\r\norigin: {origin}\r\naccess-control-request-method: POST"
        );
        service.exchange(&head, b"")
    };
    let good = preflight("https://good.example");
    assert_eq!(
        (good.status, good.header("access-control-allow-origin")),
        (204, Some("https://good.example"))
    );
    let evil = preflight("https://evil.example");
    assert_eq!(
        (evil.status, evil.header("access-control-allow-origin")),
        (405, None)
    );
    let plain = service.exchange("GET /live HTTP/1.1\r\norigin: https://good.example", b"");
    assert_eq!(
        plain.header("access-control-allow-origin"),
        Some("https://good.example")
    );
}

/// A certificate of its own, written to these files.
pub(crate) fn certify(cert: &Path, key: &Path) -> rustls::pki_types::CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    std::fs::write(cert, made.cert.pem()).expect("a file");
    std::fs::write(key, made.signing_key.serialize_pem()).expect("a file");
    made.cert.der().clone()
}

/// What a client has to show: a certificate and its key.
type Shown = (
    rustls::pki_types::CertificateDer<'static>,
    rustls::pki_types::PrivateKeyDer<'static>,
);

/// What a client reads that trusts this certificate alone; nothing if it is shown another.
fn live_over_tls(service: &Service, trusted: &rustls::pki_types::CertificateDer<'static>) -> Vec<u8> {
    live_as(service, trusted, None)
}

/// The same for a client that shows a certificate of its own.
fn live_as(
    service: &Service,
    trusted: &rustls::pki_types::CertificateDer<'static>,
    shown: Option<&Shown>,
) -> Vec<u8> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let client = match shown {
        None => client.with_no_client_auth(),
        Some((certificate, key)) => (client
            .with_client_auth_cert(vec![certificate.clone()], key.clone_key()))
        .expect("a certificate with its key"),
    };
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let mut connection = rustls::ClientConnection::new(Arc::new(client), name).expect("a connection");
    let mut socket = TcpStream::connect(service.address).expect("the server listens");
    let mut tls = rustls::Stream::new(&mut connection, &mut socket);
    let mut answer = Vec::new();
    if tls
        .write_all(b"GET /live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .is_ok()
    {
        // A server that closes without a goodbye of TLS is an error to the reader, but what it sent is there.
        let _ = tls.read_to_end(&mut answer);
    }
    answer
}

#[test]
fn a_certificate_makes_it_https_and_can_be_renewed_meanwhile() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let first = certify(&cert, &key);
    let certificate = Certificate::read(&cert, &key).expect("a certificate");
    let service = Service::over_tls(certificate.config().expect("a configuration"));
    let shows = |trusted| live_over_tls(&service, trusted).starts_with(b"HTTP/1.1 200");
    assert!(shows(&first));
    let second = certify(&cert, &key);
    assert!(shows(&first), "nobody said that the files are new");
    certificate.read_again().expect("the new certificate");
    assert!(shows(&second) && !shows(&first));
    std::fs::write(&key, "no key").expect("a file");
    assert!(certificate.read_again().is_err());
    assert!(shows(&second), "what is broken changes nothing");
    assert!(Certificate::read(&key, &cert).is_err());
    let third = certify(&cert, &folder.join("other.pem"));
    assert!(Certificate::read(&cert, &key).is_err());
    assert!(!shows(&third));
}

/// An authority, written to this file, and a certificate of it for a client.
fn authority(file: &Path) -> Shown {
    let (client, key) = client_of(file);
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    (client.der().clone(), key)
}

/// An authority, written to this file, and a certificate of it for a client, with its key.
pub(crate) fn client_of(file: &Path) -> (rcgen::Certificate, rcgen::KeyPair) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut params = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).expect("a certificate");
    std::fs::write(file, root.pem()).expect("a file");
    let issuer = rcgen::Issuer::new(params, key);
    let key = rcgen::KeyPair::generate().expect("a key");
    let client = rcgen::CertificateParams::new(vec!["client".to_owned()]).expect("parameters");
    (client.signed_by(&key, &issuer).expect("a certificate"), key)
}

/// Guards against clients that are let in by a certificate of nobody we know, or of an authority that was
/// given up.
#[test]
fn only_clients_of_the_operators_authorities_are_let_in() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = |name: &str| folder.join(format!("mutual-{name}.pem"));
    let own = certify(&path("cert"), &path("key"));
    let certificate = Certificate::read(&path("cert"), &path("key")).expect("a certificate");
    let (first, second) = (authority(&path("ca")), authority(&path("other")));
    let clients = ClientAuthority::read(&path("ca")).expect("an authority");
    let service = Service::over_tls(certificate.config_for(clients.clone()).expect("a configuration"));
    let lets_in = |shown| live_as(&service, &own, shown).starts_with(b"HTTP/1.1 200");
    assert!(lets_in(Some(&first)));
    assert!(!lets_in(None) && !lets_in(Some(&second)));
    std::fs::copy(path("other"), path("ca")).expect("a file");
    assert!(lets_in(Some(&first)), "nobody said that the file is new");
    clients.read_again().expect("the new authority");
    assert!(lets_in(Some(&second)) && !lets_in(Some(&first)));
    for broken in ["", "no certificate"] {
        std::fs::write(path("ca"), broken).expect("a file");
        assert!(clients.read_again().is_err(), "{broken:?}");
        assert!(ClientAuthority::read(&path("ca")).is_err(), "{broken:?}");
        assert!(
            lets_in(Some(&second)) && !lets_in(None),
            "what is broken changes nothing"
        );
    }
}

/// Guards against stacks that overflow on deep bodies and schemas, and counts that are unrolled (B1, D3).
#[test]
fn bodies_that_are_meant_to_hurt_are_refused_or_answered() {
    let service = Service::start();
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(2000), close.repeat(2000));
    let bodies = [
        format!("{{\"model\":\"m\",\"messages\":{}}}", deep("[", "]")),
        chat(
            "echo x",
            json!({"guided_json": format!("{}{}", "{\"items\":".repeat(700), "}".repeat(700))}),
        )
        .to_string(),
        chat("echo x", json!({"guided_regex": deep("(", ")")})).to_string(),
        chat("echo x", json!({"guided_regex": "((a{1000}){1000}){1000}"})).to_string(),
        chat(
            "echo x",
            json!({"ebnf": format!("root ::= {}", deep("(\"a\"", ")"))}),
        )
        .to_string(),
        chat("echo x", json!({"guided_regex": "a\u{0}[b"})).to_string(),
        chat("echo x", json!({"guided_json": {"$ref": "#"}})).to_string(),
        chat("echo x", json!({"guided_json": {"$ref": "http://example.org/s"}})).to_string(),
    ];
    for body in bodies {
        let answer = service.post("/v1/chat/completions", &body);
        assert_eq!(answer.status, 400, "{:.200}: {}", body, answer.text());
        answer.error_code();
        assert!(
            answer.body.len() < 20_000,
            "an error that is longer than it must be"
        );
    }
    let huge = json!({"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 1_000_000_000});
    let answer = service.chat("echo [1,1]", json!({"guided_json": huge}));
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "[1,1]");
    assert_eq!(service.chat("echo x", json!({})).status, 200);
}

/// Guards against heads without an end, in the URL as in headers.
#[test]
fn heads_that_are_too_long_are_cut() {
    let service = Service::start();
    for head in [
        format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(1 << 20)),
        format!(
            "GET /live HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n",
            "a".repeat(1 << 20)
        ),
        format!(
            "GET /live HTTP/1.1\r\nhost: x\r\n{}\r\n",
            "x: y\r\n".repeat(10_000)
        ),
    ] {
        let mut stream = TcpStream::connect(service.address).expect("the server listens");
        // The server may close before all of it is sent.
        let _ = stream.write_all(head.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let refused = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4");
        assert!(refused, "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(service.get("/live").status, 200);
}
