//! Invents word problems, whose answers are numbers after some reasoning.
//!
//! Each template computes its answer from the numbers that it writes. Level 1 has one or two operations,
//! level 2 three or four with a number that is beside the point, level 3 more, with units, rates and
//! remainders.

use serde_json::{Value, json};

use super::draw::{Draw, Invented, clock, hundredths, in_words, money};
use crate::eval::tasks::task::reasoning_then;

/// A problem with its answer.
type Problem = (String, Value);

const LEVEL_1: [fn(&mut Draw) -> Problem; 6] = [change, bus, rows, pages, share, older];
const LEVEL_2: [fn(&mut Draw) -> Problem; 7] = [discount, recipe, legs, saving, fence, mean, tickets];
const LEVEL_3: [fn(&mut Draw) -> Problem; 8] = [
    overtime, boxes, tank, meeting, mixture, exchange, printing, doubling,
];

pub(super) fn task(draw: &mut Draw, level: u64) -> Invented {
    let problem = match level {
        1 => LEVEL_1[draw.between(0, LEVEL_1.len() as i64 - 1) as usize],
        2 => LEVEL_2[draw.between(0, LEVEL_2.len() as i64 - 1) as usize],
        _ => LEVEL_3[draw.between(0, LEVEL_3.len() as i64 - 1) as usize],
    };
    let (text, answer) = problem(draw);
    Invented {
        prompt: format!("{text} Think step by step; the answer is a number."),
        form: ("schema", reasoning_then(&json!({"type": "number"}))),
        answer: json!({"number": answer, "at": "/answer"}),
    }
}

fn name(draw: &mut Draw) -> &'static str {
    draw.given(1)[0]
}

fn change(draw: &mut Draw) -> Problem {
    let (count, price) = (draw.between(2, 6), draw.between(2, 7));
    let paid = draw.one(&[&50, &100]);
    let thing = draw.one(&["notebooks", "cups of tea", "bags of flour", "plant pots"]);
    let text = format!(
        "{} buys {count} {thing} at {price} euros each and pays with a note of {paid} euros. How many euros of change \
         are due?",
        name(draw)
    );
    (text, json!(paid - count * price))
}

fn bus(draw: &mut Draw) -> Problem {
    let (start, off, on) = (draw.between(18, 40), draw.between(3, 12), draw.between(2, 15));
    let vehicle = draw.one(&["A bus", "A tram", "A ferry"]);
    let text = format!(
        "{vehicle} leaves with {start} passengers. At the first stop {off} get off and {on} get on. How many passengers \
         are on it now?"
    );
    (text, json!(start - off + on))
}

fn rows(draw: &mut Draw) -> Problem {
    let (rows, each, lost) = (draw.between(4, 12), draw.between(5, 15), draw.between(2, 9));
    let plants = draw.one(&["tomato plants", "young trees", "tulips", "vines"]);
    let text = format!(
        "A gardener sets {rows} rows of {each} {plants}. In the first frost {lost} of them die. How many are left?"
    );
    (text, json!(rows * each - lost))
}

fn pages(draw: &mut Draw) -> Problem {
    let (daily, days, rest) = (draw.between(8, 30), draw.between(3, 9), draw.between(10, 90));
    let text = format!(
        "{} reads {daily} pages of a book each day for {days} days. Then {rest} pages remain. How many pages does the \
         book have?",
        name(draw)
    );
    (text, json!(daily * days + rest))
}

fn share(draw: &mut Draw) -> Problem {
    let (people, each, kept) = (draw.between(3, 8), draw.between(4, 14), draw.between(2, 9));
    let things = draw.one(&["shells", "marbles", "stickers", "walnuts"]);
    let text = format!(
        "{} has {} {things}, keeps {kept} of them and shares the others equally among {people} friends. How many \
         {things} does each friend get?",
        name(draw),
        people * each + kept
    );
    (text, json!(each))
}

fn older(draw: &mut Draw) -> Problem {
    let (age, more, years) = (draw.between(6, 30), draw.between(2, 12), draw.between(3, 15));
    let names = draw.given(2);
    let text = format!(
        "{} is {age} years old. {} is {more} years older. How old will {} be in {years} years?",
        names[0], names[1], names[1]
    );
    (text, json!(age + more + years))
}

fn discount(draw: &mut Draw) -> Problem {
    let price = draw.step(40, 200, 20);
    let (percent, delivery) = (draw.one(&[&10, &15, &20, &25]), draw.between(3, 9));
    let stock = draw.between(11, 90);
    let text = format!(
        "A chair costs {price} euros; the shop has {stock} of them. {} buys two, gets {percent} per cent off the price \
         of the chairs, and pays {delivery} euros for delivery, which is not reduced. How many euros is that in all?",
        name(draw)
    );
    (text, hundredths(2 * price * (100 - percent) + delivery * 100))
}

fn recipe(draw: &mut Draw) -> Problem {
    let (people, factor) = (draw.one(&[&2, &4, &6]), draw.between(2, 5));
    let (grams, has) = (draw.step(80, 300, 20), draw.step(20, 70, 10));
    let minutes = draw.step(25, 60, 5);
    let text = format!(
        "A recipe for {people} people takes {grams} grams of lentils and cooks for {minutes} minutes. {} cooks it for {} \
         people and has {has} grams of lentils at home. How many grams of lentils must be bought?",
        name(draw),
        people * factor
    );
    (text, json!(grams * factor - has))
}

fn legs(draw: &mut Draw) -> Problem {
    let (first, second) = (draw.step(40, 90, 10), draw.step(60, 120, 10));
    let (one, two) = (draw.between(2, 4), draw.between(1, 3));
    let cities = draw.cities(3);
    let text = format!(
        "A lorry drives from {} to {} in {one} hours at {first} km/h, rests for {} minutes, and drives on to {} in {two} \
         hours at {second} km/h. How many kilometres does it drive?",
        cities[0],
        cities[1],
        draw.step(20, 50, 5),
        cities[2]
    );
    (text, json!(first * one + second * two))
}

fn saving(draw: &mut Draw) -> Problem {
    let (weekly, start) = (draw.between(6, 25), draw.between(10, 60));
    let (weeks, spent) = (draw.between(5, 14), draw.between(15, 35));
    let text = format!(
        "{} is {} years old, has {start} euros and saves {weekly} euros a week. After {} weeks {spent} euros go into a \
         present. Saving goes on for as many weeks again. How many euros are there in the end?",
        name(draw),
        draw.between(10, 16),
        in_words(weeks)
    );
    (text, json!(start + 2 * weeks * weekly - spent))
}

fn fence(draw: &mut Draw) -> Problem {
    let (long, wide, gate) = (draw.between(12, 40), draw.between(6, 11), draw.between(2, 4));
    let price = draw.between(7, 19);
    let text = format!(
        "A meadow is {long} m long and {wide} m wide. A fence goes all around it, except for a gate of {gate} m. The grass \
         is {} cm high. A metre of fence costs {price} euros. How many euros does the fence cost?",
        draw.between(8, 30)
    );
    (text, json!((2 * (long + wide) - gate) * price))
}

fn mean(draw: &mut Draw) -> Problem {
    let mean = draw.between(11, 19);
    let (a, b, c) = (draw.between(5, 25), draw.between(5, 25), draw.between(5, 25));
    let text = format!(
        "On the first three days of a week {a}, {b} and {c} visitors come to a small museum that has {} rooms. How many \
         must come on the fourth day so that the mean of the four days is {}?",
        draw.between(4, 9),
        mean + 8
    );
    (text, json!(4 * (mean + 8) - a - b - c))
}

fn tickets(draw: &mut Draw) -> Problem {
    let (adults, children) = (draw.between(11, 40), draw.between(12, 60));
    let (full, buyers) = (draw.between(4, 9) * 2, draw.between(5, 11));
    let text = format!(
        "A cinema with {} seats sells {adults} tickets at {full} euros and {children} at half that price. {buyers} of the \
         people with tickets at half price also buy popcorn for 3 euros each. How many euros does the cinema take in?",
        draw.between(120, 200)
    );
    (text, json!(adults * full + children * full / 2 + buyers * 3))
}

fn overtime(draw: &mut Draw) -> Problem {
    let (wage, base) = (draw.step(12, 24, 2), draw.one(&[&35, &38, &40]));
    let (hours, extra) = (draw.between(4, 10), draw.between(2, 6));
    let tax = draw.one(&[&10, &20, &25]);
    let text = format!(
        "{} earns {wage} euros an hour. Hours beyond {base} in a week are paid one and a half times. One week has {} \
         hours of work, the next has {} hours. From the pay of both weeks {tax} per cent are withheld. How many euros are \
         paid out?",
        name(draw),
        base + hours,
        base - extra
    );
    // In halves of a euro: wages are even.
    let gross = base * wage + hours * wage * 3 / 2 + (base - extra) * wage;
    (text, hundredths(gross * (100 - tax)))
}

fn boxes(draw: &mut Draw) -> Problem {
    let (items, broken) = (draw.between(140, 400), draw.between(5, 20));
    let (per_box, per_crate) = (draw.between(7, 12), draw.between(3, 6));
    let sound = items - broken;
    let full = (sound + per_box - 1) / per_box;
    let crates = (full + per_crate - 1) / per_crate;
    let text = format!(
        "A pottery has made {items} cups, of which {broken} are cracked and thrown away. The others are packed into boxes \
         of {per_box}; the last box may be partly empty. A crate holds {per_crate} boxes. How many crates are needed?"
    );
    (text, json!(crates))
}

fn tank(draw: &mut Draw) -> Problem {
    let (inflow, outflow) = (draw.between(9, 20), draw.between(2, 7));
    let (early, minutes) = (draw.between(5, 15), draw.between(10, 40));
    let start = draw.step(50, 300, 10);
    let total = start + early * inflow + minutes * (inflow - outflow);
    let text = format!(
        "A tank holds {start} litres. At {} a pump starts that brings {inflow} litres a minute. At {} a leak opens through \
         which {outflow} litres a minute are lost, and the pump goes on. How many litres are in the tank at {}?",
        clock(9 * 60),
        clock(9 * 60 + early),
        clock(9 * 60 + early + minutes)
    );
    (text, json!(total))
}

fn meeting(draw: &mut Draw) -> Problem {
    let (slow, fast) = (draw.step(12, 20, 4), draw.step(24, 40, 4));
    let hours = draw.between(2, 5);
    let lead = draw.between(1, 2);
    let cities = draw.cities(2);
    let distance = slow * lead + (slow + fast) * hours;
    let text = format!(
        "{} and {} are {distance} km apart. A cyclist leaves {} at 8:00 and rides at {slow} km/h towards {}. {} after that a \
         moped leaves {} and drives at {fast} km/h towards the cyclist. How many kilometres has the cyclist gone when they \
         meet?",
        cities[0],
        cities[1],
        cities[0],
        cities[1],
        if lead == 1 { "One hour" } else { "Two hours" },
        cities[1]
    );
    (text, json!(slow * (lead + hours)))
}

fn mixture(draw: &mut Draw) -> Problem {
    let (first, second) = (draw.between(2, 9), draw.between(2, 9));
    let (weak, strong) = (draw.step(5, 20, 5), draw.step(30, 60, 10));
    let text = format!(
        "{first} litres of a syrup with {weak} per cent of sugar are mixed with {second} litres of one with {strong} per \
         cent of sugar. Half of the mixture is sold. How many litres of sugar are in the half that remains?"
    );
    // Thousandths of a litre, exactly: percent times litres times ten, halved.
    let thousandths = (first * weak + second * strong) * 5;
    let spelled = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    let spelled = spelled.trim_end_matches('0').trim_end_matches('.');
    (text, serde_json::from_str(spelled).unwrap_or_default())
}

fn exchange(draw: &mut Draw) -> Problem {
    let (rate, fee) = (draw.step(110, 180, 5), draw.between(2, 5));
    let (euros, dinner) = (draw.step(100, 400, 20), draw.step(30, 45, 5));
    let less = draw.between(12, 25);
    let text = format!(
        "One euro is {} francs. {} brings {euros} euros to an office that keeps a fee of {fee} euros and changes the rest. \
         A dinner costs {dinner} francs, and the taxi to it {less} francs less than the dinner. How many francs are left \
         after both?",
        money(rate),
        name(draw)
    );
    (text, hundredths((euros - fee) * rate - (2 * dinner - less) * 100))
}

fn printing(draw: &mut Draw) -> Problem {
    let (fast, slow) = (draw.step(20, 40, 5), draw.step(10, 18, 2));
    let (alone, jam) = (draw.between(4, 10), draw.between(2, 6));
    let together = draw.between(10, 25);
    let total = fast * alone + slow * jam + (fast + slow) * together;
    let text = format!(
        "A printer makes {fast} pages a minute and an older one {slow}. The new one prints alone for {alone} minutes and then \
         stops for a paper jam; the old one prints alone for the {jam} minutes of the jam. After that both print until the \
         job of {total} pages is done. How many minutes does the job take in all?"
    );
    (text, json!(alone + jam + together))
}

fn doubling(draw: &mut Draw) -> Problem {
    let (start, every, rounds) = (draw.between(30, 90), draw.between(2, 5), draw.between(3, 5));
    let taken = draw.between(10, 25);
    let mut count = start;
    for _ in 0..rounds {
        count = 2 * count - taken;
    }
    let text = format!(
        "A culture begins with {start} cells. Every {every} hours each cell divides into two, and right after that {taken} \
         cells are taken out for a test. How many cells are there after {} hours, when the last of these tests is done?",
        every * rounds
    );
    (text, json!(count))
}
