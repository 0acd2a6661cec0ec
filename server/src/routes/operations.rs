//! The routes for load balancers and monitoring.

use actix_web::{HttpResponse, web};
use prometheus_client::encoding::prometheus_text;

use crate::operate::lines::Lines;
use crate::operate::metrics::exposition::{self, ModelGauges};
use crate::operate::metrics::gauges::ServerGauges;
use crate::operate::process;
use crate::routes::state::AppState;
use crate::wire::error::ApiError;
use crate::wire::models::{Health, Version};

/// Reports that the process runs.
pub async fn live() -> HttpResponse {
    HttpResponse::Ok().json(Health { status: "ok" })
}

/// Reports whether the process accepts requests: the engine runs, and the server is not shutting down. A full
/// queue is not its matter: it concerns the requests that find no room, which get 429, and would otherwise
/// allow one client to take the server from all others.
///
/// # Errors
/// Fails if they are not accepted.
pub async fn ready(app: web::Data<AppState>) -> Result<HttpResponse, ApiError> {
    app.check_open()?;
    Ok(HttpResponse::Ok().json(Health { status: "ok" }))
}

/// Returns the version of the server.
pub async fn version() -> HttpResponse {
    HttpResponse::Ok().json(Version {
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// Returns the metrics of the server, for Prometheus.
pub async fn metrics(app: web::Data<AppState>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type(prometheus_text::CONTENT_TYPE)
        .body(exposition(&app))
}

/// Returns the values of all metrics now.
pub fn exposition(app: &AppState) -> String {
    let (models, settings) = (&app.models, &app.settings);
    let mut loaded = Vec::new();
    models.each_loaded(|place, served| {
        let engine = served.engine();
        loaded.push((place, engine.stats(), engine.clone(), served.weight_bytes()));
    });
    let gauges = models.places().map(|place| {
        let loaded = loaded.iter().find(|(loaded, ..)| *loaded == place);
        ModelGauges {
            metrics: models.metrics(place),
            engine: loaded.map(|(_, stats, engine, _)| (stats, engine.meters())),
            weight_bytes: loaded.map_or(0, |(.., bytes)| *bytes),
            turned_away: models.limits_of(place).turned_away(),
        }
    });
    let gauges: Vec<ModelGauges<'_>> = gauges.collect();
    let server = ServerGauges {
        compiling: models.shelf().now(),
        traces: settings.traces.counts(),
        lines_lost: [
            ("messages", settings.log.as_ref().map_or(0, Lines::lost)),
            ("audit", settings.audit.lost()),
        ],
        bodies: app.bodies.counts(),
        resident: process::resident_bytes(),
    };
    exposition::exposition(&gauges, &server)
}
