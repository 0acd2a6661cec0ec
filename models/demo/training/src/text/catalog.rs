//! Books, films, products and firms: short descriptions of one thing.

use super::dates::month;
use super::people::list;
use super::scene::{Node, Scene, compose, fact, integer, text};
use super::values::{Values, capital};
use super::words;

fn title(values: &mut Values) -> String {
    match values.random.below(4) {
        0 => format!("The {}", capital(&values.from(words::TOPICS))),
        1 => format!(
            "The {} {}",
            capital(&values.from(words::ADJECTIVES)),
            capital(&values.from(words::GOODS))
        ),
        2 => values.invented(),
        _ => format!("The {} of {}", capital(&values.from(words::GOODS)), values.city()),
    }
}

/// A book or a film.
pub(crate) fn book(values: &mut Values) -> Scene {
    let genres =
        "novel|thriller|comedy|drama|romance|documentary|western|mystery|biography|fantasy|science fiction";
    let facts = vec![
        text(
            "title",
            &["title", "name", "book", "movie", "work"],
            title(values),
        ),
        text(
            "author",
            &["author", "director", "writer", "creator", "by"],
            values.person(),
        ),
        integer(
            "year",
            &["year", "published", "release_year", "publication_year"],
            values.random.between(1800, 2030),
        ),
        text(
            "genre",
            &["genre", "category", "type", "kind"],
            values.from(genres),
        ),
        integer(
            "pages",
            &["pages", "page_count", "number_of_pages"],
            values.random.between(40, 990),
        ),
        text("publisher", &["publisher", "studio", "company"], values.company()),
        list(values, "cast", &["cast", "actors", "starring"], 3, Values::person),
    ];
    let openers = [
        "{title} is a {genre} by {author} from {year}.",
        "{title} was written by {author} in {year}.",
        "{author} wrote {title} in {year}.",
        "{author} published the {genre} {title} in {year}.",
        "The {genre} \"{title}\" by {author} came out in {year}.",
        "\"{title}\" is a {year} {genre} directed by {author}.",
        "{title} ({year}), directed by {author}.",
        "I am reading {title} by {author}.",
        "Title: {title}. Author: {author}. Year: {year}.",
    ];
    let followers = [
        "It has {pages} pages.",
        "It was published by {publisher}.",
        "It stars {cast}.",
        "The cast: {cast}.",
        "It is a {genre}.",
        "It appeared in {year}.",
    ];
    compose(&mut values.random, facts, &openers, &followers)
}

/// A thing on a shelf, with its measures.
pub(crate) fn product(values: &mut Values) -> Scene {
    let (price, weight, rating) = (values.amount(), values.amount(), values.random.between(10, 50));
    let rating = format!("{}.{}", rating / 10, rating % 10);
    let stock = values.random.chance(60);
    let facts = vec![
        text(
            "name",
            &["name", "product", "product_name", "title", "item"],
            values.goods(),
        ),
        text(
            "brand",
            &["brand", "manufacturer", "maker", "company"],
            values.company(),
        ),
        fact(
            "price",
            &["price", "cost", "unit_price"],
            price.clone(),
            Node::Number(price),
        ),
        fact(
            "weight",
            &["weight", "weight_kg", "mass"],
            weight.clone(),
            Node::Number(weight),
        ),
        fact(
            "rating",
            &["rating", "score", "stars"],
            rating.clone(),
            Node::Number(rating),
        ),
        text(
            "color",
            &["color", "colour"],
            values.from("red|blue|green|black|white|yellow|silver|purple|brown|grey"),
        ),
        text("sku", &["sku", "id", "code", "article_number"], values.code()),
        fact(
            "stock",
            &["in_stock", "available"],
            if stock { "in stock" } else { "sold out" },
            Node::Flag(stock),
        ),
        integer(
            "warranty",
            &["warranty", "warranty_years"],
            values.random.between(1, 12),
        ),
        list(values, "tags", &["tags", "labels", "keywords"], 3, |values| {
            values.from(words::TOPICS)
        }),
    ];
    let openers = [
        "The {name} by {brand} costs ${price}.",
        "The {name} costs {price} euros.",
        "New from {brand}: the {name}, now for ${price}.",
        "Buy the {name} for only ${price}!",
        "The {name} weighs {weight} kg and costs ${price}.",
        "{brand} makes the {name}.",
        "Product: {name}. Brand: {brand}. Price: {price}.",
        "The {name} ({sku}) is {stock}.",
        "{name}, {color}, ${price}, {stock}",
    ];
    let followers = [
        "It costs ${price}.",
        "It weighs {weight} kg.",
        "It is rated {rating} out of 5.",
        "Rating: {rating}.",
        "The color is {color}.",
        "It comes in {color}.",
        "The code is {sku}.",
        "It is {stock}.",
        "It has a warranty of {warranty} years.",
        "Tags: {tags}.",
    ];
    let mut scene = compose(&mut values.random, facts, &openers, &followers);
    scene.text = scene.text.trim().to_owned();
    scene
}

/// A firm or an open position.
pub(crate) fn firm(values: &mut Values) -> Scene {
    let facts = vec![
        text(
            "name",
            &["name", "company", "company_name", "employer"],
            values.company(),
        ),
        text(
            "city",
            &["city", "location", "headquarters", "based_in"],
            values.city(),
        ),
        integer(
            "founded",
            &["founded", "year", "founding_year", "since"],
            values.random.between(1850, 2029),
        ),
        text(
            "ceo",
            &["ceo", "director", "head", "founder", "boss"],
            values.person(),
        ),
        integer(
            "staff",
            &["employees", "staff", "number_of_employees", "size"],
            values.random.between(2, 9999),
        ),
        text(
            "industry",
            &["industry", "sector", "field"],
            values.from(words::TOPICS),
        ),
        text(
            "job",
            &["position", "job_title", "role", "job"],
            values.from(words::JOBS),
        ),
        integer(
            "salary",
            &["salary", "pay", "annual_salary"],
            values.random.between(20, 180) * 1000,
        ),
        text("start", &["start", "start_date", "starting"], month(values)),
    ];
    let openers = [
        "{name} was founded in {founded} in {city}.",
        "{name} is a {industry} company from {city}.",
        "{name}, led by {ceo}, has {staff} employees.",
        "{ceo} founded {name} in {founded}.",
        "{name} is looking for a {job} in {city}.",
        "{name} hires a {job} for ${salary} a year.",
        "Job: {job} at {name}, {city}. Salary: {salary}.",
    ];
    let followers = [
        "It has {staff} employees.",
        "The head is {ceo}.",
        "It is based in {city}.",
        "It was founded in {founded}.",
        "The salary is ${salary}.",
        "It starts in {start}.",
    ];
    compose(&mut values.random, facts, &openers, &followers)
}
