//! Orders and invoices: lists of items with quantities and prices.

use super::dates::Day;
use super::people::listed;
use super::scene::{Fact, Node, Scene, compose, fact, fill, integer, text};
use super::values::Values;

const ITEMS: &[&str] = &[
    "items",
    "products",
    "order_items",
    "line_items",
    "goods",
    "articles",
];
const THING: &[&str] = &["name", "product", "item", "product_name", "description", "title"];
const QUANTITY: &[&str] = &["quantity", "amount", "count", "qty", "number", "units"];
const PRICE: &[&str] = &["price", "unit_price", "cost", "price_each"];
const NUMBER_WORDS: [&str; 12] = [
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

const OPENERS: &[&str] = &[
    "{customer} ordered {items}.",
    "{customer} ordered {items}.",
    "{customer} bought {items} from {shop}.",
    "Order {id}: {customer} wants {items}.",
    "Order {id} for {customer}: {items}.",
    "Please send {items} to {customer} in {city}.",
    "I would like to order {items}.",
    "I want {items}, please.",
    "Can I get {items}?",
    "We need {items} by {date}.",
    "Invoice {id} to {customer}, dated {date}: {items}.",
    "On {date} {customer} placed order {id} for {items}.",
    "My name is {customer} and I want to buy {items}.",
    "Shopping list: {items}.",
    "Items: {items}. Customer: {customer}.",
    "{customer} from {city} ordered {items}.",
];
const FOLLOWERS: &[&str] = &[
    "The order number is {id}.",
    "It is order {id}.",
    "The total is ${total}.",
    "The total is {total} {currency}.",
    "Total: {total}.",
    "Ship it to {city}.",
    "Deliver to {street} in {city}.",
    "The delivery address is {street}.",
    "It should arrive on {date}.",
    "Ordered on {date}.",
    "The customer is {customer}.",
    "It is {paid}.",
    "The order is {paid}.",
    "Payment by {payment}.",
    "{customer} will pay by {payment}.",
    "The seller is {shop}.",
];

fn things(name: &str, count: i64) -> String {
    let last = name.chars().last().unwrap_or('s');
    if count == 1 || !last.is_ascii_alphabetic() || "sxh".contains(last) {
        return name.to_owned();
    }
    if last == 'y' {
        format!("{}ies", &name[..name.len() - 1])
    } else {
        format!("{name}s")
    }
}

/// How one text names its items.
struct Manner {
    priced: bool,
    pattern: &'static str,
    /// The text says `two mugs`, so the answer says `mugs` too: the words of the text are the values.
    plural: bool,
    spelled: bool,
}

fn manner(values: &mut Values) -> Manner {
    let priced = values.random.chance(45);
    let pattern = if priced {
        *values.random.pick(&[
            "{quantity} {thing} at ${price} each",
            "{quantity} {thing} for ${price} each",
            "{quantity} x {thing} at {price}",
            "{quantity} {thing} (${price})",
            "{thing} ({quantity} x ${price})",
        ])
    } else {
        *values.random.pick(&[
            "{quantity} {thing}",
            "{quantity} {thing}",
            "{quantity} {thing}",
            "{quantity} x {thing}",
            "{quantity}x {thing}",
            "{thing} ({quantity})",
        ])
    };
    let counted = pattern.starts_with("{quantity} {thing}");
    Manner {
        priced,
        pattern,
        plural: counted,
        spelled: counted && values.random.chance(25),
    }
}

fn row(values: &mut Values, manner: &Manner) -> (String, Vec<Fact>) {
    let most = if manner.spelled {
        12
    } else {
        *values.random.pick(&[9, 9, 60])
    };
    let count = values.random.between(if manner.plural { 2 } else { 1 }, most);
    let goods = values.goods();
    let name = if manner.plural {
        things(&goods, count)
    } else {
        goods
    };
    let mut quantity = integer("quantity", QUANTITY, count);
    if manner.spelled {
        quantity.words = NUMBER_WORDS[count as usize - 1].to_owned();
    }
    let mut facts = vec![text("thing", THING, name), quantity];
    if manner.priced {
        let price = values.amount();
        facts.push(fact("price", PRICE, price.clone(), Node::Number(price)));
    }
    (fill(manner.pattern, &facts), facts)
}

fn items(values: &mut Values) -> Fact {
    let manner = manner(values);
    let (words, rows): (Vec<_>, Vec<_>) = (0..1 + values.random.below(3))
        .map(|_| row(values, &manner))
        .unzip();
    fact("items", ITEMS, listed(&words), Node::Rows(rows))
}

/// An order, an invoice or a shopping list.
pub(crate) fn order(values: &mut Values) -> Scene {
    let total = values.amount();
    let paid = values.random.chance(50);
    let street = values.street();
    let day = Day::any(values, 2018, 2029);
    let payments = vec!["card", "cash", "invoice", "transfer"];
    let payment = *values.random.pick(&payments);
    let facts = vec![
        text(
            "id",
            &[
                "order_id",
                "id",
                "order_number",
                "invoice_number",
                "number",
                "reference",
            ],
            values.code(),
        ),
        text(
            "customer",
            &["customer", "customer_name", "name", "buyer", "client"],
            values.person(),
        ),
        items(values),
        fact(
            "total",
            &["total", "total_price", "sum", "total_amount"],
            total.clone(),
            Node::Number(total),
        ),
        text("city", &["city", "destination", "ship_to"], values.city()),
        text("street", &["street", "address", "street_address"], street),
        text("shop", &["shop", "seller", "vendor", "store"], values.company()),
        day.fact(
            values,
            "date",
            &["date", "order_date", "due_date", "delivery_date"],
        ),
        fact(
            "paid",
            &["paid", "is_paid"],
            if paid { "already paid" } else { "not paid yet" },
            Node::Flag(paid),
        ),
        fact(
            "payment",
            &["payment", "payment_method", "pay_by"],
            payment,
            Node::Choice(payment, payments),
        ),
        fact(
            "currency",
            &["currency"],
            "EUR",
            Node::Choice("EUR", vec!["EUR", "USD", "GBP"]),
        ),
    ];
    compose(&mut values.random, facts, OPENERS, FOLLOWERS)
}

/// One purchase without a list: a single thing, its number and its price.
pub(crate) fn purchase(values: &mut Values) -> Scene {
    let manner = Manner {
        priced: true,
        pattern: "",
        plural: false,
        spelled: false,
    };
    let (_, mut facts) = row(values, &manner);
    facts.push(text(
        "customer",
        &["customer", "name", "buyer", "client"],
        values.person(),
    ));
    facts.push(text(
        "shop",
        &["shop", "seller", "store", "vendor"],
        values.company(),
    ));
    facts.push(text(
        "id",
        &["id", "product_id", "sku", "code", "article_number"],
        values.code(),
    ));
    let openers = [
        "{customer} bought {quantity} x {thing} for ${price} each.",
        "The {thing} costs ${price}.",
        "The {thing} from {shop} costs {price} dollars.",
        "Product: {thing}. Price: ${price}.",
        "{customer} paid ${price} for a {thing}.",
        "{shop} sells the {thing} ({id}) for {price} EUR.",
    ];
    let followers = [
        "We have {quantity} in stock.",
        "There are {quantity} left.",
        "It is sold by {shop}.",
        "The code is {id}.",
        "Quantity: {quantity}.",
        "Sold to {customer}.",
    ];
    compose(&mut values.random, facts, &openers, &followers)
}
