//! The service as clients meet it: a real server on a free port, real connections, a model that follows a
//! script.

#[path = "http/bodies.rs"]
mod bodies;
#[path = "http/bombs.rs"]
mod bombs;
#[path = "http/budgets.rs"]
mod budgets;
#[path = "http/callback_host.rs"]
mod callback_host;
#[path = "http/callbacks.rs"]
mod callbacks;
#[path = "http/chats.rs"]
mod chats;
#[path = "http/choosing.rs"]
mod choosing;
#[path = "http/closing.rs"]
mod closing;
#[path = "http/conformance.rs"]
mod conformance;
#[path = "http/constraints.rs"]
mod constraints;
#[path = "http/continuing.rs"]
mod continuing;
#[path = "http/contrast.rs"]
mod contrast;
#[path = "http/crowds.rs"]
mod crowds;
#[path = "http/decisions.rs"]
mod decisions;
#[path = "http/deploying.rs"]
mod deploying;
#[path = "http/drafts.rs"]
mod drafts;
#[path = "http/ending.rs"]
mod ending;
#[path = "http/enforcement.rs"]
mod enforcement;
#[path = "http/errors.rs"]
mod errors;
#[path = "http/fairness.rs"]
mod fairness;
#[path = "http/fields.rs"]
mod fields;
#[path = "http/filters.rs"]
mod filters;
#[path = "http/gateway.rs"]
mod gateway;
#[path = "http/gateway_streams.rs"]
mod gateway_streams;
#[path = "http/grammars.rs"]
mod grammars;
#[path = "http/growing.rs"]
mod growing;
#[path = "http/healing.rs"]
mod healing;
#[path = "http/http2.rs"]
mod http2;
#[path = "http/isolation.rs"]
mod isolation;
#[path = "http/laws.rs"]
mod laws;
#[path = "http/leaving.rs"]
mod leaving;
#[path = "http/memory.rs"]
mod memory;
#[path = "http/messages.rs"]
mod messages;
#[path = "http/metrics.rs"]
mod metrics;
#[path = "http/models.rs"]
mod models;
#[path = "http/monitors.rs"]
mod monitors;
#[path = "http/operations.rs"]
mod operations;
#[path = "http/pages.rs"]
mod pages;
#[path = "http/permissions.rs"]
mod permissions;
#[path = "http/project.rs"]
mod project;
#[path = "http/promises.rs"]
mod promises;
#[path = "http/reasoning.rs"]
mod reasoning;
#[path = "http/repair.rs"]
mod repair;
#[path = "http/responses.rs"]
mod responses;
#[path = "http/resuming.rs"]
mod resuming;
#[path = "http/rewriting.rs"]
mod rewriting;
#[path = "http/searches.rs"]
mod searches;
#[path = "http/security.rs"]
mod security;
#[path = "http/service.rs"]
mod service;
#[path = "http/sizes.rs"]
mod sizes;
#[path = "http/stops.rs"]
mod stops;
#[path = "http/streams.rs"]
mod streams;
#[path = "http/tags.rs"]
mod tags;
#[path = "http/thoughts.rs"]
mod thoughts;
#[path = "http/tokenizer.rs"]
mod tokenizer;
#[path = "http/tool_formats.rs"]
mod tool_formats;
#[path = "http/tools.rs"]
mod tools;
#[path = "http/traces.rs"]
mod traces;
#[path = "http/upstream_host.rs"]
mod upstream_host;
