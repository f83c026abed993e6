"""Events of EQL that hold others: clocks inside sequences, and names that double what they stand for."""

from __future__ import annotations

import time
from itertools import product

import pytest

import streamproof as sp
from streamproof.engines.job import on
from streamproof.errors import StreamproofError
from streamproof.language import eql
from streamproof.plan.check import check
from streamproof.plan.nodes import sources

SCHEMA = sp.Schema.of({"v": "int64"}, unit="s")
STARTS = (1, 2, 3, 6, 9)
CLOCKS = {
    "TIME(EVERY 5s)": lambda t: t % 5 == 0,
    "TIME(CRON '* * * * *')": lambda t: t % 60 == 0,
    "TIME('1970-01-01T00:00:03Z')": lambda t: t == 3,
}


def _given(text: str) -> tuple[sp.Plan, dict[str, sp.PhysicalStream]]:
    events = [sp.Insert(f"{start}", start, start + 1, {"v": 1}) for start in STARTS]
    plan = eql.loads(f"SELECT count(*) FROM D AT {text} WINDOW 2s")
    return plan, {name: sp.PhysicalStream.from_events(events, schema=SCHEMA) for name in sources(plan)}


@pytest.mark.parametrize(("clock", "within"), list(product(CLOCKS, (1, 2, 4))))
def test_an_arrival_follows_a_clock(clock: str, within: int) -> None:
    """A clock ended in an exception, and a single time was refused as if it were one that goes on."""
    plan, inputs = _given(f"({clock} @ ARRIVE(A) WITHIN {within}s)")
    fired = [t for t in STARTS if any(CLOCKS[clock](before) for before in range(max(t - within, 0), t + 1))]
    for engine in ("local", "duckdb"):
        rows = on(plan, engine, horizon=20).run(inputs).history.to_rows()
        assert [row.le for row in rows] == fired, (engine, fired)


def test_two_clocks_do_not_follow_each_other() -> None:
    for one, other in product(CLOCKS, CLOCKS):
        plan, _ = _given(f"({one} @ {other})")
        with pytest.raises(StreamproofError, match="two times cannot follow each other"):
            check(plan, {"D": SCHEMA})


@pytest.mark.parametrize("sign", ["@ {0}", "@ {0} WITHIN 3s"])
def test_definitions_that_double_are_refused_at_once(sign: str) -> None:
    """The time that it takes depends on the text, not on what its names stand for."""
    took = []
    for count in (20, 40):
        lines = [f"EVENT e{n + 1} = e{n} {sign.format(f'e{n}')};" for n in range(count)]
        text = f"EVENT e0 = ARRIVE(S); {' '.join(lines)} SELECT count(*) FROM S AT e{count} WINDOW 5s;"
        began = time.process_time()
        with pytest.raises(StreamproofError, match=r"the event is made of [\d,]+ others") as caught:
            check(eql.loads(text), {"S": SCHEMA})
        took.append(time.process_time() - began)
        assert caught.value.name == "limit_exceeded"
    assert max(took) < 1


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_an_input_that_no_source_reads_is_refused(engine: str) -> None:
    row = {"kind": "insert", "id": "a", "le": 0, "re": 1, "payload": {"v": 1}}
    with pytest.raises(StreamproofError, match='the plan has no source "extra"') as caught:
        sp.source("D", {"v": "int64"}).on(engine).run({"D": [row], "extra": [row]})
    assert caught.value.fix == 'known: "D"'
