//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use actix_web::{HttpMessage as _, HttpRequest, HttpResponse, web};

use crate::operate::keys::Key;
use crate::routes::state::AppState;
use crate::wire::error::ApiError;
use crate::wire::models::{ModelCard, ModelList};

/// Lists the models that are served and that the key of the request may use: one or none.
pub async fn list(app: web::Data<AppState>, request: HttpRequest) -> HttpResponse {
    let usable = may_use(&request, app.served.name()).then(|| card(&app));
    HttpResponse::Ok().json(ModelList {
        object: "list",
        data: usable.into_iter().collect(),
    })
}

/// Returns one model.
///
/// # Errors
/// Fails if it is not served here, or not to this key.
pub async fn get(
    app: web::Data<AppState>,
    request: HttpRequest,
    id: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    if *id == app.served.name() && may_use(&request, &id) {
        Ok(HttpResponse::Ok().json(card(&app)))
    } else {
        Err(ApiError::unknown_model(&id))
    }
}

/// Returns `true` if the key of a request, where there is one, may use this model.
fn may_use(request: &HttpRequest, model: &str) -> bool {
    let extensions = request.extensions();
    let key = extensions.get::<Arc<Key>>();
    key.is_none_or(|key| key.rights.model(model).is_ok())
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
