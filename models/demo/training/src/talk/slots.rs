//! Parameters of tools: for each its keys, its value, and the words by which a wish gives it.

use crate::text::dates::{Clock, Day};
use crate::text::people::listed;
use crate::text::scene::{Fact, Node, fact, integer, text};
use crate::text::values::Values;
use crate::text::words;

/// A parameter with a value, and the ways to say it: `{}` stands for the words of the value.
struct Slot {
    /// Keys and value.
    fact: Fact,
    /// How a wish says it.
    said: &'static [&'static str],
}

type Draw = fn(&mut Values) -> Slot;

/// Every kind of parameter.
const DRAWS: &[Draw] = &[
    code, code, person, city, day, time, amount, count, people, email, phone, title, subject, priority,
    color, size, urgent, note, reason, tags, address, language, format, unit, percent, company, days,
];

/// `count` different parameters, each with one way to say it.
pub(crate) fn draw(values: &mut Values, count: usize) -> Vec<(Fact, &'static str)> {
    let mut drawn: Vec<(Fact, &'static str)> = Vec::new();
    while drawn.len() < count {
        let draw = *values.random.pick(DRAWS);
        let Slot { fact, said } = draw(values);
        let said = *values.random.pick(said);
        let taken = |(other, way): &(Fact, &str)| other.slot == fact.slot || *way == said;
        if !drawn.iter().any(taken) {
            drawn.push((fact, said));
        }
    }
    drawn
}

fn slot(fact: Fact, said: &'static [&'static str]) -> Slot {
    Slot { fact, said }
}

fn choice(
    values: &mut Values,
    name: &'static str,
    keys: &'static [&'static str],
    options: &[&'static str],
) -> Fact {
    let value = *values.random.pick(options);
    fact(name, keys, value, Node::Choice(value, options.to_vec()))
}

fn code(values: &mut Values) -> Slot {
    let keys = &["id", "number", "code", "reference", "identifier", "key"];
    let said = &[
        " {}",
        " number {}",
        " with the number {}",
        " with id {}",
        " (id {})",
        " no. {}",
    ];
    slot(text("code", keys, values.code()), said)
}

fn person(values: &mut Values) -> Slot {
    let name = if values.random.chance(30) {
        values.first()
    } else {
        values.person()
    };
    let keys = &[
        "name", "person", "customer", "owner", "user", "who", "assignee", "contact",
    ];
    slot(text("person", keys, name), &[" for {}", " of {}", " with {}"])
}

fn company(values: &mut Values) -> Slot {
    let keys = &["company", "vendor", "supplier", "provider", "store"];
    slot(text("company", keys, values.company()), &[" from {}", " at {}"])
}

fn city(values: &mut Values) -> Slot {
    let keys = &["city", "location", "place", "town", "region"];
    slot(text("city", keys, values.city()), &[" in {}", " near {}"])
}

fn day(values: &mut Values) -> Slot {
    let day = Day::any(values, 2022, 2030);
    let keys = &["date", "day", "due_date", "deadline", "on", "when"];
    slot(day.fact(values, "day", keys), &[" on {}", " by {}", " for {}"])
}

fn time(values: &mut Values) -> Slot {
    let time = Clock::any(values, 6, 22);
    slot(
        time.fact(values, "time", &["time", "at", "start_time", "hour"]),
        &[" at {}"],
    )
}

fn amount(values: &mut Values) -> Slot {
    let amount = values.amount();
    let keys = &["amount", "price", "cost", "budget", "limit", "value"];
    let said = &[
        " for ${}",
        " with an amount of {}",
        " worth ${}",
        " over {} dollars",
    ];
    slot(fact("amount", keys, amount.clone(), Node::Number(amount)), said)
}

fn percent(values: &mut Values) -> Slot {
    let keys = &["percent", "percentage", "level", "brightness", "volume"];
    slot(
        integer("percent", keys, values.random.between(1, 100)),
        &[" to {} percent", " at {}%"],
    )
}

fn count(values: &mut Values) -> Slot {
    let keys = &[
        "count",
        "quantity",
        "number",
        "copies",
        "times",
        "limit",
        "max_results",
    ];
    let said = &[", {} in total", ", {} times", ", quantity {}", " ({} pieces)"];
    slot(integer("count", keys, values.random.between(2, 60)), said)
}

fn people(values: &mut Values) -> Slot {
    let keys = &["people", "guests", "persons", "party_size", "seats"];
    slot(
        integer("people", keys, values.random.between(1, 20)),
        &[" for {} people", " for {} guests"],
    )
}

fn days(values: &mut Values) -> Slot {
    let keys = &["days", "duration", "duration_days", "nights", "period"];
    slot(
        integer("days", keys, values.random.between(2, 40)),
        &[" for {} days", " over {} days"],
    )
}

fn email(values: &mut Values) -> Slot {
    let person = values.person();
    let keys = &["email", "to", "recipient", "address", "email_address"];
    slot(
        text("email", keys, values.email(&person)),
        &[" to {}", " and send it to {}"],
    )
}

fn phone(values: &mut Values) -> Slot {
    let keys = &["phone", "phone_number", "telephone", "mobile"];
    slot(
        text("phone", keys, values.phone()),
        &[", phone {}", " with the phone number {}"],
    )
}

fn title(values: &mut Values) -> Slot {
    let title = match values.random.below(3) {
        0 => values.gathering(),
        1 => values.goods(),
        _ => format!("{} {}", values.invented(), values.from(words::TOPICS)),
    };
    let keys = &["title", "name", "label", "filename", "query"];
    slot(
        text("title", keys, title),
        &[
            " called {}",
            " named {}",
            " titled \"{}\"",
            " \"{}\"",
            " with the title {}",
        ],
    )
}

fn subject(values: &mut Values) -> Slot {
    let topic = if values.random.chance(50) {
        values.from(words::TOPICS)
    } else {
        values.gathering()
    };
    let keys = &["topic", "subject", "theme", "about", "category"];
    slot(
        text("subject", keys, topic),
        &[" about {}", " on the topic of {}", " regarding {}"],
    )
}

fn priority(values: &mut Values) -> Slot {
    let fact = choice(
        values,
        "priority",
        &["priority", "urgency", "importance"],
        &["low", "medium", "high"],
    );
    slot(fact, &[" with {} priority", ", priority {}", " as {} priority"])
}

fn color(values: &mut Values) -> Slot {
    let fact = choice(
        values,
        "color",
        &["color", "colour"],
        &["red", "blue", "green", "white", "black", "yellow"],
    );
    slot(fact, &[" in {}", ", {} please", ", in the color {}"])
}

fn size(values: &mut Values) -> Slot {
    let fact = choice(
        values,
        "size",
        &["size", "format_size"],
        &["small", "medium", "large"],
    );
    slot(fact, &[" in size {}", ", size {}", " ({})"])
}

fn urgent(values: &mut Values) -> Slot {
    let keys = &["urgent", "express", "immediate", "rush"];
    let key = values.random.below(keys.len());
    let keys = &keys[key..=key];
    let flag = fact("urgent", keys, "", Node::Flag(true));
    let said: [&'static [&'static str]; 4] = [
        &[" urgently", ", it is urgent"],
        &[" by express", ", express"],
        &[" immediately", " right now"],
        &[" in a rush", ", as a rush job"],
    ];
    slot(flag, said[key])
}

fn note(values: &mut Values) -> Slot {
    let keys = &["note", "message", "comment", "text", "body", "description"];
    let said = &[
        " with the note: {}",
        " and say that {}",
        " with the message \"{}\"",
        ", note: {}",
    ];
    slot(text("note", keys, values.from(words::TROUBLES)), said)
}

fn reason(values: &mut Values) -> Slot {
    slot(
        text(
            "reason",
            &["reason", "cause", "why"],
            values.from(words::TROUBLES),
        ),
        &[" because {}", ", reason: {}"],
    )
}

fn tags(values: &mut Values) -> Slot {
    let mut items: Vec<String> = Vec::new();
    while items.len() < 2 + values.random.below(2) {
        let item = values.from(words::TOPICS);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    let words = listed(&items);
    let node = Node::List(items.into_iter().map(Node::Text).collect());
    slot(
        fact("tags", &["tags", "labels", "keywords", "topics"], words, node),
        &[" with the tags {}", ", tags {}", " tagged {}"],
    )
}

fn address(values: &mut Values) -> Slot {
    let (street, city) = (values.street(), values.city());
    let words = format!("{street}, {city}");
    let parts = vec![
        text("street", &["street", "line1", "street_address"], street),
        text("town", &["city", "town"], city),
    ];
    let keys = &["address", "delivery_address", "destination", "location"];
    slot(
        fact("address", keys, words, Node::Object(parts)),
        &[" to {}", " at {}", ", address {}"],
    )
}

fn language(values: &mut Values) -> Slot {
    let languages =
        "French|German|Spanish|Italian|Dutch|Polish|Japanese|Chinese|Swedish|Turkish|English|Greek";
    let keys = &["language", "lang", "target_language"];
    slot(
        text("language", keys, values.from(languages)),
        &[" in {}", " into {}"],
    )
}

fn format(values: &mut Values) -> Slot {
    let fact = choice(
        values,
        "format",
        &["format", "file_type", "output_format"],
        &["pdf", "csv", "json", "xlsx", "html"],
    );
    slot(fact, &[" as {}", " as a {} file", " in {} format"])
}

fn unit(values: &mut Values) -> Slot {
    let fact = choice(
        values,
        "unit",
        &["unit", "units"],
        &["kilometers", "miles", "meters", "hours", "minutes"],
    );
    slot(fact, &[" in {}", ", in {}"])
}
