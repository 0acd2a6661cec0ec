//! `GET /v1/models` and `GET /v1/models/{id}`.

use actix_web::{HttpResponse, web};

use crate::routes::state::AppState;
use crate::wire::error::ApiError;
use crate::wire::models::{ModelCard, ModelList};

/// Lists the models that are served: one.
pub async fn list(app: web::Data<AppState>) -> HttpResponse {
    HttpResponse::Ok().json(ModelList {
        object: "list",
        data: vec![card(&app)],
    })
}

/// Returns one model.
///
/// # Errors
/// Fails if it is not served here.
pub async fn get(app: web::Data<AppState>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    if *id == app.served.name() {
        Ok(HttpResponse::Ok().json(card(&app)))
    } else {
        Err(ApiError::unknown_model(&id))
    }
}

fn card(app: &AppState) -> ModelCard<'_> {
    ModelCard {
        id: app.served.name(),
        object: "model",
        created: app.served.created(),
        owned_by: "lexiform",
        max_model_len: app.served.engine().max_context(),
        weights: app.served.weights().name(),
        tool_format: app.served.tool_format().name(),
        batch_invariant: app.served.engine().variance().is_none(),
    }
}
