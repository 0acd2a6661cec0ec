"""A callback that lets a model write only SQL which a database can run.

It answers questions of `lexiform serve --callback schema=http://127.0.0.1:9000/` about beginnings of statements: at the place of
a name, the names that fit what was written before; and at the end, whether the database accepts the statement. Statements are
those of the regular expression in `ask.py`.

    python examples/sql/host.py [--port 9000] [DATABASE]
"""

import argparse
import json
import re
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHOP = """
CREATE TABLE customers (id INTEGER, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER, customer_id INTEGER, total INTEGER);
"""
NAME = re.compile(r"\w*")


class Database:
    """A database of SQLite, opened to be read alone."""

    def __init__(self, path=None):
        self.connection = sqlite3.connect(f"file:{path}?mode=ro" if path else ":memory:", uri=bool(path), check_same_thread=False)
        if not path:
            self.connection.executescript(SHOP)
        tables = self.connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        self.tables = {name: [row[1] for row in self.connection.execute(f'PRAGMA table_info("{name}")')] for (name,) in tables}

    def runs(self, statement):
        """Whether the database accepts a statement. It is explained, not run."""
        try:
            self.connection.execute(f"EXPLAIN {statement}")
        except sqlite3.Error:
            return False
        return True

    def verdict(self, text, done):
        """True, False, or the list of names of which one comes next."""
        if done:
            return self.runs(text)
        if len(text) < len("SELECT "):
            return "SELECT ".startswith(text)
        columns, found, rest = text.removeprefix("SELECT ").partition(" FROM ")
        *before, last = columns.split(", ")
        fitting = [table for table, names in self.tables.items() if set(before) <= set(names)]
        possible = {name for table in fitting for name in self.tables[table]} - set(before)
        if not found:
            return place_of(last, possible, (", ", " FROM ") if len(possible) > 1 else (" FROM ",))
        if last not in possible:
            return False
        tables = {table for table in fitting if last in self.tables[table]}
        table, found, rest = rest.partition(" WHERE ")
        if not found:
            return place_of(table, tables, (";", " WHERE "))
        # What follows the name is for the regular expression to say, and for the database at the end.
        return table in tables and place_of(rest, set(self.tables[table]), None)


def place_of(text, names, ends):
    """The verdict about a text that begins with a name, after which one of the ends comes; None stands for any."""
    if text == "":
        return sorted(names)
    name = NAME.match(text)[0]
    rest = text[len(name) :]
    if rest == "":
        return any(known.startswith(name) for known in names)
    return name in names and (ends is None or any(end.startswith(rest) for end in ends))


class Handler(BaseHTTPRequestHandler):
    # Connections are kept open between questions.
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["content-length"])))
        pairs = zip(question["texts"], question["done"])
        answer = json.dumps({"verdicts": [self.server.database.verdict(text, done) for text, done in pairs]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database", nargs="?", help="a file of SQLite; without it, a small shop")
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one")
    arguments = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    server.database = Database(arguments.database)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
