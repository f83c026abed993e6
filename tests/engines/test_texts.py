"""Texts that grow are refused by name before they fill the memory, on every engine at the same size."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Engine, Settings, engine
from streamproof.errors import StreamproofError
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.limits import LONGEST_TEXT
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.rewrites import rewrite

SCHEMA = Schema.of({"k": "string", "n": "string"})
GROWING = {
    "k || k": 27,
    "concat(k, '-', k, n)": 27,
    "replace(k, 'a', 'aaaa')": 14,
    "replace(k, n, 'aaaa')": 14,
    "replace(k, '', 'aaaa') || lower(k)": 27,
}
AT_MOST = {
    "k || n": (LONGEST_TEXT - 1, "b", True),
    "k || 'é'": (LONGEST_TEXT - 1, "b", False),  # two bytes
    "n || k || n": (LONGEST_TEXT - 1, "b", False),
    "replace(k, 'aa', n)": (LONGEST_TEXT, "bb", True),
    "replace(k, 'a', n)": (LONGEST_TEXT // 2, "bb", True),
    "replace(k, 'aa', n || 'b')": (LONGEST_TEXT, "bb", False),
    "length(k || n)": (LONGEST_TEXT, "b", False),
    "length(k || null)": (LONGEST_TEXT, "b", True),
}


def run(under_test: Engine, plan: Plan, k: str, n: str) -> list[object]:
    typed = check(plan, {"S": SCHEMA})
    events = History.from_rows(SCHEMA, [(0, 1, {"k": k, "n": n})])
    batches = under_test.run(typed, {"S": [events.to_batch()]}, Settings())
    return [row.payload["k"] for row in History.from_batches(typed.schema, batches).to_rows()]


def grown(under_test: Engine) -> None:
    """Doubled again and again, each time in a step of its own."""
    for text, times in GROWING.items():
        plan: Plan = nodes.Source("S")
        for _ in range(times):
            plan = nodes.Select(plan, (("k", parse(text)), ("n", parse("n"))))
        with pytest.raises(
            StreamproofError, match=r"a text of \d+ bytes would be made; the limit is 10000000"
        ) as caught:
            run(under_test, plan, "aaaaaaaaaa", "a")
        assert caught.value.name == "limit_exceeded", text
        assert caught.value.at, text


def bounded(under_test: Engine) -> None:
    """The limit itself is not beyond the limit."""
    for text, (size, n, fits) in AT_MOST.items():
        plan = nodes.Select(nodes.Source("S"), (("k", parse(f"length({text})" if "length" not in text else text)),))
        if fits:
            assert len(run(under_test, plan, "a" * size, n)) == 1, text
            continue
        with pytest.raises(StreamproofError) as caught:
            run(under_test, plan, "a" * size, n)
        assert caught.value.name == "limit_exceeded", text


@pytest.fixture(params=["local", "duckdb", "postgres"])
def under_test(request: pytest.FixtureRequest) -> Engine:
    if request.param == "postgres":
        return engine("postgres", dsn=request.getfixturevalue("postgres_dsn"))
    return engine(request.param)


def test_texts_that_double_end_at_the_limit(under_test: Engine) -> None:
    grown(under_test)


def test_texts_up_to_the_limit_are_made(under_test: Engine) -> None:
    bounded(under_test)


@pytest.mark.parametrize("text", GROWING)
def test_a_text_that_a_filter_keeps_short_is_not_made_for_others(under_test: Engine, text: str) -> None:
    guarded = nodes.Where(nodes.Where(nodes.Source("S"), parse("length(k) < 100")), parse(f"length({text}) > 0"))
    plan = rewrite(guarded, {"S": SCHEMA})
    assert run(under_test, plan, "a" * 9_000_000, "a") == []


def test_a_batch_of_long_texts_is_refused_before_it_is_made() -> None:
    """Each of them is short enough."""
    events = History.from_rows(SCHEMA, [(n, n + 1, {"k": "a" * 1000 + str(n), "n": "a"}) for n in range(2000)])
    typed = check(
        nodes.Select(nodes.Source("S"), (("k", parse("replace(k, 'a', 'aaaaaaaaaa" + "a" * 1000 + "')")),)),
        {"S": SCHEMA},
    )
    with pytest.raises(StreamproofError, match=r"texts of .* bytes would be made in one batch") as caught:
        list(engine("local").run(typed, {"S": [events.to_batch()]}, Settings()))
    assert caught.value.name == "limit_exceeded"
