//! Invents texts that belong to one of a few classes.
//!
//! Level 1 shows the class in plain words, level 2 has words of other classes beside it, and level 3 gives
//! rules with bounds and exceptions, and a case to which they apply.

use serde_json::json;

use super::draw::{Draw, Invented, clock, in_words};

/// A question, its classes, and the one that is right.
type Case = (String, Vec<&'static str>, &'static str);

const LEVEL_1: [fn(&mut Draw) -> Case; 4] = [headline, review, quantity, request];
const LEVEL_2: [fn(&mut Draw) -> Case; 3] = [ticket, mixed_review, intent];
const LEVEL_3: [fn(&mut Draw) -> Case; 5] = [parcel, incident, admission, loan, refund];

pub(super) fn task(draw: &mut Draw, level: u64) -> Invented {
    let case = match level {
        1 => LEVEL_1[draw.between(0, LEVEL_1.len() as i64 - 1) as usize],
        2 => LEVEL_2[draw.between(0, LEVEL_2.len() as i64 - 1) as usize],
        _ => LEVEL_3[draw.between(0, LEVEL_3.len() as i64 - 1) as usize],
    };
    let (text, mut classes, right) = case(draw);
    draw.shuffle(&mut classes);
    let schema = json!({
        "type": "object",
        "properties": {"label": {"enum": classes}},
        "required": ["label"],
        "additionalProperties": false,
    });
    Invented {
        prompt: format!("{text}\nGive one label: {}.", classes.join(", ")),
        form: ("schema", schema),
        answer: json!({"exact": right, "at": "/label"}),
    }
}

/// Draws one of these groups, and one of its texts.
fn drawn(draw: &mut Draw, groups: &[(&'static str, &[&'static str])]) -> (&'static str, &'static str) {
    let (class, texts) = groups[draw.between(0, groups.len() as i64 - 1) as usize];
    (class, draw.one(texts))
}

fn names_of(groups: &[(&'static str, &[&'static str])]) -> Vec<&'static str> {
    groups.iter().map(|it| it.0).collect()
}

fn headline(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 6] = [
        (
            "sport",
            &[
                "{C} beats {D} by three goals in the cup final",
                "Runner from {C} sets a record over 800 metres",
            ],
        ),
        (
            "finance",
            &[
                "Bank of {C} raises its interest rate by half a point",
                "Shares of the {C} tramways fall by a tenth",
            ],
        ),
        (
            "weather",
            &[
                "Heavy snow expected in {C} by the evening",
                "Storm over {C} moves on towards {D}",
            ],
        ),
        (
            "food",
            &[
                "Seven soups to cook while apples are cheap in {C}",
                "A baker in {C} shares the recipe of her rye bread",
            ],
        ),
        (
            "health",
            &[
                "Clinic in {C} offers free vaccinations against flu",
                "Study from {C}: short naps lower blood pressure",
            ],
        ),
        (
            "travel",
            &[
                "Night train from {C} to {D} returns in spring",
                "Ten quiet beaches an hour from {C}",
            ],
        ),
    ];
    let (class, text) = drawn(draw, &groups);
    let cities = draw.cities(2);
    let text = text.replace("{C}", cities[0]).replace("{D}", cities[1]);
    (
        format!("What is this headline about?\n\"{text}\""),
        names_of(&groups),
        class,
    )
}

const THINGS: [&str; 7] = [
    "kettle",
    "rucksack",
    "lamp",
    "tent",
    "keyboard",
    "bicycle pump",
    "raincoat",
];

fn review(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 3] = [
        (
            "positive",
            &[
                "I love this {T}. It works perfectly.",
                "The best {T} I ever had, and quick to arrive.",
            ],
        ),
        (
            "negative",
            &[
                "This {T} broke on the first day. A waste of money.",
                "Awful {T}. I sent it back at once.",
            ],
        ),
        (
            "neutral",
            &[
                "The {T} is grey and weighs what the page says.",
                "I bought the {T} in May. It came in a box.",
            ],
        ),
    ];
    let (class, text) = drawn(draw, &groups);
    let text = text.replace("{T}", draw.one(&THINGS));
    (
        format!("What does the writer of this review feel?\n\"{text}\""),
        names_of(&groups),
        class,
    )
}

fn quantity(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 6] = [
        ("length", &["metres", "miles", "millimetres"]),
        ("mass", &["kilograms", "grams", "tonnes"]),
        ("time", &["hours", "seconds", "weeks"]),
        ("volume", &["litres", "millilitres", "cubic metres"]),
        ("temperature", &["degrees Celsius", "kelvins"]),
        ("money", &["euros", "Swiss francs"]),
    ];
    let (class, unit) = drawn(draw, &groups);
    let number = draw.between(2, 900);
    (
        format!("Which quantity is \"{number} {unit}\"?"),
        names_of(&groups),
        class,
    )
}

fn request(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 4] = [
        (
            "switch on",
            &["Turn the {R} light on, please.", "I need light in the {R}."],
        ),
        (
            "switch off",
            &["Turn off the light in the {R}.", "The {R} can go dark now."],
        ),
        (
            "dim",
            &[
                "Make the light in the {R} a little weaker.",
                "Half as bright in the {R}, please.",
            ],
        ),
        (
            "ask",
            &[
                "Is the light in the {R} on?",
                "How bright is it in the {R} right now?",
            ],
        ),
    ];
    let (class, text) = drawn(draw, &groups);
    let text = text.replace(
        "{R}",
        draw.one(&["kitchen", "hall", "study", "bathroom", "cellar"]),
    );
    (
        format!("What should be done?\n\"{text}\""),
        names_of(&groups),
        class,
    )
}

fn ticket(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 5] = [
        (
            "billing",
            &[
                "I was charged twice for the same order, although it arrived and works.",
                "The parcel is here, but the invoice has the wrong amount on it.",
            ],
        ),
        (
            "shipping",
            &[
                "I paid a week ago, and the parcel has been in {C} for five days.",
                "The invoice is right, but when will the second box be delivered?",
            ],
        ),
        (
            "technical",
            &[
                "I do not want my money back; I only want it to start. The display stays black.",
                "It came on time, but the app crashes whenever I open the list of orders.",
            ],
        ),
        (
            "account",
            &[
                "The app runs well, but I cannot log in with my new address.",
                "Before I pay the next bill I want to change the name in my profile and my password.",
            ],
        ),
        (
            "returns",
            &[
                "Nothing is broken and the price was fair; the colour does not suit me, so how do I send it back?",
                "It was delivered in {C} yesterday. I would like another size in exchange.",
            ],
        ),
    ];
    let (class, text) = drawn(draw, &groups);
    let text = text.replace("{C}", draw.cities(1)[0]);
    let person = draw.person();
    let order = draw.between(1000, 9999);
    let text = format!("Which team should answer this message?\n\"{text} My order is {order}. {person}\"");
    (text, names_of(&groups), class)
}

fn mixed_review(draw: &mut Draw) -> Case {
    let good = [
        "the colour is lovely",
        "the shop was friendly",
        "it is light",
        "it was cheap",
    ];
    let bad = [
        "the box was dented",
        "the manual is poor",
        "it smells a little at first",
        "the wait was long",
    ];
    let thing = draw.one(&THINGS);
    let (good, bad) = (draw.one(&good), draw.one(&bad));
    let (text, class) = match draw.between(0, 3) {
        0 => (
            format!("True, {bad}. But for this {thing} I would wait again; I could not be happier with it."),
            "positive",
        ),
        1 => (
            format!(
                "I feared the worst, since {bad}. I was wrong: this {thing} is not bad at all, it is great."
            ),
            "positive",
        ),
        2 => (
            format!("Yes, {good}. That does not help when the {thing} fails at the one thing it is for."),
            "negative",
        ),
        _ => (
            format!("Everybody praises this {thing}, and {good}. I wish I could agree. Never again."),
            "negative",
        ),
    };
    let text = format!("Is the writer of this review content on the whole?\n\"{text}\"");
    (text, vec!["positive", "negative", "neutral"], class)
}

fn intent(draw: &mut Draw) -> Case {
    let groups: [(&str, &[&str]); 4] = [
        (
            "question",
            &[
                "Thank you for the tickets. One more thing: is the hall heated?",
                "I do not want to complain, I only wonder when the doors open.",
            ],
        ),
        (
            "complaint",
            &[
                "Can you imagine sitting behind a pillar for three hours at that price? We could not believe it.",
                "Thank you for nothing: the seats that we had booked were taken.",
            ],
        ),
        (
            "booking",
            &[
                "If row F is still free, which I hope, we take four seats there, please.",
                "Last year was a disaster, but let us try again: two tickets for Friday.",
            ],
        ),
        (
            "thanks",
            &[
                "I never asked a question that was answered so well. You made our evening!",
                "No, I do not need new tickets. I only want to say how kind your usher was.",
            ],
        ),
    ];
    let (class, text) = drawn(draw, &groups);
    let (person, city) = (draw.person(), draw.cities(1)[0]);
    let text = format!(
        "What is the purpose of this letter to a theatre?\n\"Dear theatre, {text} {person}, {city}\""
    );
    (text, names_of(&groups), class)
}

fn parcel(draw: &mut Draw) -> Case {
    let (weight, sides) = (
        draw.between(1, 34),
        [draw.between(10, 90), draw.between(10, 60), draw.between(5, 50)],
    );
    let sum: i64 = sides.iter().sum();
    let (is_liquid, is_abroad) = (draw.chance(20), draw.chance(30));
    let right = if is_liquid && is_abroad {
        "refused"
    } else if weight > 30 {
        "freight"
    } else if sum > 120 || weight > 15 {
        "large"
    } else if sum > 70 || is_abroad {
        "medium"
    } else {
        "small"
    };
    let text = format!(
        "Rules of a parcel service: liquids are refused if they go abroad. Otherwise what weighs more than 30 kg is freight. \
         Otherwise what weighs more than 15 kg, or whose three sides add up to more than 120 cm, is large. Otherwise what \
         goes abroad, or whose sides add up to more than 70 cm, is medium. All else is small.\n\
         Case: a box of {} by {} by {} cm with {}, {weight} kg, from {} to {}.",
        sides[0],
        sides[1],
        sides[2],
        if is_liquid { "bottles of oil" } else { "books" },
        draw.cities(1)[0],
        if is_abroad {
            "another country"
        } else {
            "a village in the same country"
        }
    );
    (
        text,
        vec!["small", "medium", "large", "freight", "refused"],
        right,
    )
}

fn incident(draw: &mut Draw) -> Case {
    let (users, total) = (draw.between(1, 100), draw.step(200, 900, 100));
    let affected = total * users / 100;
    let (is_data_lost, is_planned, has_way_around) = (draw.chance(20), draw.chance(15), draw.chance(40));
    let right = if is_planned {
        "P4"
    } else if is_data_lost {
        "P1"
    } else if 2 * affected >= total {
        if has_way_around { "P2" } else { "P1" }
    } else if affected > 20 {
        if has_way_around { "P3" } else { "P2" }
    } else {
        "P3"
    };
    let text = format!(
        "Priorities of incidents: what was planned is P4, whatever happens. Otherwise lost data are P1, with or without a way around. Otherwise an incident \
         is P1 if it affects at least half of all users, P2 if it affects more than 20 of them, and P3 otherwise; P1 and P2 \
         become one step less urgent if the users have a way around it.\n\
         Case: since {} the export {} for {affected} of {total} users. {} {}",
        clock(draw.step(360, 1200, 5)),
        if is_planned {
            "is switched off, as announced last week,"
        } else {
            "fails"
        },
        if is_data_lost {
            "Some of their entries are gone for good."
        } else {
            "Nothing is lost."
        },
        if has_way_around {
            "They can use the old export instead."
        } else {
            "Nothing else gives them the file."
        }
    );
    (text, vec!["P1", "P2", "P3", "P4"], right)
}

fn admission(draw: &mut Draw) -> Case {
    let age = draw.between(2, 80);
    let (is_student, is_monday, has_pass) = (age > 16 && draw.chance(40), draw.chance(20), draw.chance(15));
    let right = if has_pass || age < 6 {
        "free"
    } else if is_monday {
        "full"
    } else if !(16..65).contains(&age) || (is_student && age < 27) {
        "reduced"
    } else {
        "full"
    };
    let text = format!(
        "Prices of a museum: children under 6 and people with a yearly pass pay nothing. People under 16, from 65, and students \
         under 27 pay the reduced price, but not on Mondays. All others pay the full price.\n\
         Case: {}, {age} years old{}, comes on a {}{}.",
        draw.person(),
        if is_student { " and a student" } else { "" },
        if is_monday { "Monday" } else { "Thursday" },
        if has_pass {
            " with a yearly pass"
        } else {
            ", without a pass"
        }
    );
    (text, vec!["free", "reduced", "full"], right)
}

fn loan(draw: &mut Draw) -> Case {
    let (books, overdue, fees) = (draw.between(0, 9), draw.between(0, 2), draw.between(0, 14));
    let (is_reference, is_taken, is_teacher) = (draw.chance(20), draw.chance(30), draw.chance(25));
    let most = if is_teacher { 8 } else { 5 };
    let right = if is_reference {
        "read here"
    } else if overdue > 0 || fees > 10 {
        "refuse"
    } else if is_taken {
        "reserve"
    } else if books >= most {
        "refuse"
    } else {
        "lend"
    };
    let text = format!(
        "Rules of a library: reference books can only be read here. Otherwise nobody gets a book who has an overdue one or owes \
         more than 10 euros: refuse. Otherwise a book that is lent out is reserved. Otherwise it is lent, unless the reader \
         has 5 books already, or 8 in the case of teachers: refuse.\n\
         Case: {}, a {}, wants a {} that {}. The reader has borrowed {} so far, of which {} overdue, and owes {fees} euros.",
        draw.person(),
        if is_teacher { "teacher" } else { "gardener" },
        if is_reference { "reference book" } else { "novel" },
        if is_taken {
            "is lent out until May"
        } else {
            "is on the shelf"
        },
        in_words(books + overdue),
        match overdue {
            0 => "none is".to_owned(),
            1 => "one is".to_owned(),
            more => format!("{} are", in_words(more)),
        }
    );
    // The overdue books are among those that the reader has; they are refused either way.
    (text, vec!["lend", "reserve", "read here", "refuse"], right)
}

fn refund(draw: &mut Draw) -> Case {
    let days = draw.between(1, 60);
    let (is_defect, is_opened, is_sale) = (draw.chance(30), draw.chance(50), draw.chance(25));
    let right = if is_defect {
        if days <= 30 { "money" } else { "repair" }
    } else if is_sale || days > 30 {
        "nothing"
    } else if is_opened {
        "voucher"
    } else {
        "money"
    };
    let text = format!(
        "Rules of a shop: for what is defective one gets the money back within 30 days and a repair after that, even for goods \
         on sale. For other goods, those on sale excepted, one gets the money back within 30 days if the box is closed, and a \
         voucher if it is open. Otherwise one gets nothing.\n\
         Case: {} brings back a {}{} after {days} days. {} The box {}.",
        draw.person(),
        draw.one(&THINGS),
        if is_sale { " from the sale" } else { "" },
        if is_defect {
            "It has never worked."
        } else {
            "It works, but is not needed any more."
        },
        if is_opened {
            "was opened"
        } else {
            "is still closed"
        }
    );
    (text, vec!["money", "voucher", "repair", "nothing"], right)
}
