//! Texts about orders of goods, and flats to let.

use serde_json::{Value, json};

use super::draw::{Day, Draw, hundredths, in_words, money};
use super::shape::{Document, Shape, list, or_null};

const PRODUCTS: [&str; 9] = [
    "desk lamp",
    "teapot",
    "wool blanket",
    "pencil case",
    "garden hose",
    "wall clock",
    "bread knife",
    "picture frame",
    "door mat",
];

/// An article, how many of it, and its price in hundredths.
type Item = (&'static str, i64, i64);

fn number(draw: &mut Draw) -> String {
    format!("{}-{}", draw.one(&["A", "KX", "T"]), draw.between(1000, 9999))
}

fn items(draw: &mut Draw, count: i64) -> Vec<Item> {
    let products = draw.some(&PRODUCTS, count as usize);
    products
        .into_iter()
        .map(|product| (product, draw.between(2, 9), draw.between(300, 9000)))
        .collect()
}

pub(super) fn order_line(draw: &mut Draw) -> Document {
    let (order, customer, day) = (number(draw), draw.person(), draw.day(2025));
    let (product, quantity, _) = items(draw, 1)[0];
    let on = day.spelled(draw, 1);
    Document {
        text: format!(
            "On {on} {customer} placed order {order} for {quantity} pieces of the article \"{product}\"."
        ),
        fields: vec![
            ("order", "", Shape::Text),
            ("customer", "", Shape::Text),
            ("date", "", Shape::Date),
            ("article", "", Shape::Text),
            ("quantity", "", Shape::Whole),
        ],
        facts: json!({
            "order": order, "customer": customer, "date": day.iso(), "article": product, "quantity": quantity,
        }),
    }
}

pub(super) fn order(draw: &mut Draw, level: u64) -> Document {
    let (order, customer, day) = (number(draw), draw.person(), draw.day(2025));
    let count = if level == 3 { draw.between(3, 4) } else { 2 };
    let items = items(draw, count);
    let city = draw.chance(50).then(|| draw.cities(1)[0]);
    let text = order_text(draw, level, (&order, &customer, day), &items, city);
    let items: Vec<Value> = items
        .iter()
        .map(|it| json!({"article": it.0, "quantity": it.1, "price": hundredths(it.2)}))
        .collect();
    let item = vec![
        ("article", "", Shape::Text),
        ("quantity", "", Shape::Whole),
        ("price", "of one piece", Shape::Number),
    ];
    Document {
        text,
        fields: vec![
            ("order", "its number", Shape::Text),
            ("customer", "", Shape::Text),
            ("date", "", Shape::Date),
            ("items", "", list(Shape::Object(item))),
            ("city", "where it is sent", or_null(Shape::Text)),
        ],
        facts: json!({"order": order, "customer": customer, "date": day.iso(), "items": items, "city": city}),
    }
}

fn order_text(
    draw: &mut Draw,
    level: u64,
    (order, customer, day): (&str, &str, Day),
    items: &[Item],
    city: Option<&str>,
) -> String {
    let (other, on) = (number(draw), day.spelled(draw, level));
    let told =
        |(product, quantity, price): &Item| format!("{quantity} × {product} at {} each", money(*price));
    let told: Vec<String> = items.iter().map(told).collect();
    let sent = city.map_or_else(String::new, |it| {
        format!(" Please send all of it to our house in {it}.")
    });
    if level == 2 {
        return format!(
            "{customer} ordered on {on}: {}.{sent} The number of the order is {order}. Order {other} was paid last year.",
            told.join("; ")
        );
    }
    let (product, quantity, _) = items[0];
    let before = quantity + draw.between(1, 4);
    let first = told[0].replacen(&quantity.to_string(), &before.to_string(), 1);
    format!(
        "Dear team, this is about {order}, not about {other}, which came in good order. I sent it off on {on}: {first}; {}. \
         Of the article \"{product}\" I now need only {}, so please change that; the rest stays.{sent} Yours, {customer}",
        told[1..].join("; "),
        in_words(quantity)
    )
}

const EXTRAS: [&str; 5] = ["balcony", "cellar", "garage", "garden", "lift"];

pub(super) fn flat_line(draw: &mut Draw) -> Document {
    let (city, rooms) = (draw.cities(1)[0], draw.between(2, 6));
    let (area, rent) = (draw.between(24, 140), draw.step(390, 1900, 10));
    Document {
        text: format!("Flat in {city}: {rooms} rooms, {area} square metres, rent {rent} euros a month."),
        fields: vec![
            ("city", "", Shape::Text),
            ("rooms", "", Shape::Whole),
            ("area", "in square metres", Shape::Number),
            ("rent", "in euros", Shape::Number),
        ],
        facts: json!({"city": city, "rooms": rooms, "area": area, "rent": rent}),
    }
}

/// What is known of a flat.
struct Flat {
    city: &'static str,
    day: Day,
    rooms: i64,
    area: i64,
    rent: i64,
    heating: Option<i64>,
    pets: Option<bool>,
    has: [&'static str; 2],
    lacks: &'static str,
}

pub(super) fn flat(draw: &mut Draw, level: u64) -> Document {
    let extras = draw.some(&EXTRAS, 3);
    let flat = Flat {
        city: draw.cities(1)[0],
        day: draw.day(2026),
        rooms: draw.between(2, 6),
        area: draw.between(24, 140),
        rent: draw.step(390, 1900, 10),
        heating: draw.chance(60).then(|| draw.step(40, 150, 10)),
        pets: [Some(true), Some(false), None][draw.between(0, 2) as usize],
        has: [extras[0], extras[1]],
        lacks: extras[2],
    };
    let text = flat_text(draw, level, &flat);
    let mut has = flat.has;
    has.sort_unstable();
    let size = vec![("rooms", "", Shape::Whole), ("area", "in m²", Shape::Number)];
    let costs = vec![
        ("rent", "", Shape::Number),
        ("heating", "", or_null(Shape::Number)),
    ];
    Document {
        text,
        fields: vec![
            ("city", "", Shape::Text),
            ("free_from", "", Shape::Date),
            ("size", "", Shape::Object(size)),
            ("costs", "in euros a month", Shape::Object(costs)),
            ("extras", "in alphabetical order", list(Shape::OneOf(&EXTRAS))),
            ("pets", "whether they are allowed", or_null(Shape::Flag)),
        ],
        facts: json!({
            "city": flat.city, "free_from": flat.day.iso(), "size": {"rooms": flat.rooms, "area": flat.area},
            "costs": {"rent": flat.rent, "heating": flat.heating}, "extras": has, "pets": flat.pets,
        }),
    }
}

fn flat_text(draw: &mut Draw, level: u64, flat: &Flat) -> String {
    let Flat {
        city,
        day,
        rooms,
        area,
        rent,
        heating,
        pets,
        has: [first, second],
        lacks,
    } = flat;
    let from = day.spelled(draw, level);
    let warm = heating.map_or_else(String::new, |it| format!(" Heating is another {it} euros."));
    let animals = match pets {
        Some(true) => " Dogs and cats are welcome.",
        Some(false) => " Sorry, no animals.",
        None => "",
    };
    if level == 2 {
        return format!(
            "To let in {city} from {from}: {rooms} rooms on {area} m², with {first} and {second}, for {rent} euros.\
             {warm}{animals}"
        );
    }
    format!(
        "My sister moves out, so her flat in {city} is free from {from}. She paid {} for it; you would pay {rent}.{warm} It has \
         {area} m² and, if you count the study as a room, {} rooms. There is a {first}, and the {second} is yours too, but we \
         have no {lacks}.{animals}",
        rent - draw.step(20, 90, 10),
        in_words(*rooms)
    )
}
