"""What to say about text that is not EQL: what was found, what was expected, and how to mend it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from lark import Token, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from streamproof.errors import StreamproofError
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.source_location import refuse

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
_EVENTS: Final = ("ARRIVE", "BECOMES", "CHANGES", "LASTING", "TIME")
QUOTES_OR_COMMENTS: Final = re.compile(  # what is never closed goes on to the end, so that it is looked at once
    r"""'(?:[^'\n]++|'')*+(?:'|$)|"(?:[^"\n]++|"")*+(?:"|$)|--[^\n]*|/\*(?s:.*?)(?:\*/|\Z)""", re.MULTILINE
)
_MISSING: Final = (
    (re.compile(r"(?i)(?:\bselect|,)\s+(from)\s*$"), "an aggregate is missing before FROM", "select e.g. count(*)"),
    (re.compile(r"(?i)\bfrom\s+(on|every|at|during|where)\s*$"), "the stream is missing after FROM", "name it: FROM S"),
    (re.compile(r"(?i)\bas\s+(from)\s+\w*\s*$"), "a name is missing after AS", "name the column: avg(v) AS mean"),
)
LOOK_BACK: Final = 300  # characters before a mistake that say what it is
_SMART: Final = "“”‘’„«»`"


def without_quotes(text: str) -> str:
    """The text with all that is quoted as x, and comments as blanks: what is left stands where it stood."""
    return QUOTES_OR_COMMENTS.sub(lambda found: ("x" if found.group()[0] in "'\"" else " ") * len(found.group()), text)


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
    missing = _missing(text, place or 0) or _unclosed(text, at_end=at_end) or _not_an_event(text, place or 0)
    if missing is not None:
        return refuse(missing[0], text, missing[2], fix=missing[1])
    what = f"expected {_listed(expected)}, found {found}"
    return refuse(what, text, offset, fix=_fix(expected, None if at_end else token, text, offset))


def _missing(text: str, place: int) -> tuple[str, str, int] | None:
    """Where a name is missing, the word that follows was taken for it."""
    begin = max(0, place - LOOK_BACK)
    for pattern, what, fix in _MISSING:
        found = pattern.search(text[begin:place])
        if found:
            return what, fix, begin + found.start(1)
    return None


def _unclosed(text: str, *, at_end: bool) -> tuple[str, str, int] | None:
    """What was opened and never closed."""
    for found in QUOTES_OR_COMMENTS.finditer(text):
        if found.group().startswith("/*") and not found.group()[2:].endswith("*/"):
            return "the comment is never closed", "close it with */", found.start()
    bare = without_quotes(text)
    waiting: list[int] = []
    for place, char in enumerate(bare if at_end else ""):
        if char == "(":
            waiting.append(place)
        elif char == ")" and waiting:
            waiting.pop()
    if waiting:
        return "the parenthesis is never closed", "close the parenthesis with )", waiting[-1]
    return None


def _not_an_event(text: str, place: int) -> tuple[str, str, int] | None:
    """A word before a parenthesis where an event should stand."""
    begin = max(0, place - LOOK_BACK)
    found = re.search(r"(?i)(?:\b(?:at|during)\s+|[(,@=]\s*)([a-z_]\w*)\s*$", text[begin:place])
    if not found or not text[place:].startswith("("):
        return None
    near = get_close_matches(found.group(1).upper(), _EVENTS, n=1, cutoff=0.5)
    fix = f"did you mean {near[0]}?" if near else f"events are {', '.join(_EVENTS)}"
    return f'there is no event called "{found.group(1)}(…)"', fix, begin + found.start(1)


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
    before = text[max(0, offset - LOOK_BACK) : offset].rstrip()
    if expected <= {"TICKS"}:
        return f"a length of time needs a unit: {re.split(r'[^0-9.]', before)[-1] or 10}s"
    if word in _FOREIGN:
        return _FOREIGN[word]
    near = _near(word, expected)
    if near:
        return f"did you mean {near}?"
    if expected & {"RPAR"} and word in (";", "from", "window", "hop", "group", "qos"):
        return "close the parenthesis with )"
    for rule in (_after_items, _misplaced, _after_when, _in_events, _in_changes):
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
        last = before.rpartition(" ")[2].lower()
        if last in AGGREGATES and word.isidentifier():
            return f"put what it is of in parentheses: {last}({word})"
        if "AS" in expected and word not in AGGREGATES and re.fullmatch(r"[\w']+", word):
            return f"write AS before a name: AS {word.strip(chr(39))}"
        return "separate what you select by commas, and go on with FROM stream"
    if expected == {"NAME", "QUOTED"} and re.search(r"(?i)\bfrom$", before):
        return "name the stream after FROM; queries do not nest" if word == "(" else "name the stream after FROM"
    if expected - {"$END"} == {"EVENT", "SELECT"}:
        return "begin with SELECT or EVENT, e.g. SELECT count(*) FROM S EVERY 10s WINDOW 60s;"
    if expected == {"EQUALS"}:
        return "write EVENT name = event;"
    if "NAME" in expected and word == "*":
        return "select aggregates, e.g. count(*)"
    if word == "," and re.search(r"(?i)\bfrom\s+\S+$", before):
        return "EQL looks at one stream"
    return None


def _misplaced(expected: set[str], word: str, before: str) -> str | None:
    """Words and commas that belong elsewhere."""
    if word == "continuous" or (re.search(r"(?i)\bcontinuous$", before) and word == "lasting"):
        return "CONTINUOUS stands after the event: DURING LASTING(begin, end) CONTINUOUS"
    if word == "every" and re.search(r"(?i)\bcontinuous\b", before):
        return "write HOP after CONTINUOUS: CONTINUOUS HOP 10s"
    if re.search(r"(?i)\bat\s+every$", before):
        return f"write EVERY {word} without AT, or AT TIME(EVERY {word})"
    if word == "by" and "CONTINUOUS" in expected:
        return "BY stands inside of LASTING: LASTING(begin, end BY column); or write GROUP BY"
    if word == "within" and "WINDOW" in expected:
        return "WITHIN stands after two instants, a @ b WITHIN 5s, or inside of CHANGES; how far back to look is WINDOW"
    if word == "," and expected & {"WINDOW", "PAIR"}:
        return "leave the comma out: what follows stands without one"
    if word == "." and re.search(r"(?i)\bbacklog\s+\d+$", before):
        return "BACKLOG takes a whole number"
    if word == "(" and re.search(r"(?i)\bby$", before):
        return "write the columns without parentheses: BY a, b"
    return None


def _after_when(expected: set[str], word: str, before: str) -> str | None:
    if {"ON", "DURING"} <= expected:
        clauses = "say what drives the query: ON ARRIVAL, EVERY 10s, AT an instant, or DURING a lasting event"
        if word in ("window", "hop", "group", "emit", "qos"):
            return f"{clauses}; {word.upper()} comes after it"
        named = word.isidentifier() and re.search(r"(?i)\bfrom\s+\S+$", before)
        return f"streams have no second name here; {clauses}" if named else clauses
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
        return "end what stands before it with a semicolon"
    return None


def _in_events(expected: set[str], word: str, before: str) -> str | None:
    called = re.search(r"(?i)\b(arrive|becomes|changes|lasting|time)$", before)
    if expected == {"LPAR"} and called:
        return f"write {called.group(1).upper()} with parentheses: {called.group(1).upper()}(…)"
    named = re.search(r"(?i)\b(arrive|becomes|changes)\($", before)
    if expected == {"NAME", "QUOTED"} and named:
        return f"name the stream: {named.group(1).upper()}(S{'' if named.group(1).lower() == 'arrive' else '…'})"
    if word == ":" and "AT_SIGN" in expected:
        return "a condition stands inside of ARRIVE or BECOMES: ARRIVE(S: v > 1)"
    if "PLUS" in expected and "LASTING" in expected and re.match(r"-|\d", word):
        return (
            f"a length of time has a plus: +{word if word != '-' else '10s'}; or write an event, e.g. ARRIVE(S: v > 1)"
        )
    if "LASTING" in expected and "ARRIVE" in expected:
        return "write an event: ARRIVE(S: condition), BECOMES(S: condition), CHANGES(S.c BY 5), TIME(…), LASTING(…)"
    if expected == {"COLON"}:
        return "put a colon between the stream and the condition: BECOMES(S: v > 1)"
    if "COLON" in expected and "RPAR" in expected:
        return "put a colon between the stream and the condition: ARRIVE(S: v > 1)"
    if expected == {"EACH", "FIFO", "LIFO"}:
        return "PAIR takes EACH (an end closes all that are open), FIFO or LIFO"
    if "COMMA" in expected and re.search(r"(?i)lasting\([^()]*(\([^()]*\))?[^()]*$", before):
        return "LASTING takes a begin and an end: LASTING(begin, end) or LASTING(begin, +10s)"
    if "DURATION" in expected:
        return "give a length of time with a unit, e.g. 10s, 500ms, 1 hour"
    if "STRING" in expected:
        return "TIME takes '2026-01-01T00:00Z', EVERY 10s or CRON '0 * * * *'"
    return None


def _in_changes(expected: set[str], word: str, before: str) -> str | None:
    if expected == {"BY", "UP", "DOWN"}:
        return "say by how much: CHANGES(S.column UP BY 5)"
    if expected == {"DOT"}:
        return "name the column: CHANGES(S.column BY 5)"
    if expected == {"INTEGER", "DECIMAL", "MINUS"}:
        return "give a number, e.g. BY 5"
    if {"SINCE", "WITHIN"} <= expected:
        return "a change is a number, in the units of the column: CHANGES(S.c BY 5), CHANGES(S.c BY 5 WITHIN 1m)"
    return None
