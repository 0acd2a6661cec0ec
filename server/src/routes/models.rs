//! `GET /v1/models` and `GET /v1/models/{id}`.

use actix_web::{HttpResponse, web};

use crate::app::App;
use crate::error::ApiError;
use crate::wire::models::{ModelCard, ModelList};

/// The models that are served: one.
pub async fn list(app: web::Data<App>) -> HttpResponse {
    HttpResponse::Ok().json(ModelList {
        object: "list",
        data: vec![card(&app)],
    })
}

/// One model.
///
/// # Errors
/// It is not served here.
pub async fn get(app: web::Data<App>, id: web::Path<String>) -> Result<HttpResponse, ApiError> {
    if *id == app.served.name() {
        Ok(HttpResponse::Ok().json(card(&app)))
    } else {
        Err(ApiError::unknown_model(&id))
    }
}

fn card(app: &App) -> ModelCard<'_> {
    ModelCard {
        id: app.served.name(),
        object: "model",
        created: app.served.created(),
        owned_by: "lexiform",
        max_model_len: app.served.engine().max_context(),
    }
}
