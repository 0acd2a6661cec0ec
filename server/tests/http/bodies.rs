//! Bodies that real clients sent, replayed: each is answered, or refused with the envelope; nothing breaks.

use std::path::Path;

use serde_json::{Value, json};

use super::service::Service;

/// Where the corpus lies, relative to this package.
const CORPUS: &str = "../../shared/conformance/requests.jsonl";

#[test]
fn bodies_of_real_clients_are_answered_or_refused() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CORPUS);
    let Ok(corpus) = std::fs::read_to_string(&path) else {
        println!(
            "skipped: bodies_of_real_clients_are_answered_or_refused: {} is not there",
            path.display()
        );
        return;
    };
    let service = Service::start();
    let mut answered = 0;
    for line in corpus.lines() {
        let mut request: Value = serde_json::from_str(line).expect("the corpus is JSON");
        let body = &mut request["body"];
        // The mock servers that these were sent to chose their answer by the name of the model.
        body["model"] = json!("m");
        body["max_tokens"] = json!(200);
        let answer = service.post(
            request["path"].as_str().unwrap_or_default(),
            &request["body"].to_string(),
        );
        match answer.status {
            200 => answered += 1,
            400..=499 => {
                answer.error_code();
            }
            status => panic!("{status} for {line}: {}", answer.text()),
        }
    }
    assert!(
        answered > 30,
        "only {answered} of {} were answered",
        corpus.lines().count()
    );
}
