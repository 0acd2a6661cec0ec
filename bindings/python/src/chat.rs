//! Chat templates with the tokens of their prompts; `lexiform/chat.py` finds the template of a tokenizer.

use lexiform_automata::vocab::Tokenizer;
use lexiform_chat::{ChatTemplate, Conversation, Ending, Prompt, Writer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::fork;

/// A part of a prompt: the first character, the one after the last, and the JSON pointer of what the
/// conversation wrote; `None` for what the template wrote.
type Span = (usize, usize, Option<String>);

/// A chat template with the tokenizer of its model.
#[pyclass(frozen, module = "lexiform")]
pub(crate) struct ChatTokenizer {
    template: ChatTemplate,
    tokenizer: Tokenizer,
}

#[pymethods]
impl ChatTokenizer {
    /// Reads a template, and the text of a `tokenizer.json`. `constants` are the variables of the template
    /// for special tokens.
    #[new]
    fn new(
        py: Python<'_>,
        template: &str,
        tokenizer: &str,
        constants: Vec<(String, String)>,
    ) -> PyResult<ChatTokenizer> {
        let _inside = fork::enter(py);
        py.detach(|| {
            Ok(ChatTokenizer {
                template: ChatTemplate::new(template, constants).map_err(refused)?,
                tokenizer: Tokenizer::from_bytes(tokenizer.as_bytes()).map_err(refused)?,
            })
        })
    }

    /// Returns the tokens of a conversation, which is JSON with `messages`, `tools` and `variables`;
    /// `ending` is "answer", "nothing" or "open", and `now` the time that templates see, in seconds since
    /// 1970.
    fn encode(&self, py: Python<'_>, conversation: &str, ending: &str, now: u64) -> PyResult<Vec<u32>> {
        let _inside = fork::enter(py);
        py.detach(|| {
            let prompt = self.prompt(conversation, ending, now)?;
            prompt.encode(&self.tokenizer).map_err(refused)
        })
    }

    /// Returns the text of a conversation, and who wrote which part of it.
    fn render(
        &self,
        py: Python<'_>,
        conversation: &str,
        ending: &str,
        now: u64,
    ) -> PyResult<(String, Vec<Span>)> {
        let _inside = fork::enter(py);
        py.detach(|| {
            let prompt = self.prompt(conversation, ending, now)?;
            Ok((prompt.text().to_owned(), spans(&prompt)))
        })
    }
}

impl ChatTokenizer {
    fn prompt(&self, conversation: &str, ending: &str, now: u64) -> PyResult<Prompt> {
        let mut given: Map<String, Value> = serde_json::from_str(conversation).map_err(refused)?;
        let mut list = |name: &str| match given.remove(name) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        let (messages, tools) = (list("messages"), list("tools"));
        let variables = match given.remove("variables") {
            Some(Value::Object(variables)) => variables,
            _ => Map::new(),
        };
        let ending = match ending {
            "answer" => Ending::Answer,
            "nothing" => Ending::Nothing,
            "open" => Ending::Open,
            other => return Err(PyValueError::new_err(format!("there is no ending {other:?}"))),
        };
        let conversation = Conversation {
            messages: &messages,
            ending,
            tools: &tools,
            schema: None,
            arguments: &variables,
            arguments_name: "variables",
            now,
        };
        self.template.render(&conversation).map_err(refused)
    }
}

fn spans(prompt: &Prompt) -> Vec<Span> {
    let mut start = 0;
    let spans = prompt.spans().map(|span| {
        let first = start;
        start += prompt.text()[span.range].chars().count();
        let pointer = match span.writer {
            Writer::Template => None,
            Writer::Request(pointer) => Some(pointer.to_owned()),
        };
        (first, start, pointer)
    });
    spans.collect()
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
