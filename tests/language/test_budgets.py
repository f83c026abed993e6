"""Hand-made bad texts: an answer or a refusal by name, in time that grows no faster than the text."""

# ruff: noqa: E501  # texts stand in one line

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from streamproof import documents
from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema
from streamproof.events.time import duration
from streamproof.language import eql, json, sql, xml
from streamproof.plan.check import check
from streamproof.plan.nodes import Node
from streamproof.plan.parse import parse

SCHEMAS = {name: Schema.of({"v": "int64", "k": "int64"}, unit="ms") for name in "ABDS"}
COUNT = "SELECT count(*) FROM D"
QUERY = f"{COUNT} EVERY 10s WINDOW 10s"
LASTS = "LASTING(ARRIVE(A), ARRIVE(B))"


def nested(form: str, depth: int) -> str:
    """An event inside of an event inside of an event."""
    event = LASTS
    for _ in range(depth):
        event = form.replace("X", event)
    return f"{COUNT} DURING {event}"


def defined(form: str, count: int) -> str:
    """Every event twice in the next one."""
    lines = [f"EVENT e{n} = {form.replace('X', f'e{n - 1}')};" for n in range(1, count)]
    return f"EVENT e0 = ARRIVE(A); {' '.join(lines)} {COUNT} AT e{count - 1} WINDOW 5s"


# text of size n, by language; n is about the number of characters in thousands
EQL: dict[str, Callable[[int], str]] = {
    "definitions that double": lambda n: defined("X @ X WITHIN 1s", n // 4),
    "lasting definitions that double": lambda n: defined("LASTING(X, X) EVERY 5s", n // 4),
    "lasting events within each other": lambda n: nested(f"({LASTS} @ X)", n // 2),
    "lasting events around each other": lambda n: nested(f"(X) @ {LASTS}", n // 2),
    "lasting events open at each other's begin": lambda n: nested(f"({LASTS} @ X OPEN)", n // 2),
    "events that repeat": lambda n: nested("LASTING(X EVERY 5s, ARRIVE(B))", n // 2),
    "a chain of @": lambda n: f"{COUNT} AT {'ARRIVE(A) @ ' * (80 * n)} ARRIVE(B)",
    "a chain of names": lambda n: defined("X", 50 * n),
    "a comment that is never closed": lambda n: f"{QUERY} /* {'x' * 1000 * n}",
    "comments that are never closed": lambda n: f"{QUERY} {'/* ' * 300 * n}",
    "stars": lambda n: f"{QUERY} /{'*' * 1000 * n}",
    "quotes": lambda n: f"{QUERY} '{QUERY}" + "''" * 500 * n,
    "quotes of two kinds": lambda n: f"{QUERY} \"{QUERY}" + "\"'" * 500 * n,
    "digits": lambda n: f"{COUNT} EVERY {'9' * 1000 * n} ticks WINDOW 5s",
    "digits of a length of time": lambda n: f"{COUNT} EVERY {'9' * 1000 * n}s WINDOW 5s",
    "digits of a change": lambda n: f"{COUNT} AT CHANGES(A.v BY {'9' * 1000 * n})",
    "an exponent": lambda n: f"{COUNT} AT CHANGES(A.v BY 1e{'9' * n})",
    "parentheses": lambda n: f"{COUNT} WHERE {'(' * 1000 * n}",
    "columns": lambda n: f"{COUNT} AT ARRIVE(A) BY " + ", ".join(f"c{k}" for k in range(100 * n)),
    "aggregates": lambda n: "SELECT " + ", ".join(f"sum(v) AS a{k}" for k in range(30 * n)) + " FROM D ON ARRIVAL",
    "queries": lambda n: ";".join([QUERY] * (20 * n)),
    "words that are missing": lambda n: "SELECT FROM " * (80 * n),
    "blanks before a mistake": lambda n: f"{COUNT} AT LASTING({' ' * 1000 * n}!",
    "half a character": lambda n: QUERY + " '\ud800'" * n,
    "half a character as a stream": lambda n: f'SELECT count(*) FROM "{chr(0xDFFF) * n}" ON ARRIVAL',
    "a pattern of a clock": lambda n: f"{COUNT} AT TIME(CRON '{'*/5,' * 200 * n}1 * * * *') WINDOW 5s",
    "a time beyond all calendars": lambda n: f"{COUNT} AT TIME('{'9' * n}-01-01T00:00Z') WINDOW 5s",
}  # fmt: skip
SOURCE = '{"op": "source", "name": "D"}'
JSON: dict[str, Callable[[int], str]] = {
    "digits": lambda n: f'{{"op": "shift", "in": {SOURCE}, "by": {"9" * 1000 * n}}}',
    "digits as text": lambda n: f'{{"op": "shift", "in": {SOURCE}, "by": "{"9" * 1000 * n}s"}}',
    "an exponent": lambda n: f'{{"op": "shift", "in": {SOURCE}, "by": 1e{"9" * 1000 * n}}}',
    "not a number": lambda _: f'{{"op": "shift", "in": {SOURCE}, "by": NaN}}',
    "infinity": lambda _: f'{{"op": "shift", "in": {SOURCE}, "by": 1e999}}',
    "lists": lambda n: "[" * 1000 * n,
    "nodes inside of nodes": lambda n: '{"op": "to_point", "in": ' * 40 * n + SOURCE + "}" * 40 * n,
    "half a character": lambda _: '{"op": "source", "name": "\\ud800"}',
    "a field that is not of a plan": lambda _: f'{{"version": 1, "plan": {SOURCE}, "limit": 3}}',
    "a version that is none": lambda _: f'{{"version": true, "plan": {SOURCE}}}',
    "a constant with a large exponent": lambda n: (
        f'{{"op": "udo", "fn": "f", "in": {SOURCE}, "params": {{"p": {{"type": "decimal", "value": "1e{"9" * n}"}}}}}}'
    ),
}
XML: dict[str, Callable[[int], str]] = {
    "digits": lambda n: f'<shift by="{"9" * 1000 * n}"><source name="D"/></shift>',
    "a count": lambda n: f'<topk k="{"9" * 1000 * n}"><by expr="v"/><source name="D"/></topk>',
    "nodes inside of nodes": lambda n: "<to_point>" * 40 * n + '<source name="D"/>' + "</to_point>" * 40 * n,
    "elements that are never closed": lambda n: "<a>" * 300 * n,
    "attributes": lambda n: '<source name="D" ' + " ".join(f'a{k}="1"' for k in range(100 * n)) + "/>",
    "an attribute of the plan": lambda _: '<plan version="1" limit="3"><source name="D"/></plan>',
}
S = "SELECT * FROM S"
SQL: dict[str, Callable[[int], str]] = {
    "items of TOP": lambda n: f"SELECT TOP 2 BY {', '.join(f'c{k} DESC' for k in range(4 * n))} * FROM S GROUP BY SNAPSHOT",
    "blanks after TOP": lambda n: f"SELECT TOP 2 BY v{' ' * 1000 * n}DESC * FROM S GROUP BY SNAPSHOT",
    "TOP without an end": lambda n: "SELECT TOP 2 BY " + "v DESC, " * 100 * n,
    "types in types": lambda n: f"SELECT cast(v AS {'varchar(' * n}1{')' * n}) AS x FROM S",
    "unions": lambda n: " UNION ALL ".join([S] * 25 * n),
    "queries in queries": lambda n: "SELECT * FROM (" * n + S + ")" * n,
    "queries in parentheses": lambda n: "(" * 20 * n + S + ")" * 20 * n,
    "comments that are never closed": lambda n: f"{S} {'/* ' * 300 * n}",
    "comments in comments": lambda n: f"{S} {'/* ' * 300 * n}{'*/ ' * 300 * n}",
    "lines of comments": lambda n: S + " -- x\n" * 150 * n,
    "quotes": lambda n: "SELECT " + "'" * (1000 * n + 1),
    "quotes of names": lambda n: "SELECT " + '"' * (1000 * n + 1),
    "columns": lambda n: "SELECT " + ", ".join(f"v AS c{k}" for k in range(40 * n)) + " FROM S",
    "columns of a join": lambda n: f"SELECT {', '.join(f'a.v AS c{k}' for k in range(30 * n))} FROM A a JOIN B b ON a.k = b.k",
    "keys": lambda n: f"SELECT count(*) FROM S GROUP BY {', '.join(f'c{k}' for k in range(40 * n))}, SNAPSHOT",
    "aggregates": lambda n: f"SELECT {', '.join(f'sum(v) AS c{k}' for k in range(30 * n))} FROM S GROUP BY SNAPSHOT",
    "parameters": lambda n: f"SELECT f(v, {', '.join(f'p{k} => {k}' for k in range(30 * n))}) AS x FROM S GROUP BY SNAPSHOT",
    "statements": lambda n: ";".join([S] * 30 * n),
    "semicolons": lambda n: ";" * 1000 * n,
    "words that are missing": lambda n: "SELECT FROM " * 80 * n,
    "joins": lambda n: "SELECT * FROM A a" + " JOIN B b ON a.k = b.k" * 20 * n,
    "a length of time in many parts": lambda n: f"SELECT count(*) FROM S GROUP BY TUMBLING({'1 h ' * 200 * n})",
    "digits of a count": lambda n: f"SELECT count(*) FROM S GROUP BY COUNT_START({'9' * n})",
    "half a character": lambda n: "SELECT '\ud800' AS x FROM S",
    "a NUL": lambda n: "SELECT \0 FROM S",
    "a NUL in a name": lambda n: 'SELECT * FROM "a\0b"',
    "beyond all limits": lambda n: S + " " * 200_000,
}  # fmt: skip
EXPRESSIONS: dict[str, Callable[[int], str]] = {
    **{f"{word}, never closed": lambda n, word=word: word * 50 * n  # type: ignore[misc]
       for word in ("(", "[", "{", "f(", "timestamp(", "decimal(", "struct(", "map(", "case when ", "row(")},
    **{f"{word} before a column": lambda n, word=word: word * (15_000 // len(word) * n // 80) + "v"  # type: ignore[misc]
       for word in ("@", "- ", "not ", "~", "!", "+ ")},
    "cases": lambda n: "case when v then " * 8 * n + "1" + " end" * 8 * n,
    "branches": lambda n: f"case {' '.join(f'when v = {k} then {k}' for k in range(6 * n))} end",
    "arrays": lambda n: "array[" * 20 * n + "v" + "]" * 20 * n,
    "a long name": lambda n: "a" * 200 * n,
    "a long name in quotes": lambda n: '"' + "a" * 200 * n + '"',
    "points": lambda n: ".".join("a" * 80 * n),
    "casts of casts": lambda n: "v" + "::int" * 40 * n,
    "values of in": lambda n: f"v in ({', '.join(map(str, range(25 * n)))})",
    "conditions": lambda n: " and ".join(["v > 1"] * 18 * n),
    "sums": lambda n: " + ".join(["v"] * 40 * n),
    "joined texts": lambda n: " || ".join(["k"] * 30 * n),
    "comments": lambda n: "v " + "/* x */ " * 20 * n,
    "digits": lambda n: "1" * 200 * n,
    "digits after the point": lambda n: "1." + "1" * 200 * n,
    "an exponent": lambda n: "1e" + "9" * n,
    "digits of a decimal": lambda n: f"cast('{'9' * 200 * n}' as decimal(38,2))",
    "an exponent of a decimal": lambda n: f"cast('1e{'9' * min(n, 9)}' as decimal(38,2))",
    "digits of a type": lambda n: f"cast(v as decimal({'9' * 200 * n}, 2))",
    "digits of a year": lambda n: f"cast('{'9' * 200 * n}-01-01T00:00:00Z' as timestamp)",
    "a pattern": lambda n: f"k like '{'%_' * 100 * n}'",
    "a NUL": lambda n: "v \0 + 1",
    "half a character": lambda n: "k = '\ud800'",
}  # fmt: skip
DOCUMENTS: dict[str, Callable[[int], str]] = {
    "digits": lambda n: "9" * 1000 * n,
    "an exponent": lambda n: "1e" + "9" * n,
    "lists": lambda n: "[" * 1000 * n,
    "keys": lambda n: "{" + ",".join(f'"k{k}": 1' for k in range(300 * n)) + "}",
    "a key that comes twice": lambda n: "{" + ",".join(f'"k{k}": 1' for k in range(300 * n)) + ', "k1": 1}',
    "backslashes": lambda n: '"' + "\\" * 1000 * n,
    "half a character": lambda n: '"\\ud800"',
}  # fmt: skip
NUMBERS: dict[str, Callable[[int], str]] = {
    "digits": lambda n: "9" * 100 * n, "an exponent": lambda n: "1e" + "9" * n, "a ratio": lambda n: "1/" + "9" * 100 * n,
}  # fmt: skip
SPANS: dict[str, Callable[[int], str]] = {
    "parts": lambda n: "1h " * 100 * n, "digits": lambda n: "9" * 100 * n + "s",
    "digits after the point": lambda n: "0." + "9" * 100 * n + "s",
}  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """Anything that reads a text, with the name under which the cases are known."""

    suffix: str
    loads: Callable[[str], object]


READERS = (
    (Reader(".sql", lambda text: [check(plan, SCHEMAS) for plan in sql.loads_all(text).values()]), SQL),
    (Reader("expression", parse.__wrapped__), EXPRESSIONS),
    (Reader("configuration", lambda text: documents.parse(text, exact=True)), DOCUMENTS),
    (Reader("number", documents.fraction), NUMBERS),
    (Reader("duration", lambda text: duration(text, "ms")), SPANS),
)
CASES = [
    pytest.param(language, text, id=f"{language.suffix} {name}")
    for language, texts in ((eql, EQL), (json, JSON), (xml, XML), *READERS)
    for name, text in texts.items()
]  # fmt: skip


def seconds(language: object, text: str) -> float:
    """CPU time of reading and checking a text; every error is one of ours."""
    begun = time.process_time()
    try:
        found = language.loads(text)  # type: ignore[attr-defined]
        if isinstance(found, Node):
            check(found, SCHEMAS)
    except StreamproofError as error:
        assert len(str(error)) < 2000, "the message repeats the text"  # noqa: PT017  # many texts are no error
        str(error).encode()
    return time.process_time() - begun


@pytest.fixture(scope="module", autouse=True)
def _only_what_is_new() -> Iterator[None]:
    """What other tests left behind is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize(("language", "text"), CASES)
def test_what_is_bad_is_refused_in_time_that_grows_with_its_size(language: object, text: Callable[[int], str]) -> None:
    seconds(language, text(1))  # imports
    once, twice = (min(seconds(language, text(n)) for _ in range(2)) for n in (40, 80))  # others use this machine too
    assert twice < 2
    assert twice < 3 * once + 0.1


@pytest.mark.parametrize("text", [
    pytest.param(f'{{"version": 1, "plan": {SOURCE}, "limit": 3}}', id="json"),
    pytest.param('<plan version="1" limit="3"><source name="D"/></plan>', id="xml"),
])  # fmt: skip
def test_fields_that_plan_files_do_not_have_are_refused_by_name(text: str) -> None:
    with pytest.raises(StreamproofError, match=r'no (field|attribute) "limit"'):
        (json if text.startswith("{") else xml).loads(text)


def test_events_in_events_cost_what_they_are_made_of() -> None:
    """Each level of events that lie within each other reads its parts several times; they are computed once."""
    typed = check(eql.loads(nested(f"({LASTS} @ X)", 8)), SCHEMAS)
    assert len({id(part) for part in _parts(typed)}) < 1000


def _parts(typed: object) -> list[object]:
    found: dict[int, object] = {}
    waiting = [typed]
    while waiting:
        part = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part
            waiting += part.inputs  # type: ignore[attr-defined]
    return list(found.values())
