//! The program as operators and people at a terminal meet it: started, asked, signalled, killed, behind a
//! proxy.

#[path = "process/asking.rs"]
mod asking;
#[path = "process/cards.rs"]
mod cards;
#[path = "process/connections.rs"]
mod connections;
#[path = "process/crowds.rs"]
mod crowds;
#[path = "process/gateway.rs"]
mod gateway;
#[path = "process/generating.rs"]
mod generating;
#[path = "process/logs.rs"]
mod logs;
#[path = "process/program.rs"]
mod program;
#[path = "process/promises.rs"]
mod promises;
#[path = "process/real.rs"]
mod real;
#[path = "process/router.rs"]
mod router;
#[path = "process/serving.rs"]
mod serving;
#[path = "process/several.rs"]
mod several;
#[path = "process/signals.rs"]
mod signals;
#[path = "process/sql.rs"]
mod sql;
#[path = "process/supervising.rs"]
mod supervising;
#[path = "http/tokenizer.rs"]
mod tokenizer;
#[path = "process/tool_formats.rs"]
mod tool_formats;
