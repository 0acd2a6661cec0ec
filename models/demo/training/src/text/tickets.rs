//! Support tickets and reviews: choices that the text gives by name or by its tone.

use super::dates::Day;
use super::people::email;
use super::scene::{Fact, Node, Scene, compose, fact, fill, integer, text};
use super::values::Values;
use super::words;

const PRIORITIES: &[&str] = &["low", "medium", "high", "urgent"];
const STATES: &[&str] = &["open", "closed", "pending", "resolved"];

const OPENERS: &[&str] = &[
    "{customer} writes: {trouble}.",
    "{customer} reports that {trouble}.",
    "{customer} says that {trouble}.",
    "Ticket {id} from {customer}: {trouble}.",
    "Ticket {id}: {trouble}. Priority: {priority}.",
    "Ticket {id} is {state}.",
    "Hello, {trouble}. Please help! {customer}",
    "Hi, this is {customer}. Since {since}, {trouble}.",
    "Problem: {trouble}. Reported by {customer} on {since}.",
    "{priority} priority: {trouble}.",
    "Subject: {trouble}\nFrom: {email}\nPriority: {priority}",
    "The ticket {id} was opened by {customer} on {since}.",
];
const FOLLOWERS: &[&str] = &[
    "The ticket number is {id}.",
    "The priority is {priority}.",
    "This has {priority} priority.",
    "The status is {state}.",
    "The ticket is {state}.",
    "It is assigned to {agent}.",
    "{agent} takes care of it.",
    "Assigned to: {agent}.",
    "The product is {product}.",
    "It concerns the {product}.",
    "Answer to {email}.",
    "The customer can be reached at {email}.",
    "{users} users are affected.",
    "It is a {category} issue.",
    "Category: {category}.",
    "Opened on {since}.",
];

fn choice(
    values: &mut Values,
    slot: &'static str,
    keys: &'static [&'static str],
    options: &[&'static str],
) -> Fact {
    let value = *values.random.pick(options);
    fact(slot, keys, value, Node::Choice(value, options.to_vec()))
}

/// A customer's problem.
pub(crate) fn ticket(values: &mut Values) -> Scene {
    let customer = values.person();
    let priorities = if values.random.chance(30) {
        &PRIORITIES[..3]
    } else {
        PRIORITIES
    };
    let states = if values.random.chance(40) {
        &STATES[..2]
    } else {
        STATES
    };
    let issue = &[
        "issue",
        "problem",
        "subject",
        "description",
        "title",
        "summary",
        "message",
    ];
    let facts = vec![
        text(
            "customer",
            &["customer", "name", "reporter", "user", "customer_name"],
            customer.clone(),
        ),
        text("trouble", issue, values.from(words::TROUBLES)),
        text(
            "id",
            &["ticket_id", "id", "ticket", "ticket_number", "reference"],
            values.code(),
        ),
        choice(
            values,
            "priority",
            &["priority", "urgency", "severity"],
            priorities,
        ),
        choice(values, "state", &["status", "state"], states),
        choice(
            values,
            "category",
            &["category", "type", "topic"],
            &["billing", "technical", "account", "shipping"],
        ),
        text(
            "agent",
            &["assignee", "agent", "assigned_to", "owner"],
            values.person(),
        ),
        text("product", &["product", "item", "device"], values.goods()),
        email(values, &customer),
        integer(
            "users",
            &["affected_users", "users", "users_affected"],
            values.random.between(2, 9999),
        ),
        Day::any(values, 2020, 2029).fact(
            values,
            "since",
            &["date", "since", "opened", "created", "reported_on"],
        ),
    ];
    compose(&mut values.random, facts, OPENERS, FOLLOWERS)
}

const GOOD: &str = "I love this {thing}.|The {thing} is great.|Excellent {thing}, I am very happy.|Great {thing}, works perfectly.\
|The {thing} is wonderful and easy to use.|Best {thing} I ever had!|Fantastic {thing}.|I am delighted with the {thing}.\
|This {thing} is amazing!|The {thing} works very well.|Very good {thing}, I recommend it.|A perfect {thing}.";
const BAD: &str = "I hate this {thing}.|The {thing} is terrible.|Awful {thing}, it broke after a day.|Very bad {thing}, do not buy it.\
|The {thing} does not work.|Worst {thing} ever!|Horrible {thing}.|I am disappointed by the {thing}.|This {thing} is useless.\
|The {thing} arrived broken and I want my money back.|A poor {thing}, a waste of money.|I am very unhappy with the {thing}.";
const FAIR: &str = "The {thing} is okay.|The {thing} is fine, nothing special.|An average {thing}.|The {thing} is neither good nor bad.\
|The {thing} does its job.|It is a {thing}, what should I say.|The {thing} is acceptable.|Not great, not bad: a normal {thing}.";

/// Somebody's opinion of a thing.
pub(crate) fn review(values: &mut Values) -> Scene {
    let (list, mood, stars) = match values.random.below(5) {
        0 | 1 => (GOOD, "positive", values.random.between(4, 5)),
        2 | 3 => (BAD, "negative", values.random.between(1, 2)),
        _ => (FAIR, "neutral", 3),
    };
    let sentences: Vec<&str> = list.split('|').collect();
    let options = ["positive", "negative", "neutral"];
    let options = if mood != "neutral" && values.random.chance(30) {
        &options[..2]
    } else {
        &options[..]
    };
    let pleased = mood == "positive";
    let mut facts = vec![
        text("thing", &["product", "item", "name", "subject"], values.goods()),
        fact(
            "mood",
            &["sentiment", "mood", "tone", "opinion"],
            "",
            Node::Choice(mood, options.to_vec()),
        ),
    ];
    if mood != "neutral" {
        facts.push(fact(
            "recommended",
            &["recommended", "is_positive", "positive"],
            "",
            Node::Flag(pleased),
        ));
    }
    let author = text("author", &["author", "reviewer", "name", "user"], values.person());
    let rating = integer("rating", &["rating", "stars", "score"], stars);
    let sentence: &str = values.random.pick::<&str>(&sentences);
    let mut text = fill(sentence, &facts);
    if values.random.chance(50) {
        let patterns = [
            "{rating} stars.",
            "{rating} out of 5.",
            "Rating: {rating}/5.",
            "I give it {rating} stars.",
        ];
        text = format!(
            "{text} {}",
            fill(
                values.random.pick::<&str>(&patterns),
                std::slice::from_ref(&rating)
            )
        );
        facts.push(rating);
    }
    if values.random.chance(40) {
        let patterns = [
            "{author} writes: ",
            "Review by {author}: ",
            "{author}: ",
            "{author} says: ",
        ];
        text = format!(
            "{}{text}",
            fill(
                values.random.pick::<&str>(&patterns),
                std::slice::from_ref(&author)
            )
        );
        facts.push(author);
    }
    Scene {
        text,
        said: facts,
        unsaid: Vec::new(),
    }
}
