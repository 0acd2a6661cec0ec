//! `lexiform serve`: the service starts, answers, is configured by a file, and stops when it is told.

use std::io::Read;

use lexiform_server::operate::keys::hashed;
use serde_json::json;

use crate::asking::{Outcome, SILENCE, ask, letters};
use crate::program::{Service, get, lexiform, model_folder, serving, shown};

#[test]
fn the_service_starts_answers_and_stops_when_told() {
    let mut service = Service::start(&model_folder("served"));
    let answer = service.post(&json!({
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "structured_outputs": {"choice": ["yes", "no"]}
    }));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("\"content\":\"yes\"") || answer.contains("\"content\":\"no\""),
        "{answer}"
    );
    service.signal("-TERM");
    assert!(service.ended_well());
    let mut rest = String::new();
    service
        .output
        .read_to_string(&mut rest)
        .expect("the rest of the greeting");
    assert!(rest.contains("curl -s http://"), "{rest}");
}

/// Guards against metrics that everybody can read because monitoring has no key.
#[test]
fn metrics_have_an_address_of_their_own_if_that_is_wanted() {
    let more = ["--metrics-address", "127.0.0.1:0"];
    let mut service = Service::start_with(&model_folder("measured"), &more);
    let address = service.told("Metrics: http://");
    let address = address.trim_end_matches("/metrics");
    let status = |address: &str, path: &str| {
        let answer = get(address, path);
        let status = answer.split(' ').nth(1).map(str::to_owned);
        status.unwrap_or_else(|| panic!("{path}: {answer}"))
    };
    assert!(get(address, "/metrics").contains("\nvllm:num_requests_running{"));
    for path in ["/live", "/ready", "/health"] {
        assert_eq!(status(address, path), "200", "{path}");
    }
    let elsewhere = get(address, "/v1/models");
    assert!(
        elsewhere.starts_with("HTTP/1.1 404") && elsewhere.contains("\"error\""),
        "{elsewhere}"
    );
    assert_eq!(status(&service.address, "/metrics"), "404");
    assert_eq!(status(&service.address, "/v1/models"), "200");
    service.signal("-TERM");
    assert!(service.ended_well());
}

/// Guards against the traces that matter most, those of the last requests, being lost when the program ends.
#[test]
fn traces_that_wait_are_sent_before_the_program_ends() {
    let collector = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let endpoint = format!("http://{}", collector.local_addr().expect("an address"));
    let mut service = Service::start_with(&model_folder("traced"), &["--otlp-endpoint", &endpoint]);
    let body =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "guided_regex": "[ab]"});
    assert!(service.post(&body).starts_with("HTTP/1.1 200"));
    service.signal("-TERM");
    let (mut stream, _) = collector.accept().expect("the exporter comes");
    let (mut told, mut piece) = (Vec::new(), [0; 4096]);
    let length = |told: &[u8]| {
        let told = shown(told);
        let (head, _) = told.split_once("\r\n\r\n")?;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))?;
        Some(head.len() + 4 + length.parse::<usize>().ok()?)
    };
    while length(&told).is_none_or(|length| told.len() < length) {
        let read = stream.read(&mut piece).expect("more");
        assert!(read > 0, "{}", shown(&told));
        told.extend_from_slice(&piece[..read]);
    }
    std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").expect("the answer is sent");
    assert!(shown(&told).contains("decode"), "{}", shown(&told));
    assert!(service.ended_well());
}

/// Guards against keys that were taken away and still open.
#[test]
fn a_signal_reads_the_keys_again() {
    let folder = model_folder("rekeyed");
    let file = folder.join("keys.toml");
    let write = |key: &str| {
        let text = format!("[[keys]]\nname = \"k\"\nsha256 = \"{}\"\n", hashed(key));
        std::fs::write(&file, text).expect("a file of keys");
    };
    write("first");
    let service = Service::start_with(&folder, &["--api-keys", &file.display().to_string()]);
    let body =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "guided_regex": "[ab]"});
    let opens = |key: &str| service.post_as(key, &body).starts_with("HTTP/1.1 200");
    assert!(opens("first") && !opens("second"));
    write("second");
    service.signal("-HUP");
    // The signal arrives some time after it was sent.
    let begun = std::time::Instant::now();
    while !opens("second") {
        assert!(begun.elapsed() < SILENCE, "the keys were not read again");
    }
    assert!(!opens("first"));
}

/// Guards against programs that rotate logs: after they have renamed a file, lines would go on into it.
#[test]
fn a_signal_opens_the_audit_log_again() {
    let folder = model_folder("rotated");
    let (log, old) = (folder.join("audit.jsonl"), folder.join("audit.jsonl.1"));
    for file in [&log, &old] {
        let _ = std::fs::remove_file(file);
    }
    let service = Service::start_with(&folder, &["--audit-log", &log.display().to_string()]);
    let body =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "guided_regex": "[ab]"});
    let lines = |file: &std::path::Path| std::fs::read_to_string(file).unwrap_or_default().lines().count();
    assert!(service.post(&body).starts_with("HTTP/1.1 200"));
    let begun = std::time::Instant::now();
    while lines(&log) == 0 {
        assert!(begun.elapsed() < SILENCE, "no line was written");
    }
    std::fs::rename(&log, &old).expect("the log is there");
    service.signal("-HUP");
    // The signal arrives some time after it was sent.
    while lines(&log) == 0 {
        assert!(begun.elapsed() < SILENCE, "the log was not opened again");
        assert!(service.post(&body).starts_with("HTTP/1.1 200"));
    }
    let moved = lines(&old);
    assert!(service.post(&body).starts_with("HTTP/1.1 200"));
    assert_eq!(lines(&old), moved);
}

/// Guards against keys that work in tests and not in the program, and against secrets in what it writes.
#[test]
fn a_file_configures_the_service_and_a_made_key_opens_it() {
    let folder = model_folder("guarded");
    let made = lexiform()
        .args(["key", "shop"])
        .output()
        .expect("the program runs");
    let told = shown(&made.stderr);
    let key = told.split_whitespace().last().expect("a key").to_owned();
    assert!(key.starts_with("lx-") && !shown(&made.stdout).contains(&key));
    let path = |name: &str| folder.join(name).display().to_string();
    std::fs::write(path("keys.toml"), &made.stdout).expect("a file of keys");
    let audit = path("audit.jsonl");
    let _ = std::fs::remove_file(&audit);
    let config = format!(
        "api-keys = {:?}\naudit-log = {audit:?}\nmax-batch = 2\n",
        path("keys.toml")
    );
    std::fs::write(path("lexiform.toml"), config).expect("a configuration");
    let mut service = Service::start_with(&folder, &["--config", &path("lexiform.toml")]);
    let body =
        json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "guided_regex": "[ab]"});
    assert!(service.post(&body).starts_with("HTTP/1.1 401"));
    let answer = service.post_as(&key, &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    service.signal("-TERM");
    assert!(service.ended_well());
    let audit = std::fs::read_to_string(&audit).expect("the audit log");
    assert!(
        audit.contains("\"key\":\"shop\"") && !audit.contains(&key),
        "{audit}"
    );
}

/// Guards against settings of traces that are dropped in silence, as OpenTelemetry's own readers do.
#[test]
fn a_variable_of_opentelemetry_that_means_nothing_is_named_at_the_start() {
    let mut command = serving(0, &model_folder("mistraced"), &[]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    let refused = command.env("OTEL_TRACES_SAMPLER", "sometimes").output();
    let refused = refused.expect("the program runs");
    let told = shown(&refused.stderr);
    assert!(
        !refused.status.success() && told.contains("OTEL_TRACES_SAMPLER: expected always_on"),
        "{told}"
    );
}

/// Guards against a start that waits for the reader of a log.
#[test]
fn an_audit_log_may_be_a_pipe_without_a_reader() {
    let folder = model_folder("piped");
    let pipe = folder.join("audit");
    let _ = std::fs::remove_file(&pipe);
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()), "a pipe was made");
    let mut service = Service::start_with(&folder, &["--audit-log", &pipe.display().to_string()]);
    assert!(matches!(ask(&service.address, &letters(3, 1)), Outcome::Whole(_)));
    service.signal("-HUP");
    assert!(matches!(ask(&service.address, &letters(3, 2)), Outcome::Whole(_)));
    service.signal("-TERM");
    assert!(service.ended_well());
}
