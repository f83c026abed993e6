"""Nothing of a tree is left unread: each class of sqlglot's and each argument is consumed, or refused by name.

The trees come from texts that are read; then one thing in them is changed, whatever sqlglot has. What comes of it is
another plan, or a refusal: a new version of sqlglot with more clauses cannot open a hole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import pytest
from sqlglot import exp

from streamproof.errors import PlanError
from streamproof.language.sql import reader
from streamproof.plan.grammar import condition, statements
from streamproof.plan.parse import RULES, admit

EXPRESSIONS = (
    "a + b - c * d / e // f % g ** h", "a = b and c <> d or e < f and g <= h or i > j and k >= l", "a || b",
    "a is distinct from b or c is not distinct from d", "a like 'x'", "a not like 'x'", "a is null", "a is not null",
    "a between 1 and 2.5", "a in (b, 'x')", "case a when b then c else d end", "case when a then b end", "not a",
    "-a", "-1", "(a)", "true", "null", "cast(a as decimal(10, 2))", "try_cast(a as double)", "a::long",
    "trim(leading from a)", "substring(a from 1 for 2)", "extract(dow from a)", "f(a, b)", '"F"(a)', "l.a = r.b",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM S",
    "SELECT a, b + 1 AS c FROM S AS t WHERE a > 1",
    'SELECT "two words" AS x FROM "other stream"',
    "SELECT k, count(*) AS n, sum(v) FROM S GROUP BY k, TUMBLING(10 s, 1)",
    "SELECT count(DISTINCT v) AS n FROM S GROUP BY SNAPSHOT",
    "SELECT a.k, b.v AS u FROM A AS a JOIN B AS b ON a.k = b.k WHERE a.v > 1",
    "SELECT * FROM A a LEFT OUTER JOIN B b ON a.k = b.k",
    "SELECT * FROM A a ANTI JOIN (SELECT v FROM B) AS b ON a.k = b.v",
    "SELECT * FROM A UNION ALL (SELECT * FROM B) UNION ALL SELECT v FROM (S)",
    "SELECT TOP 2 BY v DESC, k ASC k, v, rank() AS r FROM S GROUP BY k, HOPPING(10, 5)",
    "SELECT TOP 2 BY v DESC * FROM S GROUP BY SNAPSHOT",
    "SELECT k, twavg(v, p => 2) AS x FROM S GROUP BY k, COUNT_END(3)",
    'SELECT "twavg"(v, p := 2) AS x FROM (SELECT v FROM S) AS t GROUP BY COUNT_START(3)',
)


def classes() -> list[type[exp.Expr]]:
    found: set[type[exp.Expr]] = {exp.Expression}
    waiting = list(found)
    while waiting:
        more = set(waiting.pop().__subclasses__()) - found
        found |= more
        waiting += more
    return sorted(found, key=lambda kind: kind.__name__)


CLASSES = [kind for kind in classes() if kind.__module__.startswith("sqlglot.")]
NAMES = sorted({name for kind in CLASSES for name in getattr(kind, "arg_types", {})} | {"a_name_of_tomorrow"})


class Place(NamedTuple):
    """A node in a tree that is read, and how to read that tree again once it is changed."""

    text: str
    node: exp.Expr
    meaning: Callable[[], object]

    @property
    def kind(self) -> str:
        return type(self.node).__name__


def of_expression(text: str) -> tuple[exp.Expr, Callable[[], object]]:
    tree = condition(text)
    return tree, lambda: admit(tree)


def of_query(text: str) -> tuple[exp.Expr, Callable[[], object]]:
    """The tree of a statement, and the plan of it as it then is, by the door that texts go through."""
    [statement] = reader.statements_of(text)
    [tree] = statements(statement.tokens, text)

    def meaning() -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "statements", lambda tokens, text: [tree])
            return reader.loads(text)

    return tree, meaning


@cache
def places() -> tuple[Place, ...]:
    """Every node of every text."""
    found = []
    for texts, read in ((EXPRESSIONS, of_expression), (QUERIES, of_query)):
        for text in texts:
            tree, meaning = read(text)
            meaning()
            found += [Place(text, node, meaning) for node in tree.walk()]
    return tuple(found)


def kinds_of_places() -> list[Place]:
    """One place for each class, under each class and argument, in queries and in expressions."""
    found = {(p.text in QUERIES, p.kind, type(p.node.parent), p.node.arg_key): p for p in places()}
    return list(found.values())


def after(place: Place, name: str, value: Any) -> object:
    """What a tree means where an argument of a node has another value: the refusal, or the plan."""
    args = place.node.args
    before = dict(args)
    args[name] = value
    try:
        return place.meaning()
    except Exception as error:  # of trees that no text makes, anything but a plan will do
        return error
    finally:
        args.clear()
        args.update(before)


def samples() -> tuple[Any, ...]:
    """What sqlglot hangs on its nodes: flags, words, nodes and lists of them. A flag that is not set says nothing."""
    name = exp.to_identifier("x")
    return True, "x", 1, name, [name], exp.column("x"), [exp.Literal.number(1)], exp.Var(this="X")


def test_every_argument_that_a_node_could_have_is_consumed_or_refused() -> None:
    silent = []
    for place in kinds_of_places():
        plain = repr(place.meaning())
        own = place.node.arg_types
        for name in NAMES:
            if place.node.args.get(name) not in (None, [], ""):
                continue
            for value in samples() if name in own else samples()[:1]:
                if repr(after(place, name, value)) == plain and (place.kind, name) not in JUST_NAMES:
                    silent.append((place.kind, name, str(value), place.text))
    assert not silent, silent


JUST_NAMES = {("Table", "alias"), ("Subquery", "alias"), ("TableAlias", "this"), ("Identifier", "this"),
              ("Identifier", "quoted")}  # fmt: skip
"""What only gives a name: the plan is the same where nothing is called by it, or by the same one in quotes."""


def test_the_refusal_of_an_argument_names_it() -> None:
    for place in kinds_of_places():
        found = after(place, "a_name_of_tomorrow", True)
        assert isinstance(found, PlanError), place
        assert found.what == "A NAME OF TOMORROW is not supported here", place
        assert found.fix == "leave it out", place


def test_every_argument_that_is_consumed_has_a_meaning() -> None:
    """What is read is used: without it, or with another value, the plan is another one, or none."""
    silent = []
    for place in kinds_of_places():
        plain = repr(place.meaning())
        for name, value in list(place.node.args.items()):
            if value in (None, [], "", False):
                continue
            for other in others(value):
                if repr(after(place, name, other)) == plain and (place.kind, name) not in JUST_NAMES | SAID_TWICE:
                    silent.append((place.kind, name, str(other), place.text))
    assert not silent, silent


SAID_TWICE = {("TryCast", "safe"), ("DPipe", "safe"), ("Anonymous", "this")}
"""What the class says as well; that it is our TOP, its place says."""


def others(value: Any) -> Iterator[Any]:
    """Other values of the kind that an argument has, and none."""
    yield None
    if isinstance(value, str):
        yield value + "x"
    elif isinstance(value, list):
        yield [*value, *value]
        yield value[:-1]
        yield value[1:]
    elif isinstance(value, exp.Expr):
        yield exp.column("other")
        yield exp.to_identifier("other")


def test_every_class_is_read_where_it_means_something_or_refused() -> None:
    """In the place of each part of each tree, each class there is, over a name."""
    read = tuple({type(place.node) for place in places()})
    silent, raw = set(), set()
    slots = {(type(p.node.parent), p.node.arg_key): p for p in places() if _hangs(p.node)}
    for place in slots.values():
        parent, key = place.node.parent, place.node.arg_key
        assert parent is not None
        assert key is not None
        plain, value = repr(place.meaning()), parent.args[key]
        for kind in set(CLASSES) - {type(place.node)}:
            made = kind(this=exp.to_identifier("other"))
            new = [made if part is place.node else part for part in value] if isinstance(value, list) else made
            found = after(place._replace(node=parent), key, new)
            if repr(found) == plain and (type(parent).__name__, key) not in JUST_NAMES:
                silent.add((kind.__name__, type(parent).__name__, key, place.text))
            elif isinstance(found, Exception) and not isinstance(found, PlanError) and not issubclass(kind, read):
                raw.add((kind.__name__, type(parent).__name__, key, repr(found)))
    assert not silent, silent
    assert not raw, raw


def _hangs(node: exp.Expr) -> bool:
    return node.parent is not None and node.arg_key in node.parent.args


def test_every_rule_for_a_class_is_walked() -> None:
    """Each class that is read stands in one of the trees above."""
    assert {kind.__name__ for kind in RULES} <= {place.kind for place in places()}


def test_classes_without_a_rule_cannot_stand_in_an_expression() -> None:
    for kind in CLASSES:
        if kind in RULES or issubclass(kind, exp.Column):
            continue
        for tree in (kind(), kind(this=exp.column("v")), exp.Not(this=kind())):
            with pytest.raises(PlanError) as caught:
                admit(tree)
            assert re.search("cannot stand in an expression|is not supported here", caught.value.what)
