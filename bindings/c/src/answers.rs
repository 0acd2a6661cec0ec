//! Readers of answers: thoughts, content, calls of tools and the values of their arguments.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError};

use lexiform::answers::{AnswerFormat, Event, Events, Reading, Thought};
use lexiform::tags::Tool;
use serde_json::Value;

use crate::boundary::{free, guarded, hand_out, handle, string, value};
use crate::options::{self, mistake, text};

/// The handle of a reader. Several threads may use it at the same time.
pub struct ReaderHandle {
    events: Mutex<Events>,
}

/// Creates a reader of one answer in a format: the name of one, or `any`. `tools` is the JSON of a list of
/// tools as chats have them, or null. `thought` is 0 for none, 1 for possible, 2 for one that the prompt has
/// opened. If that fails, the result is null and `problems` receives all problems as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_answer_reader_new(
    format: *const c_char,
    format_len: usize,
    tools: *const c_char,
    tools_len: usize,
    thought: u32,
    json_content: bool,
    problems: *mut *mut c_char,
) -> *mut ReaderHandle {
    let reader = guarded(Err(mistake("a mistake of this library")), || {
        // SAFETY: the header demands these many bytes of each.
        let format = unsafe { text(format, format_len)? };
        let tools = match tools.is_null() {
            true => "[]",
            // SAFETY: as above.
            false => unsafe { text(tools, tools_len)? },
        };
        reader(format, tools, thought, json_content)
    });
    match reader {
        Ok(reader) => handle(reader),
        Err(text) => {
            // SAFETY: the header demands that `problems` is null or may be written to.
            unsafe { hand_out(problems, &text) };
            std::ptr::null_mut()
        }
    }
}

fn reader(format: &str, tools: &str, thought: u32, is_json: bool) -> Result<ReaderHandle, String> {
    let tools: Vec<Value> = serde_json::from_str(tools)
        .map_err(|error| mistake(&format!("the tools are no list in JSON: {error}")))?;
    let tool = |(place, tool): (usize, &Value)| {
        let function = tool.get("function").unwrap_or(tool);
        let name = function.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| mistake(&format!("the tool at /{place} has no name")))?;
        let parameters = function.get("parameters").cloned();
        Ok(Tool {
            name: name.to_owned(),
            parameters: parameters.unwrap_or_else(|| Value::Object(Default::default())),
        })
    };
    let tools: Vec<Tool> = tools
        .iter()
        .enumerate()
        .map(tool)
        .collect::<Result<_, String>>()?;
    let thought = match thought {
        0 => Thought::None,
        1 => Thought::Possible,
        2 => Thought::Begun,
        other => return Err(mistake(&format!("thought is {other}, and not 0, 1 or 2"))),
    };
    let reading = Reading { thought, is_json };
    let format = AnswerFormat::of_model(format, &tools, reading);
    let format = format.map_err(|error| options::problems(&error))?;
    Ok(ReaderHandle {
        events: Mutex::new(Events::new(Arc::new(format))),
    })
}

/// Frees a reader.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_answer_reader_free(reader: *mut ReaderHandle) {
    // SAFETY: the header demands a handle that was not freed, or null.
    unsafe { free(reader) };
}

/// Reads more text and returns its events as JSON; null if the text is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_answer_reader_push(
    reader: *const ReaderHandle,
    more: *const c_char,
    len: usize,
) -> *mut c_char {
    // SAFETY: the header demands a handle or null, and `len` bytes.
    let (reader, more) = unsafe { (value(reader), text(more, len)) };
    match (reader, more) {
        (Some(reader), Ok(more)) => written(reader, |events| events.push(more)),
        _ => std::ptr::null_mut(),
    }
}

/// Ends the answer and returns the events of what was held back, as JSON.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lexiform_answer_reader_finish(reader: *const ReaderHandle) -> *mut c_char {
    // SAFETY: the header demands a handle or null.
    let reader = unsafe { value(reader) };
    reader.map_or(std::ptr::null_mut(), |reader| written(reader, Events::finish))
}

fn written(reader: &ReaderHandle, read: impl FnOnce(&mut Events) -> Vec<Event>) -> *mut c_char {
    let mut events = reader.events.lock().unwrap_or_else(PoisonError::into_inner);
    let events = guarded(None, || Some(read(&mut events)));
    events.map_or(std::ptr::null_mut(), |events| {
        let events: Vec<Value> = events.iter().map(Event::to_json).collect();
        string(&Value::Array(events).to_string())
    })
}
