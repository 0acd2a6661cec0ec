//! The rooms of the server and of the engine, and which rooms each may name.

/// The dependencies that are allowed inside the server: a room, and the other rooms that it may name, from
/// the bottom to the top.
///
/// A request enters at the top and is passed down; a room names what it needs from below, and nothing below
/// knows it.
pub(super) const SERVER_ROOMS: [(&str, &[&str]); 9] = [
    ("wire", &[]),
    ("operate", &["wire"]),
    ("grammars", &["wire", "operate"]),
    ("model", &["wire", "operate", "grammars"]),
    ("request", &["wire", "operate", "grammars", "model"]),
    // A service of its own, which runs no model.
    ("gateway", &["wire", "operate", "request"]),
    ("answer", &["wire", "operate", "grammars", "model", "request"]),
    (
        "routes",
        &["wire", "operate", "grammars", "model", "request", "answer"],
    ),
    (
        "cli",
        &[
            "wire", "operate", "grammars", "model", "request", "gateway", "answer", "routes",
        ],
    ),
];

/// The dependencies that are allowed inside the engine, in the same order.
pub(super) const ENGINE_ROOMS: [(&str, &[&str]); 14] = [
    ("error", &[]),
    ("config", &[]),
    ("fairness", &[]),
    ("metrics", &[]),
    ("request", &["error", "fairness", "metrics"]),
    ("model", &["error"]),
    ("torch", &["error", "model"]),
    ("blocks", &["fairness"]),
    ("speculation", &["config", "error", "fairness", "request"]),
    ("grammar", &["error", "request", "speculation"]),
    (
        "sequence",
        &[
            "error",
            "fairness",
            "metrics",
            "request",
            "blocks",
            "speculation",
            "grammar",
        ],
    ),
    (
        "scheduler",
        &[
            "config",
            "fairness",
            "request",
            "blocks",
            "speculation",
            "sequence",
        ],
    ),
    (
        "sampling",
        &[
            "error",
            "metrics",
            "request",
            "model",
            "speculation",
            "grammar",
            "sequence",
        ],
    ),
    (
        "engine",
        &[
            "error",
            "config",
            "fairness",
            "metrics",
            "request",
            "model",
            "blocks",
            "speculation",
            "grammar",
            "sequence",
            "scheduler",
            "sampling",
        ],
    ),
];

/// The dependencies that are allowed among the engine's models on libtorch.
pub(super) const TORCH_ROOMS: [(&str, &[&str]); 15] = [
    ("device", &[]),
    ("bandwidth", &["device"]),
    ("gguf", &[]),
    ("checkpoint", &["gguf"]),
    ("options", &["device", "checkpoint"]),
    ("config", &["checkpoint"]),
    ("crew", &[]),
    ("loops", &["gguf", "config", "crew"]),
    ("layers", &["config", "crew", "loops"]),
    // The part of kernel passes that other modules know.
    ("passes", &["config", "loops", "layers"]),
    ("flight", &["loops", "layers", "passes"]),
    (
        "decoder",
        &[
            "options",
            "checkpoint",
            "config",
            "crew",
            "loops",
            "layers",
            "passes",
            "flight",
        ],
    ),
    (
        "head",
        &["options", "checkpoint", "config", "loops", "layers", "decoder"],
    ),
    (
        "load",
        &[
            "options",
            "checkpoint",
            "config",
            "layers",
            "passes",
            "decoder",
            "head",
        ],
    ),
    (
        "kernels",
        &[
            "device",
            "options",
            "checkpoint",
            "config",
            "loops",
            "layers",
            "passes",
            "load",
        ],
    ),
];
