//! People and how to reach them.

use super::dates::Day;
use super::scene::{Fact, Node, Scene, compose, fact, fill, integer, text};
use super::values::Values;
use super::words;

const NAME: &[&str] = &["name", "full_name", "person", "person_name"];
const AGE: &[&str] = &["age", "years", "age_years"];
const CITY: &[&str] = &["city", "town", "location", "home_city", "residence", "place"];
const COUNTRY: &[&str] = &["country", "nationality", "home_country"];
const JOB: &[&str] = &[
    "job",
    "occupation",
    "profession",
    "job_title",
    "role",
    "title",
    "position",
];
const COMPANY: &[&str] = &["company", "employer", "organization", "workplace"];
const EMAIL: &[&str] = &["email", "email_address", "mail", "contact_email"];
const STREET: &[&str] = &["street", "street_address", "address", "address_line"];
const PHONE: &[&str] = &["phone", "phone_number", "telephone", "tel", "mobile"];
const BORN: &[&str] = &["birthday", "birth_date", "date_of_birth", "born", "birthdate"];
const HOBBIES: &[&str] = &["hobbies", "interests", "likes"];
const LANGUAGES: &[&str] = &["languages", "spoken_languages", "speaks"];
const MARRIED: &[&str] = &["married", "is_married"];
const CHILDREN: &[&str] = &["children", "number_of_children", "kids"];

const OPENERS: &[&str] = &[
    "{name} is {age} years old and lives in {city}.",
    "{name} is {age} years old and lives in {city}.",
    "{name} is {age} and lives in {city}.",
    "{name} is a {age}-year-old {job} from {city}.",
    "{name}, {age}, lives in {city}.",
    "{name} ({age}) works as a {job} in {city}.",
    "{name} is {age} years old.",
    "{name} lives in {city}, {country}.",
    "{name} lives in {city}.",
    "{name} is a {job} at {company}.",
    "{name} works at {company} as a {job}.",
    "{name} works for {company}.",
    "My name is {name}, I am {age} and I live in {city}.",
    "I'm {name}, a {job} from {city}.",
    "Hi, I'm {name}. I am {age} years old and I come from {city}.",
    "Meet {name}, a {job} who is {age} years old.",
    "Contact: {name}, {email}, {phone}.",
    "You can reach {name} at {email}.",
    "Please write to {name} at {email} or call {phone}.",
    "The {job} {name} was born on {born} in {city}.",
    "{name} was born in {city} on {born}.",
    "Name: {name}. Age: {age}. City: {city}.",
    "Name: {name}, job: {job}, company: {company}.",
    "name: {name}\nage: {age}\nemail: {email}",
    "A {age}-year-old {job} named {name} lives in {city}.",
    "From {city}, {country}: {name}, aged {age}.",
    "In {city} lives a {job} called {name}.",
    "{name} lives at {street} in {city}.",
    "{name}, {street}, {zip} {city}, {country}.",
    "{name}\n{street}\n{city}, {zip}",
    "At {age}, {name} is the youngest {job} at {company}.",
];

const FOLLOWERS: &[&str] = &[
    "{_They} {_is} {age} years old.",
    "{_They} live{_s} in {city}.",
    "{_They} come{_s} from {country}.",
    "The address is {street}, {city}.",
    "Address: {street}, {zip} {city}.",
    "{_They} work{_s} as a {job}.",
    "{_They} work{_s} for {company}.",
    "{_They} {_is} employed by {company} as a {job}.",
    "{_Their} email is {email}.",
    "{_Their} email address is {email} and {_their} phone number is {phone}.",
    "Phone: {phone}.",
    "Email: {email}.",
    "Call {phone}.",
    "{_They} {_was} born on {born}.",
    "{_Their} birthday is {born}.",
    "{_Their} hobbies are {hobbies}.",
    "{_They} like{_s} {hobbies}.",
    "{_They} speak{_s} {languages}.",
    "{_They} {_is} {married}.",
    "{_They} {_has} {children} children.",
];

/// `items` as a text lists them: `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A fact that is a list of different words.
pub(super) fn list(
    values: &mut Values,
    slot: &'static str,
    keys: &'static [&'static str],
    most: usize,
    mut draw: impl FnMut(&mut Values) -> String,
) -> Fact {
    let mut items: Vec<String> = Vec::new();
    for _ in 0..1 + values.random.below(most) {
        let item = draw(values);
        if !items.contains(&item) {
            items.push(item);
        }
    }
    fact(
        slot,
        keys,
        listed(&items),
        Node::List(items.into_iter().map(Node::Text).collect()),
    )
}

fn grammar(values: &mut Values, first_person: bool) -> Vec<Fact> {
    let forms: [&str; 7] = match (first_person, values.random.below(2)) {
        (true, _) => ["I", "My", "my", "am", "was", "have", ""],
        (false, 0) => ["He", "His", "his", "is", "was", "has", "s"],
        (false, _) => ["She", "Her", "her", "is", "was", "has", "s"],
    };
    let slots = ["_They", "_Their", "_their", "_is", "_was", "_has", "_s"];
    slots
        .into_iter()
        .zip(forms)
        .map(|(slot, form)| text(slot, &[], form))
        .collect()
}

/// Everything that may be said of one person.
fn facts(values: &mut Values) -> Vec<Fact> {
    let name = values.person();
    let job = values.from(words::JOBS);
    let married = values.random.chance(50);
    let languages =
        "English|French|German|Spanish|Italian|Dutch|Polish|Arabic|Hindi|Japanese|Chinese|Swedish|Turkish";
    vec![
        integer("age", AGE, values.random.between(4, 99)),
        text("city", CITY, values.city()),
        text("country", COUNTRY, values.country()),
        text("job", JOB, job),
        text("company", COMPANY, values.company()),
        email(values, &name),
        text("street", STREET, values.street()),
        text(
            "zip",
            &["zip", "zip_code", "postal_code", "postcode"],
            values.random.between(10_000, 99_999).to_string(),
        ),
        text("phone", PHONE, values.phone()),
        Day::any(values, 1930, 2015).fact(values, "born", BORN),
        list(values, "hobbies", HOBBIES, 3, |values| values.from(words::TOPICS)),
        list(values, "languages", LANGUAGES, 3, |values| values.from(languages)),
        fact(
            "married",
            MARRIED,
            if married { "married" } else { "not married" },
            Node::Flag(married),
        ),
        integer("children", CHILDREN, values.random.between(2, 9)),
        text("name", NAME, name),
    ]
}

/// One person; now and then with the place or the contact as an object of its own.
pub(crate) fn person(values: &mut Values) -> Scene {
    let mut facts = facts(values);
    let name = facts.pop().expect("the list ends with the name");
    facts.insert(0, name);
    let opener = *values.random.pick(OPENERS);
    let said = grammar(values, opener.contains("I am") || opener.contains("I'm"));
    facts.extend(said);
    let mut scene = compose(&mut values.random, facts, &[opener], FOLLOWERS);
    scene.unsaid.retain(|fact| !fact.slot.starts_with('_'));
    if values.random.chance(15) {
        split_name(&mut scene);
    }
    if values.random.chance(20) {
        nest(
            &mut scene,
            "address",
            &["address", "home", "location"],
            &["city", "country"],
        );
        nest(
            &mut scene,
            "contact",
            &["contact", "contact_info", "contact_details"],
            &["email", "phone"],
        );
        nest(
            &mut scene,
            "work",
            &["work", "employment", "current_job"],
            &["job", "company"],
        );
    }
    scene
}

/// Asks for the parts of a name, if it has two.
fn split_name(scene: &mut Scene) {
    let Some(place) = scene.said.iter().position(|fact| fact.slot == "name") else {
        return;
    };
    let Some((first, last)) = scene.said[place].words.split_once(' ') else {
        return;
    };
    if last.contains(' ') || first.ends_with('.') {
        return;
    }
    let first = text("first", &["first_name", "given_name", "forename"], first);
    let last = text("last", &["last_name", "family_name", "surname"], last);
    scene.said.splice(place..=place, [first, last]);
}

/// The fact that mail reaches `person` at an address.
pub(super) fn email(values: &mut Values, person: &str) -> Fact {
    let address = values.email(person);
    let node = match values.random.chance(30) {
        true => Node::Formatted("email", address.clone(), address.clone()),
        false => Node::Text(address.clone()),
    };
    fact("email", EMAIL, address, node)
}

/// Puts the facts of `slots` into an object, if the text says at least two of them.
pub(super) fn nest(scene: &mut Scene, slot: &'static str, keys: &'static [&'static str], slots: &[&str]) {
    let said = std::mem::take(&mut scene.said);
    let (inner, mut outer): (Vec<Fact>, Vec<Fact>) =
        said.into_iter().partition(|fact| slots.contains(&fact.slot));
    if inner.len() < 2 {
        outer.extend(inner);
    } else {
        outer.push(fact(slot, keys, "", Node::Object(inner)));
    }
    scene.said = outer;
}

/// All rows of a list have one schema, so a format that one row leaves open is left open by all.
fn alike(rows: &mut [Vec<Fact>]) {
    for fact in rows.iter_mut().flatten() {
        if let Node::Formatted("email", _, words) = &fact.node {
            fact.node = Node::Text(words.clone());
        }
    }
}

/// Several people in one text.
pub(crate) fn group(values: &mut Values) -> Scene {
    let sentence = *values.random.pick(&[
        "{name} is {age} years old and lives in {city}.",
        "{name} ({age}) lives in {city}.",
        "{name} is a {job} from {city}.",
        "{name} is {age}.",
        "{name}, {job}, {email}.",
        "- {name}, {age}, {city}",
        "{name} works as a {job} at {company}.",
        "{name}: {phone}.",
    ]);
    let mut sentences = Vec::new();
    let mut rows = Vec::new();
    for _ in 0..2 + values.random.below(3) {
        let facts: Vec<Fact> = facts(values);
        sentences.push(fill(sentence, &facts));
        let mut row: Vec<Fact> = facts
            .into_iter()
            .filter(|fact| sentence.contains(&format!("{{{}}}", fact.slot)))
            .collect();
        row.rotate_right(1);
        rows.push(row);
    }
    alike(&mut rows);
    let keys: &[&str] = &["people", "persons", "contacts", "employees", "members", "users"];
    let separator = if sentence.starts_with('-') { "\n" } else { " " };
    let people = fact("people", keys, "", Node::Rows(rows));
    Scene {
        text: sentences.join(separator),
        said: vec![people],
        unsaid: Vec::new(),
    }
}
