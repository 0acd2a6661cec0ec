//! Invents requests to an assistant that has tools: which are called, and with which arguments.
//!
//! Level 1 has one call and tools that have nothing to do with each other. Level 2 has tools that are
//! nearly right, days and times in several notations, and optional arguments that are given or not. Level 3
//! has two calls, or none because the tool that would fit is missing.

use serde_json::{Value, json};

use super::draw::{Day, Draw, Invented, clock, clock_spelled, hundredths, in_words};
use super::toolbox::tool;

/// What somebody asks for: the sentence, the tool that does it, and its arguments.
struct Asked {
    sentence: String,
    tool: &'static str,
    arguments: Value,
}

/// The day on which the assistant is asked, and how hard it is made.
#[derive(Clone, Copy)]
struct Setting {
    today: Day,
    level: u64,
}

type Skill = fn(&mut Draw, Setting) -> Asked;

/// The skills in groups. Tools of one group are nearly right for each other.
const GROUPS: [(&[Skill], &[&str]); 7] = [
    (&[weather_now, weather_on], &["weather_now", "weather_forecast"]),
    (
        &[create_event, find_events],
        &["event_create", "event_find", "event_move"],
    ),
    (
        &[send_mail, search_mail],
        &["mail_send", "mail_draft", "mail_search"],
    ),
    (&[set_alarm, start_timer], &["alarm_set", "timer_start"]),
    (&[convert_money, convert_unit], &["money_convert", "unit_convert"]),
    (
        &[find_train, plan_route],
        &["train_search", "flight_search", "route_plan"],
    ),
    (&[add_task, set_light], &["todo_add", "note_add", "light_set"]),
];

pub(super) fn task(draw: &mut Draw, level: u64) -> Invented {
    let setting = Setting {
        today: draw.day(2026),
        level,
    };
    // How many things are asked for, how many tools are nearly right for each, and how many are beside the
    // point.
    let (asked, near, beside) = match level {
        1 => (1, 0, 1),
        2 => (1, 2, 0),
        _ => (2, 1, 0),
    };
    let groups = draw.some(&GROUPS, asked + beside);
    let (used, unused) = groups.split_at(asked);
    let mut asked = Vec::new();
    let mut tools: Vec<&str> = unused.iter().map(|it| it.1[0]).collect();
    for (skills, group) in used {
        let skill = skills[draw.between(0, skills.len() as i64 - 1) as usize];
        let this = skill(draw, setting);
        let others: Vec<&str> = group.iter().filter(|it| **it != this.tool).copied().collect();
        tools.push(this.tool);
        tools.extend(draw.some(&others, near));
        asked.push(this);
    }
    // Now and then one of two things is asked for that no tool does.
    let missing = (level == 3 && draw.chance(30)).then(|| asked[1].tool);
    tools.retain(|it| Some(*it) != missing);
    draw.shuffle(&mut tools);
    let right = asked.iter().filter(|it| Some(it.tool) != missing);
    let calls: Vec<Value> = right
        .map(|it| json!({"name": it.tool, "arguments": it.arguments}))
        .collect();
    let sentences: Vec<&str> = asked.iter().map(|it| it.sentence.as_str()).collect();
    let today = format!("Today is {}. ", setting.today.iso());
    let prompt = match sentences[..] {
        [first, second] => format!("{today}{first} And another thing: {second}"),
        _ => format!("{today}{}", sentences.concat()),
    };
    let mut answer = json!({"json": {"calls": calls}, "fold": true});
    if calls.len() > 1 {
        answer["unordered"] = json!(["/calls"]);
    }
    Invented {
        prompt,
        form: ("tools", tools.into_iter().map(tool).collect()),
        answer,
    }
}

/// A day in the words of somebody who asks today.
fn on_day(draw: &mut Draw, setting: Setting) -> (String, String) {
    let days = draw.between(1, 20);
    let day = setting.today.plus(days);
    let spelled = match (days, setting.level) {
        (1, 2..) => "tomorrow".to_owned(),
        (2, 2..) => "the day after tomorrow".to_owned(),
        (3..=10, 3) => format!("in {} days", in_words(days)),
        _ => format!("on {}", day.spelled(draw, setting.level)),
    };
    (spelled, day.iso())
}

fn at_time(draw: &mut Draw, setting: Setting) -> (String, String) {
    let minutes = draw.step(8 * 60, 21 * 60, 15);
    (clock_spelled(minutes, draw, setting.level), clock(minutes))
}

/// Adds an argument that is optional, sometimes; never at level 1.
fn perhaps(
    draw: &mut Draw,
    setting: Setting,
    arguments: &mut Value,
    (name, value, words): (&str, Value, String),
) -> String {
    if setting.level == 1 || draw.chance(50) {
        return String::new();
    }
    arguments[name] = value;
    words
}

fn weather_now(draw: &mut Draw, _: Setting) -> Asked {
    let city = draw.cities(1)[0];
    let question = draw.one(&[
        "What is it like outside in {C} right now?",
        "Is it raining in {C} at the moment?",
    ]);
    Asked {
        sentence: question.replace("{C}", city),
        tool: "weather_now",
        arguments: json!({"city": city}),
    }
}

fn weather_on(draw: &mut Draw, setting: Setting) -> Asked {
    let city = draw.cities(1)[0];
    let (words, day) = on_day(draw, setting);
    let mut arguments = json!({"city": city, "date": day});
    let hourly = ("hourly", json!(true), ", hour by hour".to_owned());
    let hourly = perhaps(draw, setting, &mut arguments, hourly);
    Asked {
        sentence: format!("Tell me what weather {city} will have {words}{hourly}."),
        tool: "weather_forecast",
        arguments,
    }
}

fn create_event(draw: &mut Draw, setting: Setting) -> Asked {
    let title = draw.one(&[
        "Budget review",
        "Choir practice",
        "Dentist",
        "Garden meeting",
        "Staff lunch",
    ]);
    let ((on, day), (at, time)) = (on_day(draw, setting), at_time(draw, setting));
    let mut arguments = json!({"title": title, "date": day, "start": time});
    let minutes = draw.step(20, 90, 10);
    let lasts = ("minutes", json!(minutes), format!(", for {minutes} minutes"));
    let lasts = perhaps(draw, setting, &mut arguments, lasts);
    Asked {
        sentence: format!("Put \"{title}\" into my calendar {on}, at {at}{lasts}."),
        tool: "event_create",
        arguments,
    }
}

fn find_events(draw: &mut Draw, setting: Setting) -> Asked {
    let (on, day) = on_day(draw, setting);
    Asked {
        sentence: format!("Which appointments do I have {on}?"),
        tool: "event_find",
        arguments: json!({"date": day}),
    }
}

fn send_mail(draw: &mut Draw, setting: Setting) -> Asked {
    let name = draw.given(1)[0];
    let to = format!(
        "{}@{}.example",
        name.to_lowercase(),
        draw.one(&["north", "harbour", "mill"])
    );
    let subject = draw.one(&["Rent for May", "Our trip", "Minutes", "Broken heater"]);
    let mut arguments = json!({"to": [to], "subject": subject});
    let body = draw.one(&["See you there", "Please call me", "All is done"]);
    let body = ("body", json!(body), format!(" that says only \"{body}\""));
    let body = perhaps(draw, setting, &mut arguments, body);
    Asked {
        sentence: format!("Send {name} ({to}) a message with the subject \"{subject}\"{body}."),
        tool: "mail_send",
        arguments,
    }
}

fn search_mail(draw: &mut Draw, setting: Setting) -> Asked {
    let sender = draw.person();
    let mut arguments = json!({"sender": sender});
    let day = draw.day(2025);
    let since = (
        "since",
        json!(day.iso()),
        format!(" since {}", day.spelled(draw, setting.level)),
    );
    let since = perhaps(draw, setting, &mut arguments, since);
    Asked {
        sentence: format!("Look for what {sender} has written to me{since}."),
        tool: "mail_search",
        arguments,
    }
}

fn set_alarm(draw: &mut Draw, setting: Setting) -> Asked {
    let (at, time) = at_time(draw, setting);
    let mut arguments = json!({"time": time});
    let repeat = draw.one(&["daily", "weekdays"]);
    let words = if repeat == "daily" {
        " every day"
    } else {
        " on every working day"
    };
    let repeat = perhaps(
        draw,
        setting,
        &mut arguments,
        ("repeat", json!(repeat), words.to_owned()),
    );
    Asked {
        sentence: format!("Wake me at {at}{repeat}."),
        tool: "alarm_set",
        arguments,
    }
}

fn start_timer(draw: &mut Draw, setting: Setting) -> Asked {
    let minutes = draw.step(15, 90, 15);
    let words = match (minutes, setting.level) {
        (30, 2..) => "half an hour".to_owned(),
        (45, 2..) => "three quarters of an hour".to_owned(),
        (90, 2..) => "an hour and a half".to_owned(),
        _ => format!("{minutes} minutes"),
    };
    Asked {
        sentence: format!("Let me know when {words} are over; the bread is in the oven.")
            .replace("hour are over", "hour is over"),
        tool: "timer_start",
        arguments: json!({"minutes": minutes}),
    }
}

const CURRENCIES: [(&str, &str); 5] = [
    ("euros", "EUR"),
    ("Swiss francs", "CHF"),
    ("Norwegian kroner", "NOK"),
    ("Polish zloty", "PLN"),
    ("Turkish lira", "TRY"),
];

fn convert_money(draw: &mut Draw, setting: Setting) -> Asked {
    let pair = draw.some(&CURRENCIES, 2);
    let amount = if setting.level == 1 {
        draw.between(5, 900) * 100
    } else {
        draw.between(500, 90_000)
    };
    let amount = hundredths(amount);
    Asked {
        sentence: format!("How much are {amount} {} in {}?", pair[0].0, pair[1].0),
        tool: "money_convert",
        arguments: json!({"amount": amount, "from": pair[0].1, "to": pair[1].1}),
    }
}

fn convert_unit(draw: &mut Draw, _: Setting) -> Asked {
    let families: [&[(&str, &str)]; 3] = [
        &[("kilometres", "km"), ("miles", "mi"), ("feet", "ft")],
        &[("kilograms", "kg"), ("pounds", "lb"), ("ounces", "oz")],
        &[("litres", "l"), ("gallons", "gal")],
    ];
    let family = families[draw.between(0, 2) as usize];
    let pair = draw.some(family, 2);
    let value = draw.between(2, 400);
    Asked {
        sentence: format!("What are {value} {} in {}?", pair[0].0, pair[1].0),
        tool: "unit_convert",
        arguments: json!({"value": value, "from": pair[0].1, "to": pair[1].1}),
    }
}

fn find_train(draw: &mut Draw, setting: Setting) -> Asked {
    let cities = draw.cities(2);
    let (on, day) = on_day(draw, setting);
    let mut arguments = json!({"from": cities[0], "to": cities[1], "date": day});
    let (at, time) = at_time(draw, setting);
    let after = perhaps(
        draw,
        setting,
        &mut arguments,
        ("after", json!(time), format!(", not before {at}")),
    );
    Asked {
        sentence: format!(
            "I need to get to {} by rail {on}; I start in {}{after}.",
            cities[1], cities[0]
        ),
        tool: "train_search",
        arguments,
    }
}

fn plan_route(draw: &mut Draw, setting: Setting) -> Asked {
    let cities = draw.cities(2);
    let (words, by) = [("drive", "car"), ("cycle", "bicycle"), ("walk", "foot")][draw.between(0, 2) as usize];
    let mut arguments = json!({"from": cities[0], "to": cities[1], "by": by});
    let (at, time) = at_time(draw, setting);
    let arrive = ("arrive_by", json!(time), format!(" so that I am there by {at}"));
    let arrive = perhaps(draw, setting, &mut arguments, arrive);
    Asked {
        sentence: format!("How do I {words} from {} to {}{arrive}?", cities[0], cities[1]),
        tool: "route_plan",
        arguments,
    }
}

fn add_task(draw: &mut Draw, setting: Setting) -> Asked {
    let task = draw.one(&[
        "Water the ferns",
        "Renew the passport",
        "Call the plumber",
        "Return the drill",
    ]);
    let mut arguments = json!({"task": task});
    let (on, day) = on_day(draw, setting);
    let due = perhaps(
        draw,
        setting,
        &mut arguments,
        (
            "due",
            json!(day),
            format!(", due {}", on.trim_start_matches("on ")),
        ),
    );
    let urgent = ("priority", json!("high"), "; it is urgent".to_owned());
    let urgent = perhaps(draw, setting, &mut arguments, urgent);
    Asked {
        sentence: format!("\"{task}\" must go on my list of things to do{due}{urgent}."),
        tool: "todo_add",
        arguments,
    }
}

fn set_light(draw: &mut Draw, setting: Setting) -> Asked {
    let room = draw.one(&["kitchen", "hall", "study", "bathroom"]);
    if setting.level == 1 || draw.chance(30) {
        let is_on = draw.chance(50);
        let word = if is_on { "on" } else { "off" };
        return Asked {
            sentence: format!("Switch the light in the {room} {word}."),
            tool: "light_set",
            arguments: json!({"room": room, "on": is_on}),
        };
    }
    let percent = draw.step(20, 80, 10);
    Asked {
        sentence: format!("I want the light in the {room} on, at {percent} per cent."),
        tool: "light_set",
        arguments: json!({"room": room, "on": true, "percent": percent}),
    }
}
