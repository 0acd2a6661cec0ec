//! Takes the answers of an upstream back: restores what is recoded, and checks everything under a schema.
//!
//! ```text
//!   content ──── schema? ── restored, valid, or the nearest valid value ─┐
//!   calls ─ may be called? ── arguments: the same ───────────────────────┴─► passed on
//!              └ no                 └ no value near
//!                └──────────────────┴─► rejected: a reason, and a message for the model
//! ```
//!
//! What the upstream cut off is never repaired: most of the value would be our invention. Where something had
//! to be added to a value, another answer is asked for first.

use std::sync::Arc;

use lexiform::project::{Received, Rejected as NotReceived};
use lexiform::repair::ChangeKind;
use serde_json::{Map, Value, json};

use crate::gateway::schemas::KnownSchema;
use crate::wire::chat::forwarded::{Calls, Mode};
use crate::wire::chat::projected::Changed;
use crate::wire::chat::upstream::{Call, Said};

/// The reasons with which an upstream ends an answer early.
const CUT: [&str; 2] = ["length", "content_filter"];

/// What the answers to a request must be.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The rule of the content; `None` if it is free.
    pub(super) content: Option<Rule>,
    /// The tools that may be called.
    pub(super) calls: Option<Calls>,
    /// The schemas of the arguments of tools, by their names.
    pub(super) arguments: Vec<(String, Arc<KnownSchema>)>,
}

/// The rule of a text.
#[derive(Debug)]
pub(super) enum Rule {
    /// Any JSON object.
    Object,
    /// A value of a schema.
    Schema(Arc<KnownSchema>),
}

/// An answer that fits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Checked {
    /// The answer as it is passed on.
    pub(super) said: Said,
    /// What was changed in it.
    pub(super) changes: Vec<Changed>,
    /// Why another answer would be better: something was added that the upstream has not said.
    pub(super) guessed: Option<Rejected>,
}

/// Why an answer is not passed on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rejected {
    /// The field of the choice, as `message.content`.
    pub(super) place: String,
    /// What is wrong with it.
    pub(super) reason: String,
    /// A message that asks the model for another answer.
    message: String,
    /// The call that is wrong.
    call: Option<usize>,
    /// `true` if the upstream ended the answer early, and would again.
    pub(super) is_cut: bool,
}

impl Checks {
    /// Returns an answer as it is passed on, with what was changed in it.
    ///
    /// # Errors
    /// Fails if a part of it does not fit.
    pub(super) fn check(&self, said: Said) -> Result<Checked, Rejected> {
        let is_cut = said.finish.as_deref().is_some_and(|finish| CUT.contains(&finish));
        self.callable(&said, is_cut)?;
        let mut checked = Checked {
            said,
            changes: Vec::new(),
            guessed: None,
        };
        self.without_logprobs(&mut checked.said.choice);
        for index in 0..checked.said.calls.len() {
            let call = &checked.said.calls[index];
            let schema = self.arguments.iter().find(|(name, _)| *name == call.name);
            let Some((_, schema)) = schema.filter(|_| !call.is_custom) else {
                continue;
            };
            let place = format!("message.tool_calls[{index}].function.arguments");
            // Some write nothing where there are no arguments.
            let text = if call.input.is_empty() { "{}" } else { &call.input };
            let received = receive(schema, text, (&place, Some(index), is_cut))?;
            checked.said.calls[index].input = checked.passed_on(received, (&place, Some(index)));
        }
        if let Some(rule) = &self.content {
            checked.check_content(rule, is_cut)?;
        }
        Ok(checked)
    }

    /// Removes the log-probabilities from a choice whose text is checked: nobody has checked theirs.
    pub(super) fn without_logprobs(&self, choice: &mut Map<String, Value>) {
        let is_checked = self.content.is_some() || !self.arguments.is_empty();
        if let Some(logprobs) = choice.get_mut("logprobs").filter(|_| is_checked) {
            *logprobs = Value::Null;
        }
    }

    /// Checks which tools are called.
    fn callable(&self, said: &Said, is_cut: bool) -> Result<(), Rejected> {
        let place = "message.tool_calls";
        let Some(calls) = &self.calls else {
            return match said.calls.is_empty() {
                true => Ok(()),
                false => Err(Rejected::of(place, "no tool may be called", None, is_cut)),
            };
        };
        if said.calls.is_empty() && calls.mode != Mode::Auto && !is_cut && !said.is_refused {
            return Err(Rejected::of(place, "a tool must be called", None, false));
        }
        if said.calls.len() > 1 && !calls.parallel {
            return Err(Rejected::of(
                place,
                "only one tool may be called at a time",
                None,
                is_cut,
            ));
        }
        let is_known = |call: &Call| {
            let mut tools = calls.tools.iter();
            tools.any(|tool| tool.name == call.name && tool.is_custom() == call.is_custom)
        };
        match said.calls.iter().position(|call| !is_known(call)) {
            None => Ok(()),
            Some(index) => {
                let names: Vec<&str> = calls.tools.iter().map(|tool| tool.name.as_str()).collect();
                let reason = format!(
                    "there is no such tool that may be called; there is {}",
                    names.join(", ")
                );
                Err(Rejected::of(
                    &format!("{place}[{index}]"),
                    &reason,
                    Some(index),
                    is_cut,
                ))
            }
        }
    }
}

fn receive(
    schema: &KnownSchema,
    text: &str,
    (place, call, is_cut): (&str, Option<usize>, bool),
) -> Result<(Received, Vec<String>), Rejected> {
    let rejected = |error: NotReceived| Rejected {
        place: place.to_owned(),
        reason: error.to_string(),
        message: error.message_for_model(),
        call,
        is_cut,
    };
    let (received, strings) = schema.receive(text).map_err(rejected)?;
    match is_cut && !(received.changes.is_empty() && strings.is_empty()) {
        true => Err(Rejected::of(place, "the answer is not complete", call, true)),
        false => Ok((received, strings)),
    }
}

impl Checked {
    /// Checks the content, unless the answer has calls or a refusal in its place.
    fn check_content(&mut self, rule: &Rule, is_cut: bool) -> Result<(), Rejected> {
        let place = "message.content";
        let text = self.said.content.as_deref().unwrap_or_default();
        if text.is_empty() {
            return match is_cut || self.said.is_refused || !self.said.calls.is_empty() {
                true => Ok(()),
                false => Err(Rejected::of(place, "the answer is empty", None, false)),
            };
        }
        let text = match rule {
            Rule::Schema(schema) => {
                let received = receive(schema, text, (place, None, is_cut))?;
                self.passed_on(received, (place, None))
            }
            Rule::Object => match serde_json::from_str::<Value>(text) {
                Ok(value @ Value::Object(_)) => value.to_string(),
                _ => return Err(Rejected::of(place, "the answer is no JSON object", None, is_cut)),
            },
        };
        self.said.content = Some(text);
        Ok(())
    }

    /// Returns the text of a value as it is passed on: that of the value that was checked, and not that of
    /// the upstream, in which a key may be there twice.
    fn passed_on(
        &mut self,
        (received, strings): (Received, Vec<String>),
        (place, call): (&str, Option<usize>),
    ) -> String {
        for path in strings {
            let reason = format!("the string at '#{path}' has to hold the JSON text of a value");
            self.guessed
                .get_or_insert_with(|| Rejected::of(place, &reason, call, false));
            self.changes.push(Changed {
                param: place.to_owned(),
                path,
                kind: ChangeKind::Respelled.name(),
            });
        }
        for change in received.changes {
            let reason = match change.kind {
                ChangeKind::Added => Some("the schema requires more than there is"),
                ChangeKind::Respelled if change.pointer.is_empty() => Some("the schema allows no such value"),
                _ => None,
            };
            if let Some(reason) = reason.filter(|_| self.guessed.is_none()) {
                let reason = format!("{reason} at '#{}'", change.pointer);
                self.guessed = Some(Rejected::of(place, &reason, call, false));
            }
            self.changes.push(Changed {
                param: place.to_owned(),
                path: change.pointer,
                kind: change.kind.name(),
            });
        }
        received.value.to_string()
    }
}

impl Rejected {
    fn of(place: &str, reason: &str, call: Option<usize>, is_cut: bool) -> Self {
        Self {
            place: place.to_owned(),
            reason: reason.to_owned(),
            message: format!("The last answer cannot be used: {reason}. Answer again."),
            call,
            is_cut,
        }
    }

    /// Returns the messages that ask for another answer than this one.
    pub(super) fn messages(&self, said: &Said) -> Vec<Value> {
        let mut messages: Vec<Value> = said.repeated().into_iter().collect();
        if said.calls.is_empty() {
            messages.push(json!({"role": "user", "content": self.message}));
            return messages;
        }
        messages.extend(said.calls.iter().enumerate().map(|(index, call)| {
            let is_wrong = self.call.is_none_or(|wrong| wrong == index);
            let content = match is_wrong {
                true => self.message.as_str(),
                false => "Not carried out, because another call beside it cannot be used. Call again.",
            };
            json!({"role": "tool", "tool_call_id": call.id, "content": content})
        }));
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::schemas::Schemas;
    use crate::wire::chat::forwarded;
    use lexiform::limits::Cancel;
    use lexiform::project::Profile;

    const PERSON: &str = r#"{"type":"object","properties":{"name":{"type":"string","maxLength":3},"age":{"type":"integer"}},"required":["name"]}"#;

    fn checks(more: Value) -> Checks {
        let schemas = Schemas::new(Profile::named("openai-strict").expect("a profile"));
        let known = schemas.known(PERSON, &Cancel::default()).expect("a schema");
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let forwarded = forwarded::read(body.to_string().as_bytes()).expect("a request");
        Checks {
            content: forwarded.content.map(|_| Rule::Schema(known.clone())),
            arguments: forwarded
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), known.clone()))
                .collect(),
            calls: forwarded.calls,
        }
    }

    fn said(content: &str, calls: &[(&str, &str)], finish: &str) -> Said {
        let call = |(name, input): &(&str, &str)| Call {
            id: format!("call_{name}"),
            name: (*name).to_owned(),
            input: (*input).to_owned(),
            ..Call::default()
        };
        Said {
            content: (!content.is_empty()).then(|| content.to_owned()),
            calls: calls.iter().map(call).collect(),
            finish: Some(finish.to_owned()),
            ..Said::default()
        }
    }

    fn schema() -> Value {
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "p", "schema": {}}}})
    }

    fn tools(choice: Value) -> Value {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        json!({"tools": [tool("a"), tool("b")], "tool_choice": choice})
    }

    #[test]
    fn content_is_restored_repaired_or_rejected() {
        let checks = checks(schema());
        let passed = |text: &str, finish| checks.check(said(text, &[], finish));
        let good = passed(r#"{"name": "Ada", "age": null}"#, "stop").expect("a value");
        assert_eq!(
            (good.said.content.as_deref(), good.changes.len()),
            (Some(r#"{"name":"Ada"}"#), 0)
        );
        let twice = passed(r#"{"name":"x","name":"y","age":1}"#, "stop").expect("a value");
        assert_eq!(twice.said.content.as_deref(), Some(r#"{"name":"y","age":1}"#));
        let changes = passed(r#"{"name": "Ada", "age": "7"}"#, "stop")
            .expect("a near value")
            .changes;
        assert_eq!(
            (&*changes[0].param, &*changes[0].path),
            ("message.content", "/age")
        );
        for text in ["", "no", r#"{"name": "Ad"#] {
            let error = passed(text, "stop").expect_err(text);
            assert_eq!(
                (&*error.place, error.is_cut),
                ("message.content", false),
                "{error:?}"
            );
        }
    }

    #[test]
    fn what_was_cut_off_is_not_repaired() {
        let checks = checks(schema());
        let whole = r#"{"name": "Ada", "age": null}"#;
        assert!(checks.check(said(whole, &[], "length")).is_ok());
        assert!(checks.check(said("", &[], "content_filter")).is_ok());
        for text in [r#"{"name": "Ada", "age": "7"}"#, r#"{"name": "A"#] {
            assert!(
                checks
                    .check(said(text, &[], "length"))
                    .is_err_and(|error| error.is_cut),
                "{text}"
            );
        }
    }

    #[test]
    fn only_tools_that_may_be_called_are_called() {
        let good = r#"{"name": "Ada", "age": 1}"#;
        let named = json!({"type": "function", "function": {"name": "b"}});
        for (choice, calls, place) in [
            (json!("auto"), &[("a", good), ("b", good)][..], None),
            (json!("auto"), &[], None),
            (
                json!("auto"),
                &[("a", good), ("c", good)],
                Some("message.tool_calls[1]"),
            ),
            (
                json!("auto"),
                &[("a", good), ("b", "[]")],
                Some("message.tool_calls[1].function.arguments"),
            ),
            (json!("required"), &[], Some("message.tool_calls")),
            (json!("none"), &[("a", good)], Some("message.tool_calls")),
            (named.clone(), &[("b", good)], None),
            (named, &[("a", good)], Some("message.tool_calls[0]")),
        ] {
            let found = checks(tools(choice.clone())).check(said("", calls, "tool_calls"));
            // An answer that something was added to is passed on only if no better one comes.
            let found = match found {
                Ok(checked) => checked.guessed,
                Err(rejected) => Some(rejected),
            };
            let found = found.map(|rejected| rejected.place);
            assert_eq!(found.as_deref(), place, "{choice} {calls:?}");
        }
        let mut one = checks(tools(json!("auto")));
        one.calls.as_mut().expect("calls").parallel = false;
        assert!(
            one.check(said("", &[("a", good), ("b", good)], "tool_calls"))
                .is_err()
        );
    }

    #[test]
    fn every_call_is_answered_when_the_model_is_asked_again() {
        let checks = checks(tools(json!("auto")));
        let said = said("Hm.", &[("a", "{\"name\":\"Ada\"}"), ("b", "[")], "tool_calls");
        let messages = checks.check(said.clone()).expect_err("no JSON").messages(&said);
        let roles: Vec<&str> = messages
            .iter()
            .filter_map(|message| message["role"].as_str())
            .collect();
        assert_eq!(roles, ["assistant", "tool", "tool"]);
        assert_eq!(messages[0]["tool_calls"][1]["function"]["arguments"], "[");
        assert!(
            messages[1]["content"]
                .as_str()
                .is_some_and(|text| text.starts_with("Not carried out"))
        );
        assert!(
            messages[2]["content"]
                .as_str()
                .is_some_and(|text| text.contains("no JSON")),
            "{messages:?}"
        );
    }
}
