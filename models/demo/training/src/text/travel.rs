//! Flights, tables, rooms and the weather.

use super::dates::{Clock, Day, weekday};
use super::people::nest;
use super::scene::{Node, Scene, compose, fact, integer, text};
use super::values::Values;

/// A reservation of a table or a room.
pub(crate) fn reservation(values: &mut Values) -> Scene {
    let name = values.person();
    let smoking = values.random.chance(50);
    let rooms = vec!["single", "double", "suite"];
    let room = *values.random.pick(&rooms);
    let day = Day::any(values, 2022, 2030);
    let time = Clock::any(values, 11, 22);
    let facts = vec![
        text(
            "name",
            &["name", "guest", "customer", "guest_name", "booked_by"],
            name,
        ),
        integer(
            "people",
            &["people", "party_size", "guests", "number_of_people", "seats"],
            values.random.between(1, 20),
        ),
        day.fact(values, "date", &["date", "day", "check_in", "arrival"]),
        time.fact(values, "time", &["time", "at", "reservation_time"]),
        text(
            "place",
            &["restaurant", "hotel", "place", "venue"],
            values.company(),
        ),
        text("city", &["city", "location"], values.city()),
        integer(
            "nights",
            &["nights", "number_of_nights", "stay"],
            values.random.between(1, 30),
        ),
        fact("room", &["room_type", "room"], room, Node::Choice(room, rooms)),
        text("phone", &["phone", "phone_number", "telephone"], values.phone()),
        fact(
            "smoking",
            &["smoking"],
            if smoking { "Smoking" } else { "Non-smoking" },
            Node::Flag(smoking),
        ),
    ];
    let openers = [
        "Book a table for {people} at {place} on {date} at {time}.",
        "A table for {people} people under the name {name}, please.",
        "I'd like to reserve a table for {people} at {time} on {date}.",
        "{name} booked a {room} room in {city} for {nights} nights.",
        "{name} stays {nights} nights at {place} in {city}.",
        "Reservation for {name}, {people} guests, {date}, {time}.",
        "Please reserve a {room} room from {date} for {nights} nights.",
    ];
    let followers = [
        "The name is {name}.",
        "We arrive on {date}.",
        "We come at {time}.",
        "The hotel is {place} in {city}.",
        "My phone number is {phone}.",
        "{smoking}, please.",
        "There will be {people} of us.",
    ];
    compose(&mut values.random, facts, &openers, &followers)
}

/// A flight or a train.
pub(crate) fn journey(values: &mut Values) -> Scene {
    let day = Day::any(values, 2022, 2030);
    let (leaves, arrives) = (Clock::any(values, 5, 13), Clock::any(values, 14, 23));
    let price = values.amount();
    let classes = vec!["economy", "business", "first"];
    let class = *values.random.pick(&classes);
    let facts = vec![
        text(
            "from",
            &["from", "origin", "departure_city", "source", "start"],
            values.city(),
        ),
        text(
            "to",
            &["to", "destination", "arrival_city", "target"],
            values.city(),
        ),
        day.fact(values, "date", &["date", "departure_date", "day", "travel_date"]),
        leaves.fact(
            values,
            "leaves",
            &["departure", "departure_time", "leaves_at", "time"],
        ),
        arrives.fact(values, "arrives", &["arrival", "arrival_time", "arrives_at"]),
        text(
            "number",
            &["flight", "flight_number", "number", "train"],
            values.code(),
        ),
        text(
            "passenger",
            &["passenger", "name", "traveler", "traveller"],
            values.person(),
        ),
        fact(
            "price",
            &["price", "fare", "cost"],
            price.clone(),
            Node::Number(price),
        ),
        fact(
            "class",
            &["class", "cabin", "cabin_class"],
            class,
            Node::Choice(class, classes),
        ),
        integer(
            "people",
            &["passengers", "travelers", "tickets", "adults"],
            values.random.between(1, 12),
        ),
    ];
    let openers = [
        "{passenger} flies from {from} to {to} on {date}.",
        "I want to fly from {from} to {to} on {date}.",
        "Flight {number} from {from} to {to} leaves at {leaves}.",
        "Flight {number} goes from {from} to {to}.",
        "Book {people} tickets from {from} to {to}.",
        "Find a train to {to} from {from} on {date}.",
        "The train from {from} leaves at {leaves} and reaches {to} at {arrives}.",
        "From: {from}. To: {to}. Date: {date}.",
    ];
    let followers = [
        "It leaves at {leaves}.",
        "It arrives at {arrives}.",
        "The fare is ${price}.",
        "In {class} class.",
        "The flight number is {number}.",
        "The passenger is {passenger}.",
        "There are {people} of us.",
    ];
    let mut scene = compose(&mut values.random, facts, &openers, &followers);
    if values.random.chance(15) {
        nest(&mut scene, "route", &["route", "trip"], &["from", "to"]);
    }
    scene
}

/// What the sky does.
pub(crate) fn weather(values: &mut Values) -> Scene {
    let skies = vec!["sunny", "cloudy", "rainy", "snowy", "windy", "foggy"];
    let sky = *values.random.pick(&skies);
    let degrees = values.random.between(-15, 40);
    let wind = values.amount();
    let raining = sky == "rainy";
    let mut facts = vec![
        text("city", &["city", "location", "place", "town"], values.city()),
        integer(
            "degrees",
            &["temperature", "degrees", "temp", "temperature_celsius"],
            degrees,
        ),
        fact(
            "sky",
            &["condition", "weather", "conditions", "sky"],
            sky,
            Node::Choice(sky, skies),
        ),
        integer(
            "humidity",
            &["humidity", "humidity_percent"],
            values.random.between(10, 99),
        ),
        fact("wind", &["wind", "wind_speed"], wind.clone(), Node::Number(wind)),
        text("weekday", &["day", "weekday", "when"], weekday(values)),
        fact(
            "unit",
            &["unit"],
            "Celsius",
            Node::Choice("celsius", vec!["celsius", "fahrenheit"]),
        ),
        integer(
            "low",
            &["low", "min", "night_temperature"],
            values.random.between(-20, 20),
        ),
    ];
    if values.random.chance(30) {
        facts[2].node = Node::Text(sky.to_owned());
    } else if values.random.chance(20) {
        facts[2].keys = &["raining", "is_raining"];
        facts[2].node = Node::Flag(raining);
    }
    let openers = [
        "It is {sky} in {city} and {degrees} degrees.",
        "The weather in {city} is {sky} with {degrees} degrees {unit}.",
        "In {city} it is {degrees} degrees and {sky}.",
        "{city}: {sky}, {degrees} degrees.",
        "On {weekday} it will be {sky} in {city}.",
        "It is {degrees} degrees in {city}.",
    ];
    let followers = [
        "The humidity is {humidity} percent.",
        "The wind blows at {wind} km/h.",
        "At night it will be {low} degrees.",
        "This is for {weekday}.",
    ];
    compose(&mut values.random, facts, &openers, &followers)
}
