//! Several models in one service: their names, and which of them are in memory.

use std::io::BufReader;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lexiform_server::grammars::store::Shelf;
use lexiform_server::model::limits::RequestLimits;
use lexiform_server::model::registry::{Bounds, Load, Offer, Place, Registry};
use lexiform_server::model::served;
use lexiform_server::model::text::StartError;
use lexiform_server::operate::keys::{Keys, hashed};
use lexiform_server::routes::state::Settings;
use serde_json::{Value, json};

use super::service::{Answer, PATIENCE, Service, chat, read_chunk, read_head, served_as, unhurried};

const HOUR: Duration = Duration::from_secs(3600);

/// The bytes that the weights of each model are said to take.
const WEIGHTS: [u64; 3] = [4, 3, 6];

/// How often each model was loaded.
pub(crate) type Loads = Arc<[AtomicUsize; 3]>;

/// The models `a`, `b` and `c`, of which `b` is also called `beta`.
pub(crate) fn offers(loads: &Loads) -> Vec<Offer> {
    let offer = |(place, name): (usize, &'static str)| {
        let loads = loads.clone();
        let load = move |shelf: &Arc<Shelf>| {
            loads[place].fetch_add(1, Ordering::AcqRel);
            Ok(served_as(shelf, name))
        };
        Offer {
            name: name.to_owned(),
            aliases: if name == "b" {
                vec!["beta".to_owned()]
            } else {
                Vec::new()
            },
            load: Box::new(load),
            weigh: Box::new(move || Ok(WEIGHTS[place])),
        }
    };
    ["a", "b", "c"].into_iter().enumerate().map(offer).collect()
}

/// A service of some models.
pub(crate) struct Models {
    pub(crate) service: Service,
    loads: Loads,
}

impl Models {
    pub(crate) fn start(bounds: Bounds) -> Self {
        Self::with(bounds, unhurried(), Settings::default())
    }

    fn with(bounds: Bounds, limits: RequestLimits, settings: Settings) -> Self {
        let loads = Loads::default();
        let registry = Registry::new(offers(&loads), bounds, limits, served::grammar_shelf());
        Self {
            service: Service::of_models(registry.expect("names"), settings, (None, PATIENCE)),
            loads,
        }
    }

    pub(crate) fn loads(&self) -> [usize; 3] {
        [0, 1, 2].map(|place| self.loads[place].load(Ordering::Acquire))
    }

    pub(crate) fn chat(&self, model: &str) -> Answer {
        self.service.chat("echo x", json!({"model": model}))
    }

    /// Has a model answer, and returns its name.
    pub(crate) fn answers(&self, model: &str) -> Value {
        let answer = self.chat(model);
        assert_eq!(answer.status, 200, "{model}: {}", answer.text());
        answer.json()["model"].clone()
    }

    pub(crate) fn states(&self) -> Vec<Value> {
        let cards = self.service.get("/v1/models").json();
        let cards = cards["data"].as_array().expect("a list").clone();
        cards.into_iter().map(|card| card["state"].clone()).collect()
    }

    /// Waits until the service has let go of its models: an answer is sent before they are.
    pub(crate) fn until_idle(&self) {
        let models = &self.service.app.models;
        self.until("all are idle", || {
            models.places().all(|place| !models.is_in_use(place))
        });
    }

    pub(crate) fn until(&self, what: &str, is: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is() {
            assert!(
                begun.elapsed() < PATIENCE,
                "{what} did not happen: {:?}",
                self.states()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Begins an answer that does not end, and reads until it is being written.
    pub(crate) fn endless(&self, model: &str) -> BufReader<TcpStream> {
        let body = chat("forever", json!({"model": model, "stream": true}));
        let stream = self.service.begin("/v1/chat/completions", &body);
        let mut reader = BufReader::new(stream);
        assert_eq!(read_head(&mut reader).0, 200);
        go_on(&mut reader);
        reader
    }

    pub(crate) fn operate(&self, model: &str, what: &str) -> Answer {
        self.service.post(&format!("/v1/models/{model}/{what}"), "")
    }

    pub(crate) fn place(&self, model: &str) -> Place {
        self.service
            .app
            .models
            .find(Some(model), |_| true)
            .expect("a model")
    }
}

/// Reads a stream until more of its answer has come.
fn go_on(reader: &mut BufReader<TcpStream>) {
    let is_text = |chunk: &[u8]| String::from_utf8_lossy(chunk).contains("\"content\":\"a");
    while !is_text(&read_chunk(reader).expect("the stream goes on")) {}
}

#[test]
fn a_request_chooses_its_model_by_name_or_alias() {
    let models = Models::start(Bounds::default());
    assert_eq!(models.answers("a"), "a");
    assert_eq!(models.answers("b"), "b");
    assert_eq!(models.answers("beta"), "b");
    let service = &models.service;
    let body = json!({"messages": [{"role": "user", "content": "echo x"}]});
    let unnamed = service.post("/v1/chat/completions", &body.to_string());
    assert_eq!(
        unnamed.json()["model"],
        "a",
        "a request that names none has the first"
    );
    for (path, body) in [
        ("/v1/chat/completions", chat("echo x", json!({"model": "d"}))),
        ("/v1/completions", json!({"model": "d", "prompt": "x"})),
        ("/tokenize", json!({"model": "d", "prompt": "x"})),
        ("/v1/grammars", json!({"model": "d", "regex": "a"})),
    ] {
        let unknown = service.post(path, &body.to_string());
        assert_eq!(
            (unknown.status, unknown.error_code().as_str()),
            (404, "model_not_found"),
            "{path}"
        );
        assert!(unknown.text().contains("a, b, c"), "{}", unknown.text());
    }
    assert_eq!(service.get("/v1/models/beta").json()["id"], "b");
    assert_eq!(service.get("/v1/models/d").error_code(), "model_not_found");
    let cards = service.get("/v1/models").json();
    assert_eq!(cards["data"][1]["aliases"], json!(["beta"]));
    assert_eq!(
        (
            &cards["data"][1]["state"],
            cards["data"][1]["max_model_len"].is_u64()
        ),
        (&json!("loaded"), true)
    );
    assert_eq!(
        (&cards["data"][2]["state"], cards["data"][2].get("max_model_len")),
        (&json!("unloaded"), None)
    );
}

#[test]
fn two_models_of_one_name_are_refused() {
    let mut offers = offers(&Loads::default());
    offers[2].aliases.push("a".to_owned());
    let registry = Registry::new(offers, Bounds::default(), unhurried(), served::grammar_shelf());
    assert!(
        registry
            .err()
            .expect("two are called a")
            .to_string()
            .contains("'a'")
    );
}

#[test]
fn a_model_is_loaded_once_when_it_is_first_used() {
    let models = Models::start(Bounds::default());
    assert_eq!(
        (models.loads(), models.states()),
        ([0; 3], vec![json!("unloaded"); 3])
    );
    for _ in 0..2 {
        models.answers("b");
        assert_eq!(models.loads(), [0, 1, 0]);
    }
}

/// A model whose load waits for a signal, and fails if the signal says so.
pub(crate) fn gated() -> (Models, Sender<Result<(), StartError>>, Loads) {
    let (gate, opened) = channel();
    let (loads, opened) = (Loads::default(), Mutex::new(opened));
    let mut offers = offers(&loads);
    let inner = std::mem::replace(&mut offers[0].load, Box::new(|_| Err(StartError::NoModel)));
    let load: Load = Box::new(move |shelf| {
        let signal = opened.lock().expect("nothing panicked").recv();
        signal.expect("the test has the other end")?;
        inner(shelf)
    });
    offers[0].load = load;
    let registry = Registry::new(offers, Bounds::default(), unhurried(), served::grammar_shelf());
    let service = Service::of_models(registry.expect("names"), Settings::default(), (None, PATIENCE));
    let models = Models {
        service,
        loads: loads.clone(),
    };
    (models, gate, loads)
}

#[test]
fn all_who_wait_for_a_model_share_one_load_and_others_do_not_wait() {
    let (models, gate, loads) = gated();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..6).map(|_| scope.spawn(|| models.answers("a"))).collect();
        models.until("the load begins", || models.states()[0] == "loading");
        assert_eq!(models.answers("b"), "b");
        let busy = models.operate("a", "unload");
        assert_eq!((busy.status, busy.error_code().as_str()), (409, "model_loading"));
        gate.send(Ok(())).expect("the load waits");
        for answered in waiting {
            assert_eq!(answered.join().expect("an answer"), "a");
        }
    });
    assert_eq!(loads[0].load(Ordering::Acquire), 1);
}

#[test]
fn a_load_that_fails_is_told_with_its_reason_and_tried_again() {
    let (models, gate, _) = gated();
    gate.send(Err(StartError::NoModel)).expect("the load waits");
    let failed = models.chat("a");
    assert_eq!(
        (failed.status, failed.error_code().as_str()),
        (503, "model_not_loaded")
    );
    assert!(
        failed.text().contains("without the demo model"),
        "{}",
        failed.text()
    );
    let card = models.service.get("/v1/models/a").json();
    assert_eq!(
        (&card["state"], card["error"].is_string()),
        (&json!("failed"), true)
    );
    assert_eq!(
        (models.answers("b"), models.service.get("/ready").status),
        (json!("b"), 200)
    );
    gate.send(Ok(())).expect("the load waits");
    assert_eq!(models.answers("a"), "a");
}

#[test]
fn a_load_that_panics_fails_alone() {
    let panics = Arc::new(AtomicBool::new(true));
    let mut offers = offers(&Loads::default());
    let told = panics.clone();
    offers[0].load = Box::new(move |shelf| {
        assert!(!told.load(Ordering::Acquire), "the test says so");
        Ok(served_as(shelf, "a"))
    });
    let registry = Registry::new(offers, Bounds::default(), unhurried(), served::grammar_shelf());
    let service = Service::of_models(registry.expect("names"), Settings::default(), (None, PATIENCE));
    let ask = |model: &str| service.chat("echo x", json!({"model": model})).status;
    assert_eq!((ask("a"), ask("b")), (503, 200));
    panics.store(false, Ordering::Release);
    assert_eq!(ask("a"), 200);
}

#[test]
fn the_least_recently_used_model_makes_room() {
    let models = Models::start(Bounds {
        loaded: 2,
        idle: None,
        ..Bounds::default()
    });
    for model in ["a", "b", "a"] {
        models.answers(model);
    }
    models.until_idle();
    models.answers("c");
    assert_eq!(models.states(), ["loaded", "unloaded", "loaded"]);
    models.until_idle();
    models.answers("b");
    assert_eq!(models.states(), ["unloaded", "loaded", "loaded"]);
    assert_eq!(models.loads(), [1, 2, 1]);
}

#[test]
fn a_model_in_use_makes_no_room() {
    let models = Models::start(Bounds {
        loaded: 1,
        idle: None,
        ..Bounds::default()
    });
    let mut stream = models.endless("a");
    let registry = models.service.app.models.clone();
    let load = registry.load(models.place("b"), Duration::from_millis(50));
    let refused = actix_web::rt::System::new().block_on(load);
    let refused = refused.err().expect("a is in use");
    assert_eq!(
        (refused.status().as_u16(), refused.code()),
        (503, "no_room_for_model")
    );
    assert_eq!(
        (models.loads()[1], models.states()[0].clone()),
        (0, json!("loaded"))
    );
    go_on(&mut stream);
    drop(stream);
    assert_eq!(models.answers("b"), "b");
    assert_eq!(models.states()[0], "unloaded");
}

#[test]
fn an_idle_model_is_unloaded_in_time_and_its_counts_go_on() {
    let models = Models::start(Bounds {
        loaded: 3,
        idle: Some(HOUR),
        ..Bounds::default()
    });
    let registry = &models.service.app.models;
    let before = Instant::now();
    models.answers("a");
    models.until_idle();
    registry.tidy(before + HOUR / 2);
    assert_eq!(models.states()[0], "loaded");
    let mut stream = models.endless("b");
    registry.tidy(Instant::now() + 2 * HOUR);
    assert_eq!(
        models.states(),
        ["unloaded", "loaded", "unloaded"],
        "what is in use is not idle"
    );
    go_on(&mut stream);
    models.answers("a");
    assert_eq!(models.loads(), [2, 1, 0]);
    let ended = "vllm:request_success_total{model_name=\"a\",engine=\"0\",finished_reason=\"stop\"} 2";
    let metrics = models.service.get("/metrics");
    assert!(metrics.text().contains(ended), "{}", metrics.text());
    assert!(
        metrics
            .text()
            .contains("vllm:num_requests_running{model_name=\"b\",engine=\"0\"} 1")
    );
    assert!(
        !metrics
            .text()
            .contains("vllm:num_requests_running{model_name=\"c\"")
    );
}

#[test]
fn an_operator_loads_and_unloads_and_nothing_is_cut_off() {
    let models = Models::start(Bounds::default());
    assert_eq!(models.operate("beta", "load").json()["state"], "loaded");
    assert_eq!(models.loads(), [0, 1, 0]);
    models.until_idle();
    assert_eq!(models.operate("b", "unload").json()["state"], "unloaded");
    assert_eq!(models.operate("b", "unload").json()["state"], "unloaded");
    let mut stream = models.endless("a");
    assert_eq!(models.operate("a", "unload").json()["state"], "unloading");
    go_on(&mut stream);
    // A request that comes meanwhile keeps the model.
    models.answers("a");
    assert_eq!(
        (models.states()[0].clone(), models.loads()[0]),
        (json!("loaded"), 1)
    );
    assert_eq!(models.operate("a", "unload").json()["state"], "unloading");
    drop(stream);
    models.until("it is unloaded", || {
        models.service.app.models.tidy(Instant::now());
        models.states()[0] == "unloaded"
    });
    assert!(models.service.app.models.ready(models.place("a")).is_none());
    assert_eq!(models.operate("d", "load").error_code(), "model_not_found");
    let read = models.service.get("/v1/models/a/load");
    assert_eq!(read.status, 405, "{}", read.text());
}

/// Guards against loads under fire that end an answer, exceed the bound, or never come to their turn.
#[test]
fn models_that_take_turns_answer_everything() {
    let models = Models::start(Bounds {
        loaded: 1,
        idle: None,
        ..Bounds::default()
    });
    std::thread::scope(|scope| {
        for client in 0..3 {
            let models = &models;
            scope.spawn(move || {
                for round in 0..4 {
                    let model = ["a", "b", "c"][(client + round) % 3];
                    assert_eq!(models.answers(model), model);
                }
            });
        }
        for _ in 0..20 {
            let mut loaded = 0;
            models.service.app.models.each_loaded(|_, _| loaded += 1);
            assert!(loaded <= 1, "{loaded} are loaded");
        }
    });
}

fn keys() -> Settings {
    let key = |name, more| {
        format!(
            "[[keys]]\nname = \"{name}\"\nsha256 = \"{}\"\n{more}",
            hashed(name)
        )
    };
    let keys = [
        key("shop", "models = [\"b\"]\nconcurrent = 1\n"),
        key("admin", "operator = true\n"),
    ];
    Settings {
        keys: Keys::parse(&keys.concat()).expect("a file of keys"),
        ..Settings::default()
    }
}

#[test]
fn rights_and_limits_of_keys_hold_over_all_models() {
    let models = Models::with(Bounds::default(), unhurried(), keys());
    let ask = |key: &str, path: &str, body: &Value| {
        let head =
            format!("POST {path} HTTP/1.1\r\ncontent-type: application/json\r\nauthorization: Bearer {key}");
        models.service.exchange(&head, body.to_string().as_bytes())
    };
    let chat_of = |model: &str| chat("echo x", json!({"model": model}));
    // Neither answered nor loaded.
    for (path, body) in [
        ("/v1/chat/completions", chat_of("a")),
        ("/tokenize", json!({"model": "a", "prompt": "x"})),
    ] {
        let refused = ask("shop", path, &body);
        assert_eq!(
            (refused.status, refused.error_code().as_str()),
            (403, "not_permitted"),
            "{path}"
        );
    }
    assert_eq!(models.loads(), [0; 3]);
    for (key, path, expected) in [
        ("shop", "/v1/models/b/load", 403),
        ("admin", "/v1/models/b/load", 200),
        ("shop", "/v1/models/b/unload", 403),
        ("admin", "/v1/models/b/unload", 200),
        ("nobody", "/v1/models/b/load", 401),
    ] {
        assert_eq!(ask(key, path, &Value::Null).status, expected, "{key} {path}");
    }
    // An alias has the rights of its model, and the other model counts against the same limit.
    assert_eq!(ask("shop", "/v1/chat/completions", &chat_of("beta")).status, 200);
    let endless = chat("forever", json!({"model": "b", "stream": true}));
    let client = "authorization: Bearer shop";
    let stream = models.service.begin_as(client, "/v1/chat/completions", &endless);
    let mut reader = BufReader::new(stream);
    assert_eq!(read_head(&mut reader).0, 200);
    assert_eq!(ask("shop", "/v1/chat/completions", &chat_of("b")).status, 429);
}

/// Guards against a page in a browser, or a client behind a proxy, that unloads the models of a machine whose
/// service has no keys.
#[test]
fn without_keys_only_programs_of_the_machine_operate() {
    let models = Models::start(Bounds::default());
    let ask = |header: &str| {
        let head = format!("POST /v1/models/a/load HTTP/1.1\r\n{header}");
        models.service.exchange(&head, b"").status
    };
    for header in [
        "origin: https://evil.example",
        "origin: null",
        "sec-fetch-site: cross-site",
        "x-forwarded-for: 127.0.0.1",
        "forwarded: for=127.0.0.1",
        "x-real-ip: 127.0.0.1",
    ] {
        assert_eq!(ask(header), 403, "{header}");
    }
    assert_eq!(
        (models.loads(), ask("x-test: none"), models.loads()),
        ([0; 3], 200, [1, 0, 0])
    );
}

#[test]
fn models_of_one_vocabulary_share_grammars_and_each_counts_its_own() {
    let models = Models::start(Bounds::default());
    let ask = |model: &str| {
        let answer = models
            .service
            .chat("echo ab", json!({"model": model, "guided_regex": "[a-z]*"}));
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    ask("a");
    ask("b");
    let metrics = models.service.get("/metrics");
    let says = |series: &str| metrics.text().lines().any(|line| line == series);
    for series in [
        "lexiform_grammar_cache_misses_total{model_name=\"a\",engine=\"0\"} 1",
        "lexiform_grammar_cache_hits_total{model_name=\"a\",engine=\"0\"} 0",
        "lexiform_grammar_cache_misses_total{model_name=\"b\",engine=\"0\"} 0",
        "lexiform_grammar_cache_hits_total{model_name=\"b\",engine=\"0\"} 1",
        "lexiform_http_answers_total{model_name=\"b\",engine=\"0\",status=\"2xx\"} 1",
        "lexiform_grammar_cache_entries{model_name=\"a\",engine=\"0\"} 1",
    ] {
        assert!(says(series), "{series} is missing in {}", metrics.text());
    }
    // A registered grammar is for all models.
    let id = models
        .service
        .post("/v1/grammars", r#"{"model": "a", "regex": "a+"}"#)
        .json()["id"]
        .clone();
    let path = format!("/v1/grammars/{}", id.as_str().expect("an id"));
    assert_eq!(models.service.get(&format!("{path}?model=beta")).json()["id"], id);
    assert_eq!(
        models.service.get(&format!("{path}?model=d")).error_code(),
        "model_not_found"
    );
    assert_eq!(models.service.get(&format!("{path}?modle=b")).status, 400);
    let more = json!({"model": "b", "grammar_id": id});
    assert_eq!(models.service.chat("echo a", more).status, 200);
}
