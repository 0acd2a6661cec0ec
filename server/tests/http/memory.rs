//! Models that make room for each other by their weights, that end by themselves, and that load while the
//! service ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lexiform_server::model::registry::{Bounds, Registry};
use lexiform_server::model::served;
use lexiform_server::routes::state::Settings;
use serde_json::json;

use super::models::{Loads, Models, gated, offers};
use super::service::{PATIENCE, Service, unhurried};

/// Bounds on the bytes of weights alone.
fn of_memory(bytes: u64) -> Bounds {
    Bounds {
        memory: Some(bytes),
        ..Bounds::default()
    }
}

#[test]
fn models_make_room_for_each_other_by_their_weights() {
    let models = Models::start(of_memory(9));
    models
        .service
        .app
        .models
        .load_first()
        .expect("they can be loaded");
    let loaded = |states: [&str; 3]| assert_eq!(models.states(), states);
    // The third has no room beside the first two.
    loaded(["loaded", "loaded", "unloaded"]);
    models.answers("a");
    models.until_idle();
    models.answers("c");
    loaded(["unloaded", "unloaded", "loaded"]);
    models.until_idle();
    models.answers("b");
    loaded(["unloaded", "loaded", "loaded"]);
    models.until_idle();
    models.answers("a");
    loaded(["loaded", "loaded", "unloaded"]);
    assert_eq!(models.loads(), [2, 2, 1]);
}

/// Guards against an idle model that leaves for nothing: what stays is in use and leaves no room.
#[test]
fn an_idle_model_stays_where_its_weights_would_not_be_enough() {
    let models = Models::start(of_memory(8));
    models.answers("b");
    models.until_idle();
    let stream = models.endless("a");
    let registry = models.service.app.models.clone();
    let load = registry.load(models.place("c"), Duration::from_millis(50));
    let refused = actix_web::rt::System::new().block_on(load);
    let refused = refused.err().expect("a is in use");
    assert_eq!(refused.code(), "no_room_for_model");
    assert_eq!(models.states()[..2], ["loaded", "loaded"]);
    drop(stream);
    assert_eq!(models.answers("c"), "c");
    assert_eq!(models.states(), ["unloaded", "unloaded", "loaded"]);
}

#[test]
fn a_model_that_is_larger_than_the_memory_is_refused_with_both_sizes() {
    let loads = Loads::default();
    let of = |offers, memory| Registry::new(offers, of_memory(memory), unhurried(), served::grammar_shelf());
    let error = of(offers(&loads), 5).err().expect("c is too large").to_string();
    assert!(
        ["'c'", "6 bytes", "5 bytes"]
            .iter()
            .all(|part| error.contains(part)),
        "{error}"
    );
    // Its files may grow while the service runs.
    let (mut offers, grown) = (offers(&loads), Arc::new(AtomicBool::new(false)));
    let told = grown.clone();
    offers[0].weigh = Box::new(move || Ok(if told.load(Ordering::Acquire) { 10 } else { 4 }));
    let registry = of(offers, 6).expect("all fit");
    let service = Service::of_models(registry, Settings::default(), (None, PATIENCE));
    grown.store(true, Ordering::Release);
    let refused = service.chat("echo x", json!({"model": "a"}));
    assert_eq!(
        (refused.status, refused.error_code().as_str()),
        (503, "model_not_loaded")
    );
    assert!(
        refused.text().contains("10 bytes") && refused.text().contains("6 bytes"),
        "{}",
        refused.text()
    );
    assert_eq!(loads[0].load(Ordering::Acquire), 0);
}

#[test]
fn a_model_whose_engine_has_ended_is_loaded_anew() {
    let models = Models::start(Bounds::default());
    models.answers("a");
    let end = || {
        let served = models.service.app.models.ready(models.place("a"));
        served.expect("it is loaded").engine().stop();
    };
    end();
    assert_eq!(models.service.get("/ready").status, 200);
    assert_eq!((models.answers("a"), models.loads()[0]), (json!("a"), 2));
    end();
    models.service.app.models.tidy(Instant::now());
    let card = models.service.get("/v1/models/a").json();
    assert_eq!(card["state"], "failed");
    assert!(
        card["error"]
            .as_str()
            .is_some_and(|error| error.contains("engine has ended"))
    );
    assert_eq!((models.answers("a"), models.loads()[0]), (json!("a"), 3));
}

#[test]
fn the_end_of_the_service_waits_for_a_load_and_begins_no_other() {
    let (models, gate, loads) = gated();
    let registry = models.service.app.models.clone();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| models.chat("a").status);
        models.until("the load begins", || models.states()[0] == "loading");
        let stopped = scope.spawn(|| registry.stop());
        models.until("nothing else is loaded", || {
            models.operate("b", "unload");
            models.chat("b").status == 503
        });
        assert!(!stopped.is_finished(), "the load is under way");
        gate.send(Ok(())).expect("the load waits");
        stopped.join().expect("it stops");
        assert!([200, 503].contains(&waiting.join().expect("an answer")));
    });
    assert_eq!(loads[0].load(Ordering::Acquire), 1);
    let mut alive = 0;
    registry.each_loaded(|_, served| alive += usize::from(served.engine().is_alive()));
    assert_eq!(alive, 0);
}
