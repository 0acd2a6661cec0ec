//! The tools of the invented requests, in groups of tools that are nearly right for each other.

use serde_json::{Map, Value, json};

/// The name of a tool, what it does, its parameters with their types, and how many of them are required.
type Row = (&'static str, &'static str, &'static str, usize);

const TOOLS: [Row; 18] = [
    ("weather_now", "The weather of this moment", "city:text", 1),
    (
        "weather_forecast",
        "The weather of a day to come",
        "city:text date:date hourly:flag",
        2,
    ),
    (
        "event_create",
        "Makes a new entry in the calendar",
        "title:text date:date start:time minutes:whole",
        3,
    ),
    (
        "event_find",
        "Lists entries of the calendar",
        "date:date title:text",
        0,
    ),
    (
        "event_move",
        "Moves an entry of the calendar to another time",
        "title:text date:date start:time",
        3,
    ),
    ("mail_send", "Sends a mail", "to:texts subject:text body:text", 2),
    (
        "mail_draft",
        "Writes a mail that is not sent",
        "to:texts subject:text body:text",
        2,
    ),
    (
        "mail_search",
        "Finds mails that were received",
        "sender:text subject:text since:date",
        0,
    ),
    (
        "alarm_set",
        "Rings at a time of day",
        "time:time repeat:daily|weekdays",
        1,
    ),
    ("timer_start", "Rings after some minutes", "minutes:whole", 1),
    (
        "money_convert",
        "Converts an amount of money",
        "amount:number from:EUR|CHF|NOK|PLN|TRY to:EUR|CHF|NOK|PLN|TRY",
        3,
    ),
    (
        "unit_convert",
        "Converts lengths, masses and volumes",
        "value:number from:km|mi|ft|kg|lb|oz|l|gal to:km|mi|ft|kg|lb|oz|l|gal",
        3,
    ),
    (
        "train_search",
        "Finds trains",
        "from:text to:text date:date after:time",
        3,
    ),
    ("flight_search", "Finds flights", "from:text to:text date:date", 3),
    (
        "route_plan",
        "Finds a way by road",
        "from:text to:text by:car|bicycle|foot arrive_by:time",
        3,
    ),
    (
        "todo_add",
        "Adds to the list of things to do",
        "task:text due:date priority:low|high",
        1,
    ),
    ("note_add", "Keeps a text that is no task", "text:text", 1),
    (
        "light_set",
        "Controls the light of a room",
        "room:kitchen|hall|study|bathroom on:flag percent:percent",
        2,
    ),
];

/// Returns a tool by its name, with its parameters as JSON Schema.
pub(super) fn tool(name: &str) -> Value {
    let Some((name, about, parameters, required)) = TOOLS.iter().find(|it| it.0 == name) else {
        return Value::Null;
    };
    let parameters: Vec<(&str, &str)> = parameters
        .split(' ')
        .filter_map(|it| it.split_once(':'))
        .collect();
    let properties = parameters
        .iter()
        .map(|(name, kind)| ((*name).to_owned(), schema_of(kind)));
    let required: Vec<&str> = parameters.iter().take(*required).map(|it| it.0).collect();
    json!({
        "name": name,
        "description": about,
        "parameters": {
            "type": "object",
            "properties": properties.collect::<Map<_, _>>(),
            "required": required,
        },
    })
}

/// Returns the schema of a type of parameter. Types that are no word of their own are lists of values.
fn schema_of(kind: &str) -> Value {
    match kind {
        "text" => json!({"type": "string"}),
        "texts" => json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
        "flag" => json!({"type": "boolean"}),
        "number" => json!({"type": "number"}),
        "whole" => json!({"type": "integer", "minimum": 1}),
        "percent" => json!({"type": "integer", "minimum": 1, "maximum": 100}),
        "date" => json!({"type": "string", "format": "date"}),
        "time" => json!({"type": "string", "pattern": "^\\d\\d:\\d\\d$"}),
        values => json!({"enum": values.split('|').collect::<Vec<_>>()}),
    }
}
