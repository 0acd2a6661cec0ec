"""Facts read from short texts by a small model: free, under a schema, and under a schema that the model is told.

    cargo xtask serve
    python3 benches/real/facts.py [--url URL] [--texts N] [--keep FILE]

Ten kinds of texts, written by this program from a fixed seed, each with two or three facts. Every text is asked for three times, greedy:

- `free`: nothing is constrained, and the question ends with the form of the answer, as people write it. The first object of JSON in the
  answer counts, also in a fence.
- `schema`: the answer obeys the schema, of which the model is not told (`schema_in_prompt: never`).
- `told`: the answer obeys the schema, and the service tells the model where it usually does.

The table has the texts of which all facts are exactly right, in brackets the facts. Standard library only.
"""

import json
import random

from service import arguments, ask, kept, served

NAMES = ["Maria Keller", "Tom Baker", "Aisha Khan", "Jonas Weber", "Elena Rossi", "Peter Novak", "Laura Smith", "Hugo Martin", "Nina Larsen", "Omar Haddad"]
CITIES = ["Vienna", "Paris", "Oslo", "Madrid", "Rome", "Prague", "Berlin", "Lisbon", "Dublin", "Athens"]
THINGS = ["chairs", "lamps", "notebooks", "bottles", "umbrellas", "keyboards", "blankets", "candles", "mugs", "tents"]
COLOURS = ["red", "green", "blue", "black", "white"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
TITLES = ["The Silver River", "Night Train", "A Quiet House", "Seven Bridges", "The Last Orchard", "Paper Boats", "Cold Harbour", "The Glass Hill"]
JOBS = ["carpenter", "nurse", "teacher", "pilot", "baker", "engineer", "lawyer", "painter"]
TEAMS = ["Hawks", "Lions", "Rovers", "Bears", "Falcons", "Sharks"]
TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


def kinds(dice):
    """The kinds, each with a function that draws a text, the schemas of its facts, and the facts."""
    pick, roll = dice.choice, dice.randint

    def person():
        name, age, city = pick(NAMES), roll(18, 90), pick(CITIES)
        return f"{name} is {age} years old and lives in {city}.", {"name": TEXT, "age": WHOLE, "city": TEXT}, [name, age, city]

    def job():
        name, job, city = pick(NAMES), pick(JOBS), pick(CITIES)
        return f"{name} works as a {job} in {city}.", {"name": TEXT, "job": {"enum": JOBS}, "city": TEXT}, [name, job, city]

    def order():
        count, thing, colour = roll(2, 60), pick(THINGS), pick(COLOURS)
        facts = {"quantity": WHOLE, "item": {"enum": THINGS}, "colour": {"enum": COLOURS}}
        return f"I would like to order {count} {colour} {thing}, please.", facts, [count, thing, colour]

    def meeting():
        day, hour, room = pick(DAYS), roll(8, 17), roll(100, 400)
        facts = {"day": {"enum": DAYS}, "hour": WHOLE, "room": WHOLE}
        return f"The meeting takes place on {day} at {hour} o'clock in room {room}.", facts, [day, hour, room]

    def flight():
        start, end = dice.sample(CITIES, 2)
        number = roll(100, 999)
        return f"Flight {number} goes from {start} to {end}.", {"number": WHOLE, "from": TEXT, "to": TEXT}, [number, start, end]

    def book():
        title, author, year = pick(TITLES), pick(NAMES), roll(1950, 2020)
        facts = {"title": TEXT, "author": TEXT, "year": WHOLE}
        return f'"{title}" was written by {author} and published in {year}.', facts, [title, author, year]

    def price():
        thing, euros = pick(THINGS), roll(2, 90) + roll(1, 99) / 100
        return f"The {thing} cost {euros:.2f} euros.", {"item": {"enum": THINGS}, "price": NUMBER}, [thing, euros]

    def weather():
        city, degrees, rain = pick(CITIES), roll(-9, 35), pick([True, False])
        sky = "it is raining" if rain else "it is dry"
        facts = {"city": TEXT, "degrees": WHOLE, "rain": {"type": "boolean"}}
        return f"In {city} it is {degrees} degrees today, and {sky}.", facts, [city, degrees, rain]

    def match():
        home, away = dice.sample(TEAMS, 2)
        ours, theirs = roll(3, 6), roll(0, 2)
        facts = {"winner": {"enum": TEAMS}, "loser": {"enum": TEAMS}, "winner_goals": WHOLE}
        return f"The {home} beat the {away} {ours} to {theirs}.", facts, [home, away, ours]

    def contact():
        name, number = pick(NAMES), f"0{roll(10, 99)} {roll(1000, 9999)}"
        return f"You can reach {name} at {number}.", {"name": TEXT, "phone": TEXT}, [name, number]

    return [person, job, order, meeting, flight, book, price, weather, match, contact]


def form(facts):
    return "{" + ", ".join(f'"{key}": {schema.get("type", "string")}' for key, schema in facts.items()) + "}"


def answer(url, model, way, text, facts):
    asked = {"model": model, "temperature": 0, "max_tokens": 200}
    if way == "free":
        text += f"\nAnswer with JSON of this form:\n{form(facts)}"
    else:
        schema = {"type": "object", "properties": facts, "required": list(facts)}
        asked["response_format"] = {"type": "json_schema", "json_schema": {"name": "facts", "schema": schema}}
        if way == "schema":
            asked["schema_in_prompt"] = "never"
    written, _ = ask(url, asked | {"messages": [{"role": "user", "content": text}]})
    return written["choices"][0]["message"]["content"]


def read(written):
    """The first object of JSON in a text."""
    for at, character in enumerate(written):
        if character == "{":
            try:
                found = json.JSONDecoder().raw_decode(written[at:])[0]
                return found if isinstance(found, dict) else {}
            except ValueError:
                continue
    return {}


def main():
    args = arguments("texts", "how many texts, a tenth of each kind").parse_args()
    model = served(args.url)
    dice = random.Random(38)
    all_kinds = kinds(dice)
    each = args.texts // len(all_kinds)
    ways = ["free", "schema", "told"]
    print("| kind | texts | " + " | ".join(ways) + " |\n|---|--:|" + "--:|" * len(ways))
    sums = {way: [0, 0] for way in ways}
    total = 0
    for kind in all_kinds:
        right = {way: [0, 0] for way in ways}
        for _ in range(each):
            text, facts, values = kind()
            for way in ways:
                written = answer(args.url, model, way, text, facts)
                found = read(written)
                # True is no 1.
                good = [type(found.get(key)) is type(value) and found[key] == value or isinstance(value, float) and found.get(key) == value
                        for key, value in zip(facts, values)]
                right[way][0] += all(good)
                right[way][1] += sum(good)
                kept(args.keep, kind=kind.__name__, way=way, text=text, answer=written, right=all(good))
        total += each * len(values)
        cells = [f"{right[way][0]} ({right[way][1]} of {each * len(values)})" for way in ways]
        print(f"| {kind.__name__} | {each} | " + " | ".join(cells) + " |", flush=True)
        for way in ways:
            sums[way] = [sums[way][place] + right[way][place] for place in range(2)]
    cells = [f"{sums[way][0]} ({sums[way][1]} of {total})" for way in ways]
    print(f"| all | {each * len(all_kinds)} | " + " | ".join(cells) + " |")


main()
