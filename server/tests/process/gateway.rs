//! The gateway in front of the service itself, which refuses what OpenAI refuses: whatever schema is sent,
//! the answer obeys it.
//!
//! The record in `benches/record/` is of more schemas than the test has:
//! `LEXIFORM_GATEWAY_SCHEMAS=1000 cargo test -p lexiform-server --test process gateway -- --nocapture`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Instant;

use lexiform::limits::Limits;
use lexiform::project::{Profile, Toward, project};
use lexiform::schema::Options;
use serde_json::{Value, json};

use crate::program::{Service, lexiform, model_folder};

/// The number of schemas in the test.
const SCHEMAS: usize = 60;
/// The tokens of an answer, each of a byte.
const TOKENS: usize = 300;
/// How often a schema that is known is sent, to measure what the gateway adds.
const REPEATED: usize = 200;

/// Schemas of MaskBench that can be written for OpenAI, evenly from the whole collection.
fn schemas(wanted: usize) -> Option<Vec<(String, Value)>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.data/maskbench/dev.jsonl");
    let text = std::fs::read_to_string(path).ok()?;
    let lines: Vec<&str> = text.lines().collect();
    let profile = Profile::named("openai-strict").expect("a profile");
    let written = |schema: &Value| {
        let text = schema.to_string();
        project(
            &text,
            &profile,
            Toward::Wider,
            &Options::for_generation(),
            &Limits::default(),
        )
        .is_ok()
    };
    // Some are unsatisfiable, too large for the provider, or have no short answer.
    let stride = (lines.len() / 2 / wanted.max(1)).max(1);
    let cases = lines
        .iter()
        .step_by(stride)
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let cases = cases.map(|case| (case["name"].to_string(), case["schema"].clone()));
    let usable = cases.filter(|(_, schema)| jsonschema::validator_for(schema).is_ok() && written(schema));
    Some(usable.collect())
}

fn services() -> (Service, Service) {
    let folder = model_folder("gateway");
    let config = folder.join("config.json");
    let text = std::fs::read_to_string(&config).expect("the model's configuration");
    let roomy = text.replace(r#"_embeddings":512"#, r#"_embeddings":4096"#);
    std::fs::write(&config, roomy).expect("the same with more room");
    let upstream = Service::start_with(&folder, &["--accept-profile", "openai-strict"]);
    let url = format!("http://{}/v1", upstream.address);
    let mut gateway = lexiform();
    gateway.args([
        "gateway",
        "--port",
        "0",
        "--silence-seconds",
        "600",
        "--upstream",
        &url,
    ]);
    (upstream, Service::spawned(&mut gateway))
}

fn body(schema: &Value) -> Value {
    json!({"model": "tiny", "seed": 1, "max_tokens": TOKENS, "schema_in_prompt": "never", "messages": [{"role": "user", "content": "Write an example."}],
           "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}})
}

/// The status, and the answer.
fn asked(service: &Service, body: &Value) -> (u16, Value) {
    let answer = service.post(body);
    let mut lines = BufReader::new(answer.as_bytes()).lines().map_while(Result::ok);
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (status.expect("a status"), body)
}

#[test]
fn answers_obey_the_schemas_of_clients_whatever_the_provider_takes() {
    let wanted = std::env::var("LEXIFORM_GATEWAY_SCHEMAS");
    let wanted = wanted.ok().and_then(|text| text.parse().ok()).unwrap_or(SCHEMAS);
    let Some(schemas) = schemas(wanted) else {
        println!("skipped: gateway::answers_obey_the_schemas: .data/maskbench/dev.jsonl is not there");
        return;
    };
    let (upstream, gateway) = services();
    let (mut withheld, mut sent, mut long, mut refused, mut failed, mut repaired, mut again) =
        (0, 0, 0, 0, Vec::new(), 0, 0);
    for (name, schema) in &schemas {
        if sent == wanted {
            break;
        }
        let (status, answer) = asked(&gateway, &body(schema));
        if answer["error"]["code"] == "budget_too_small" {
            long += 1;
            continue;
        }
        sent += 1;
        refused += usize::from(asked(&upstream, &body(schema)).0 == 400);
        // A model of random weights writes no JSON into a string that has to hold the text of a value.
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        if answer["error"]["code"] == "answer_rejected" && message.contains("cannot be read") {
            withheld += 1;
            continue;
        }
        let text = answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default();
        let value = serde_json::from_str::<Value>(text);
        let validator = jsonschema::validator_for(schema).expect("a schema");
        if status != 200 || !value.is_ok_and(|value| validator.is_valid(&value)) {
            failed.push(format!("{name}: {status} {answer}"));
        }
        repaired += usize::from(
            answer["lexiform"]["changes"]
                .as_array()
                .is_some_and(|all| !all.is_empty()),
        );
        again += usize::from(
            answer["lexiform"]["attempts"]
                .as_u64()
                .is_some_and(|attempts| attempts > 1),
        );
    }
    println!(
        "{sent} schemas, {refused} of which the provider refuses: {} answers obey them, {withheld} were withheld, {} do not obey; {repaired} after a repair, {again} asked for again; \
         {long} more have no answer of {TOKENS} tokens",
        sent - withheld - failed.len(),
        failed.len(),
    );
    assert_eq!(sent, wanted);
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(withheld * 100 <= wanted, "{withheld} of {wanted} were withheld");
    assert!(refused * 2 > wanted, "the provider takes nearly everything");
    println!("{}", added(&upstream, &gateway));
}

/// Measures what the gateway adds to a request whose schema is known, against the same request without it.
fn added(upstream: &Service, gateway: &Service) -> String {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": false});
    let request = body(&schema);
    let (mut alone, mut through) = (Vec::new(), Vec::new());
    for _ in 0..REPEATED {
        for (service, times) in [(upstream, &mut alone), (gateway, &mut through)] {
            let begun = Instant::now();
            assert_eq!(asked(service, &request).0, 200);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
    }
    let at = |times: &mut Vec<f64>, of_hundred: usize| {
        times.sort_by(f64::total_cmp);
        times[(times.len() * of_hundred).div_ceil(100) - 1]
    };
    format!(
        "a known schema, ms: p50 {:.2} alone, {:.2} through the gateway; p90 {:.2}, {:.2}",
        at(&mut alone, 50),
        at(&mut through, 50),
        at(&mut alone, 90),
        at(&mut through, 90)
    )
}
