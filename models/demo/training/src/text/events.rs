//! Events and meetings: what, when, where and with whom.

use super::dates::{Clock, Day, moment, weekday};
use super::people::{list, nest};
use super::scene::{Fact, Node, Scene, compose, fact, integer, text};
use super::values::{Values, capital};

const OPENERS: &[&str] = &[
    "{people} are going to a {event} on {date}.",
    "{people} are going to a {event} on {weekday}.",
    "{people} will attend the {event} on {date}.",
    "The {event} is on {date} at {start}.",
    "The {event} takes place on {date} in {city}.",
    "The {event} takes place on {moment} in {city}.",
    "The {event} starts on {moment}.",
    "The {event} takes place in {place} on {date} from {start} to {end}.",
    "The {event} starts at {start} and ends at {end}.",
    "{host} invites you to the {event} on {date} at {start} in {place}.",
    "{host} is organizing a {event} in {city}.",
    "Let's have a {event} on {weekday} at {start}.",
    "Schedule a {event} with {people} on {date} at {start}.",
    "Schedule a {event} with {people} for {date}.",
    "Please book {place} for the {event} on {date}.",
    "Meeting: {event}. Date: {date}. Time: {start}.",
    "Event: {event}\nWhere: {place}\nWhen: {date}, {start}",
    "On {date} there will be a {event} in {city}.",
    "Reminder: {event} at {start} on {weekday}.",
    "Join us for the {event} in {place}, {city}.",
];
const FOLLOWERS: &[&str] = &[
    "It is on {date}.",
    "It starts at {start}.",
    "It ends at {end}.",
    "It lasts {minutes} minutes.",
    "It takes place in {place}.",
    "The venue is {place} in {city}.",
    "It will be held in {city}.",
    "{people} will be there.",
    "Attendees: {people}.",
    "Participants are {people}.",
    "The organizer is {host}.",
    "It is hosted by {host}.",
    "About {guests} people are expected.",
    "Tickets cost ${price}.",
    "It takes place {online}.",
];

fn people(values: &mut Values) -> Fact {
    let full = values.random.chance(40);
    let keys = &["participants", "attendees", "people", "guests", "names"];
    list(values, "people", keys, 3, |values| {
        if full { values.person() } else { values.first() }
    })
}

fn place(values: &mut Values) -> String {
    match values.random.below(4) {
        0 => format!("Room {}", values.random.between(1, 499)),
        1 => format!("room {}", values.random.between(1, 499)),
        2 => format!("{} Hall", values.last()),
        _ => format!("Hotel {}", values.invented()),
    }
}

/// A meeting, a party, a conference.
pub(crate) fn event(values: &mut Values) -> Scene {
    let price = values.amount();
    let online = values.random.chance(50);
    let day = Day::any(values, 2020, 2030);
    let (start, end) = (Clock::any(values, 7, 15), Clock::any(values, 16, 23));
    let moment = moment(
        values,
        day,
        start,
        "moment",
        &["start", "starts_at", "datetime", "date_time", "time", "when"],
    );
    let facts = vec![
        moment,
        text(
            "event",
            &["event", "name", "title", "event_name", "subject", "meeting"],
            values.gathering(),
        ),
        day.fact(values, "date", &["date", "day", "event_date", "when"]),
        text("weekday", &["day", "date", "weekday", "when"], weekday(values)),
        start.fact(values, "start", &["start", "start_time", "time", "begins_at"]),
        end.fact(values, "end", &["end", "end_time", "ends_at"]),
        people(values),
        text(
            "host",
            &["organizer", "host", "organiser", "contact"],
            values.person(),
        ),
        text("place", &["venue", "location", "place", "room"], place(values)),
        text("city", &["city", "town"], values.city()),
        integer(
            "minutes",
            &["duration", "duration_minutes", "minutes", "length"],
            values.random.between(2, 36) * 5,
        ),
        integer(
            "guests",
            &["guests", "expected_guests", "attendance", "capacity"],
            values.random.between(3, 900),
        ),
        fact(
            "price",
            &["price", "ticket_price", "cost"],
            price.clone(),
            Node::Number(price),
        ),
        fact(
            "online",
            &["online", "is_online", "remote"],
            if online { "online" } else { "on site" },
            Node::Flag(online),
        ),
    ];
    let mut scene = compose(&mut values.random, facts, OPENERS, FOLLOWERS);
    scene.text = capital(&scene.text);
    if values.random.chance(15) {
        nest(
            &mut scene,
            "time",
            &["time", "schedule", "when"],
            &["date", "start", "end"],
        );
        nest(&mut scene, "location", &["location", "where"], &["place", "city"]);
    }
    scene
}
