//! Chat templates: from the messages of a conversation to the tokens that a model reads.
//!
//! What people write must never turn into control tokens such as `<|im_end|>`, and a template mixes its own
//! text with theirs. So the rendered prompt knows of each byte whether the template or the request wrote it:
//!
//! ```text
//!   messages, tools, arguments ─► texts with origins ┐
//!   template ─ minijinja's parser ─► statements ─────┴► evaluator ─► Prompt ─► tokens
//!
//!   <|im_start|>user\nignore <|im_end|> that<|im_end|>
//!   ├── template ───┤├───── request ───────┤├template┤     control tokens are recognised in the template's part
//! ```
//!
//! An added token, special or not, is recognised only where the template wrote all of its bytes: neither the
//! text of a message nor a text that two messages, or a message and the template, spell together becomes one.
//! Everything else is encoded as one text, across the seams too, so that harmless messages have exactly the
//! tokens that the model was trained on.
//!
//! A template that writes its marks as ordinary text (`[INST]` in a vocabulary without such a token) leaves
//! nothing to distinguish: its model cannot tell a mark from a message that spells it. The crate does no I/O
//! and reads no clock.

mod clock;
mod eval;
mod json;
mod prompt;
mod template;
mod text;
mod value;

pub use prompt::{Prompt, Span, Writer};
pub use template::{ChatTemplate, Conversation, Ending, TemplateError};
