"""Writes lark_texts.json: grammars, and texts with the verdict of the lark parser (LALR, contextual lexer).

Run with the package `lark` from PyPI:  python3 lark_texts.py > lark_texts.json
"""

import json
import random
import sys

from lark import Lark, __version__
from lark.indenter import PythonIndenter

# A grammar of each kind, with a few texts from which others are made by small changes.
GRAMMARS = {
    "keywords and names": (
        r'''
start: stmt+
stmt: "let" NAME "=" expr ";" | "if" expr "then" stmt | NAME ":=" expr ";"
?expr: expr "+" term | term
?term: NAME | INT | "(" expr ")" | "not" term
NAME: /[a-z_]\w*/
%import common (INT, WS)
%ignore WS
''',
        ["let a = 1;", "if a then b := not c + 2;", "letter := (1 + 2);", "let if_ = not notx;"],
    ),
    "soft keywords": (
        r'''
start: (command | assignment)+
command: "match" NAME ";"
assignment: name "=" NAME ";"
name: NAME | "match"
NAME: /[a-z]+/
%ignore " "
''',
        ["match a;", "match = b;", "a = b; match c;", "match match;"],
    ),
    "templates": (
        r'''
start: _list{pair, ","} | "[" _list{_list{INT, "-"}, ";"} "]"
_list{item, sep}: item (sep item)*
pair: _between{STRING, "<", ">"} ":" INT
_between{x, open, close}: open x close
STRING: /[a-z]+/i
INT: "0".."9"+
''',
        ["<a>:1", "<aB>:12,<c>:3", "[1-2;3-4-5]", "[1]"],
    ),
    "counts and options": (
        r'''
start: "x"~2..3 [sign] DIGIT~2 ("," DIGIT)~0..2 tail?
!sign: "+" | "-"
?tail.3: "!" -> loud
       | "?"+ -> asking
DIGIT.2: "0".."9"
''',
        ["xx12", "xxx+12,3", "xx-12,3,4!", "xx00??"],
    ),
    "lazy and look-around": (
        r'''
start: (comment | string | WORD | call)+
comment: COMMENT
string: STRING
call: WORD "(" ")"
COMMENT: /\/\*.*?\*\//s
STRING: /"(?!"").*?(?<!\\)(\\\\)*?"/
WORD: /[a-z]+(?=[^0-9]|$)/
%ignore /\s+/
''',
        ['/* a */ b "c"', '"a\\"b" f ( )', "/* * / */ x", '"" a'],
    ),
    "imports": (
        r'''
start: ESCAPED_STRING | entry ("," entry)* | SIGNED_NUMBER
entry: KEY "=" value
value: NUMBER | HEXDIGIT~2
%import common.CNAME -> KEY
%import common.ESCAPED_STRING
%import common (SIGNED_NUMBER, NUMBER, HEXDIGIT, WS_INLINE, SH_COMMENT, NEWLINE)
%ignore WS_INLINE
%ignore SH_COMMENT
%ignore NEWLINE
''',
        ['"a\\"b"', "k=1.5e3", "a_1 = ff , b = 2 # c", "-12.5", "k=.5\n"],
    ),
    "changed imports": (
        r'''
start: WORD INT
%import common (WORD, INT)
%override INT: "0" | /[1-9][0-9]*/
%extend WORD: "-"
''',
        ["ab0", "-12", "x907"],
    ),
    "escapes": (
        "start: \"a\\n\\t\\x41\\u00e9\\\\\\\"\" | /[\\]\\/\\n]+/ | /\\x41\\d{2,3}\\//\n",
        ["a\n\tAé\\\"", "]/\n", "A12/", "A123/"],
    ),
    "either case": (
        r'''
start: "select"i /from/i NAME ("Where"i NAME)?
NAME: /[a-z]+/
%ignore " "
''',
        ["SELECT from a", "select FROM b wHere c", "Select From x"],
    ),
    "recursion": (
        r'''
?start: sum
?sum: product | sum "+" product -> add | sum "-" product -> sub
?product: atom | product "*" atom -> mul | product "/" atom -> div
?atom: NUMBER -> number | "-" atom -> neg | "(" sum ")"
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
''',
        ["1", "-(2+3)*4", "1 - 2 / 3.5", "((1))"],
    ),
    "indentation": (
        r'''
start: (_NEWLINE | statement)*
statement: simple
    | "if" NAME ":" block ("else" ":" block)?
    | "@" NAME _NEWLINE "def" NAME "(" [NAME ("," NAME)*] ")" ":" block
simple: NAME ("=" value)? _NEWLINE
block: simple | _NEWLINE _INDENT statement+ _DEDENT
value: NAME | "[" [value ("," value)*] "]"
NAME: /[a-z]+/
_NEWLINE: (/\r?\n[\t ]*/ | COMMENT)+
COMMENT: /#[^\n]*/
%ignore /[\t \f]+/
%ignore COMMENT
%declare _INDENT _DEDENT
''',
        [
            "x\nif a:\n    b = c\n    if d: e\n    else:\n      f\ng\n",
            "@a\ndef f(a,\n  b):\n\n    x = [a,\n b]\n\n    y\nz\n",
            "if a:\n\tb\n\tc\nd\n",
        ],
    ),
}


def changed(text: str, letters: str) -> str:
    """Returns a text with a few letters added, removed, replaced or repeated."""
    letters_of = list(text)
    for _ in range(random.choice([1, 1, 2, 3])):
        at = random.randrange(len(letters_of) + 1)
        kind = random.random()
        if kind < 0.4:
            letters_of.insert(at, random.choice(letters))
        elif kind < 0.7 and letters_of:
            del letters_of[min(at, len(letters_of) - 1)]
        elif kind < 0.85 and letters_of:
            letters_of[min(at, len(letters_of) - 1)] = random.choice(letters)
        else:
            other = random.randrange(len(letters_of) + 1)
            first, last = sorted((at, other))
            letters_of[first:last] = letters_of[first:last] * 2
    return "".join(letters_of)


def belongs(parser: Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except Exception:
        return False
    return True


def main() -> None:
    random.seed(19)
    cases = []
    for name, (grammar, texts) in GRAMMARS.items():
        postlex = PythonIndenter() if "_INDENT" in grammar else None
        parser = Lark(grammar, parser="lalr", postlex=postlex)
        letters = "".join(sorted(set("".join(texts)))) + ' a0\n"('
        verdicts: dict[str, bool] = {text: belongs(parser, text) for text in texts}
        while len(verdicts) < 160:
            text = changed(random.choice([text for text in verdicts if verdicts[text]] + texts), letters)
            if len(text) < 80:
                verdicts[text] = belongs(parser, text)
        accept = [text for text, verdict in verdicts.items() if verdict]
        reject = [text for text, verdict in verdicts.items() if not verdict]
        print(name, len(accept), len(reject), file=sys.stderr)
        cases.append({"name": name, "grammar": grammar, "accept": accept, "reject": reject})
    json.dump({"lark": __version__, "cases": cases}, sys.stdout, ensure_ascii=False, indent=1)


main()
