"""What to say about text that is not EQL: what was found, what was expected, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from lark import Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from streamproof.errors import StreamproofError
from streamproof.plan.driven.places import refuse

ORDER: Final = (
    "the order is SELECT … FROM … WHERE … (ON ARRIVAL | EVERY | AT | DURING) … WINDOW … HOP … GROUP BY … QOS …"
)
_WORDS: Final = {
    "NAME": "a name", "QUOTED": "a name", "STRING": "text in single quotes", "INTEGER": "a whole number",
    "DECIMAL": "a number", "DURATION": "a length of time like 10s", "EQUALS": "=", "AT_SIGN": "@", "COMMA": "a comma",
    "COLON": "a colon", "SEMICOLON": "a semicolon", "LPAR": "(", "RPAR": ")", "DOT": "a dot", "PLUS": "+", "MINUS": "−",
    "OPERATOR": "an operator", "TICKS": "a unit", "SEMI": "a semicolon",
}  # fmt: skip
_FOREIGN: Final = {
    "join": "EQL looks at one stream; correlate events with BY, or join streams in SQL",
    "having": "EQL has no HAVING; filter the result in another query",
    "order": "results are ordered by time; EQL has no ORDER BY",
    "limit": "EQL has no LIMIT",
    "union": "EQL has no UNION; write two queries",
    "range": "write WINDOW 10s instead of RANGE",
    "slide": "write HOP 10s instead of SLIDE",
    "when": "write AT … for an instant, or DURING … for a lasting event",
    "while": "write DURING LASTING(begin, end)",
}
_SMART: Final = "“”‘’„«»`"


def unexpected(error: UnexpectedInput, text: str) -> StreamproofError:
    """The error for people."""
    if isinstance(error, UnexpectedCharacters):
        return _character(error, text)
    place = error.pos_in_stream if isinstance(error, UnexpectedToken) else len(text)
    token = error.token if isinstance(error, UnexpectedToken) else None
    expected = set(error.accepts or error.expected) if isinstance(error, UnexpectedToken) else set()
    at_end = isinstance(error, UnexpectedEOF) or token is None or token.type == "$END" or (place or 0) >= len(text)
    found = "the end of the text" if at_end else f"{_shown(token)}"
    offset = len(text.rstrip()) if at_end else place or 0
    missing = _missing(text[: place or 0])
    if missing is not None:
        return refuse(missing[0], text, missing[2], fix=missing[1])
    what = f"expected {_listed(expected)}, found {found}"
    return refuse(what, text, offset, fix=_fix(expected, None if at_end else token, text, offset))


def _missing(before: str) -> tuple[str, str, int] | None:
    """Where a name is missing, the word that follows was taken for it."""
    found = re.search(r"(?i)(?:\bselect|,)\s+(from)\s*$", before)
    if found:
        return "an aggregate is missing before FROM", "select e.g. count(*)", found.start(1)
    found = re.search(r"(?i)\bfrom\s+(on|every|at|during|where)\s*$", before)
    if found:
        return "the stream is missing after FROM", "name it: FROM S", found.start(1)
    return None


def _character(error: UnexpectedCharacters, text: str) -> StreamproofError:
    place = int(getattr(error, "pos_in_stream", 0))
    char = text[place] if place < len(text) else ""
    fix = "remove it"
    if char in _SMART:
        fix = "use straight quotes: 'text' for text, \"name\" for names"
    elif char in "'\"":
        return refuse("the quote is never closed", text, place, fix=f"close it with {char}")
    elif char in "&!":
        fix = "write and, or, not, <>"
    elif char in "{}":
        fix = "use parentheses"
    elif char == "#":
        fix = "comments begin with --"
    return refuse(f"the character {char!r} means nothing here", text, place, fix=fix)


def _shown(token: Token | None) -> str:
    text = str(token)
    return text if len(text) < 40 else text[:40] + "…"


def _listed(expected: Iterable[str]) -> str:
    """What could have stood there; expressions take nearly anything."""
    words = sorted({_WORDS.get(name, name) for name in expected if name not in ("$END",)})
    if len(words) > 25:
        return "an expression"
    if not words:
        return "the end"
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _fix(expected: set[str], token: Token | None, text: str, offset: int) -> str:
    word = "" if token is None else str(token).lower()
    before = text[:offset].rstrip()
    if expected <= {"TICKS"}:
        return f"a length of time needs a unit: {re.split(r'[^0-9.]', before)[-1] or 10}s"
    if word in _FOREIGN:
        return _FOREIGN[word]
    near = _near(word, expected)
    if near:
        return f"did you mean {near}?"
    if "RPAR" in expected and (token is None or word in (";", "from", "window", "hop", "group", "qos")):
        return "close the parenthesis with )"
    for rule in (_after_items, _after_drive, _in_events):
        fix = rule(expected, word, before)
        if fix:
            return fix
    return ORDER


def _near(word: str, expected: set[str]) -> str | None:
    names = [name for name in expected if name not in _WORDS and name.isalpha()]
    found = get_close_matches(word.upper(), names, n=1, cutoff=0.6) if word.isidentifier() else []
    return found[0] if found else None


def _after_items(expected: set[str], word: str, before: str) -> str | None:
    if "FROM" in expected:
        if word == "*":
            return "select aggregates, e.g. count(*)"
        return "separate what you select by commas, and go on with FROM stream"
    if expected == {"NAME", "QUOTED"} and re.search(r"(?i)\bfrom$", before):
        return "name the stream after FROM"
    if "NAME" in expected and word == "*":
        return "select aggregates, e.g. count(*)"
    if word == "," and re.search(r"(?i)\bfrom\s+\S+$", before):
        return "EQL looks at one stream"
    return None


def _after_drive(expected: set[str], word: str, before: str) -> str | None:
    if {"ON", "DURING"} <= expected:
        return "say what drives the query: ON ARRIVAL, EVERY 10s, AT an instant, or DURING a lasting event"
    if expected == {"ARRIVAL"}:
        return "write ON ARRIVAL"
    if expected == {"BY"}:
        return "write BY here: GROUP BY column, or BY number in CHANGES"
    if expected == {"LATENCY"}:
        return "write QOS LATENCY 500ms"
    if expected == {"EMPTY"}:
        return "write EMIT EMPTY"
    if "WINDOW" in expected and word in ("where", "on", "every", "at", "during"):
        return ORDER
    if expected & {"SEMICOLON", "SEMI"} and word in ("select", "event"):
        return "end the query before it with a semicolon"
    return None


def _in_events(expected: set[str], word: str, before: str) -> str | None:
    if "LASTING" in expected and "ARRIVE" in expected:
        return "write an event: ARRIVE(S: condition), BECOMES(S: condition), CHANGES(S.c BY 5), TIME(…), LASTING(…)"
    if expected == {"COLON"}:
        return "put a colon between the stream and the condition: BECOMES(S: v > 1)"
    if "COLON" in expected and "RPAR" in expected:
        return "put a colon between the stream and the condition: ARRIVE(S: v > 1)"
    if expected == {"BY", "UP", "DOWN"}:
        return "say by how much: CHANGES(S.column UP BY 5)"
    if expected == {"EACH", "FIFO", "LIFO"}:
        return "PAIR takes EACH (an end closes all that are open), FIFO or LIFO"
    if expected == {"DOT"}:
        return "name the column: CHANGES(S.column BY 5)"
    if "COMMA" in expected and re.search(r"(?i)lasting\([^()]*(\([^()]*\))?[^()]*$", before):
        return "LASTING takes a begin and an end: LASTING(begin, end) or LASTING(begin, +10s)"
    if "DURATION" in expected:
        return "give a length of time with a unit, e.g. 10s, 500ms, 1 hour"
    if "STRING" in expected:
        return "TIME takes '2026-01-01T00:00Z', EVERY 10s or CRON '0 * * * *'"
    return None
