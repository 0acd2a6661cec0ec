"""Writes python_regex.json: patterns with texts that `re.fullmatch` matches and texts that it does not."""

import json
import re
from pathlib import Path

# Python 3.14 lets `\\B` match the empty text, which older versions do not: no pattern here asks it there.
PATTERNS = r"""
a|b|ab
a*b+c?
a{2}
a{2,}
a{,2}
a{1,2}b
a{,}
a{
a{x}
a{1
{a}
a{}
a{1,x}
(ab)*
(?:ab)+?
(?P<name>ab)c
(?i)aB
(?i:a)b
(?s)a.b
(?s-i:a.b)
(?im)^A$
(?m)a$
(?x) a b # and nothing else
(?x: [ab] + )c
(?i)[^a]
(?#comment)a(?#another)b
a(?=b)b
a(?!b).
(?!ab)[abc]+
[abc]+(?<=b)
[abc]+(?<!b)
^a$
^a|b$
(a$|b$)
a$\n
a$\n?
a\Z
\Aa\Z
(^a)b
.
.*
[.]
[]a]+
[^]a]+
[a-c]+
[a\-c]+
[-a]+
[a-]+
[A-\]]+
[\w-]+
[\s\d]+
[^\n]+
[\b]
[\x61\x62]+
[[a]+
[a&&b]+
\d+
\D+
\w+
\W+
\s+
\S+
\ba\b
a\b
a\bb
a\b,b
a\Bb
\bé\b
é\b-
\x61\u0062\U00000063
\101
[\101\7]+
\0
\07
\a\f\v
\.\*\+\?\(\)\[\]\{\}\|\^\$\\
\-\ \_\#\/
\é
(a|b)*abb
((a)|(b))+
()
a||b
(|a)b
(?:a|(?:b|(?:c)))+
(a(?=b)|b)+
a(?=b|c)[bc]
(?=a)a*
[^\W\d_]+
""".strip("\n").split("\n")
TEXTS = [
    "", "a", "b", "c", "d", "aa", "ab", "ba", "bb", "abc", "abb", "aab", "aabb", "ababab", "abab", "cab", "acb", "ac", "cc", "aaa",
    "a{", "a{x}", "a{1", "{a}", "a{}", "a{1,x}", "a{,}", "a\n", "a\n\n", "\n", "ab\n", "b\n", ".", "..", "]", "]a", "-", "a-c", "-a", "a-",
    "\\", "[a", "[", "&", "a&b", " ", "\t", " 1", "12", "1a", "_", "é", "éa", "é-", "a-b", "a,b", "a b", "١٢", "中文", "x́", "½", "Ⅷ", "‿",
    "\x00", "\x07", "\x08", "\x1c", "\x85", "\xa0", "\u2003", "\u200b", "\ufeff", "A", "AA\x07", "\x07\x0c\x0b", ".*+?()[]{}|^$\\", "- _#/",
    "ab,", "aab,", "🙂", "a🙂", "😀_",
]
REFUSED = r"""
*a
a**
a*{2}
a{2}{3}
a{3,2}
^*
\b+
(a
a)
[a
[]
[b-a]
[\d-z]
[a-\w]
\q
[\q]
\x6
\u12
\U00110000
\
(?P<1a>b)
(?P<>b)
(?P<a>b)(?P<a>c)
(?<name>a)
(?Z)
a(?i)b
(?#open
\400
""".strip("\n").split("\n")


def main():
    patterns = []
    for pattern in PATTERNS:
        compiled = re.compile(pattern)
        yes = [text for text in TEXTS if compiled.fullmatch(text)]
        patterns.append({"pattern": pattern, "yes": yes, "no": [text for text in TEXTS if text not in yes]})
    for pattern in REFUSED:
        try:
            re.compile(pattern)
        except re.error:
            continue
        raise SystemExit(f"Python does not refuse {pattern!r}")
    text = json.dumps({"patterns": patterns, "refused": REFUSED}, indent=0, ensure_ascii=False)
    Path(__file__).with_suffix(".json").write_text(text + "\n", encoding="utf-8")


main()
