"""Promises of an output on the way: as strict as the validator of physical events, and no stricter."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.physical import from_batches
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator
from streamproof.workbench.promises import broken_promise

SCHEMA = Schema.of({"v": "int64"})
LIFETIMES = [(le, re) for le in range(2) for re in (*range(le + 1, 4), FOREVER)]


@st.composite
def outputs(draw: st.DrawFn) -> list[Batch]:
    """Pushes of a few rows, often legal: what goes was mostly there, and CTIs are low."""
    live: Counter[tuple[int, int, int]] = Counter()
    made = []
    for _ in range(draw(st.integers(1, 4))):
        push: Counter[tuple[int, int, int]] = Counter()
        for _ in range(draw(st.integers(0, 4))):
            held = sorted(live.elements())
            if held and draw(st.integers(0, 3)):
                le, re, v = draw(st.sampled_from(held))
                push[le, re, v] -= 1
                live[le, re, v] -= 1
                if draw(st.booleans()):
                    row = (le, draw(st.sampled_from([end for start, end in LIFETIMES if start == le])), v)
                    push[row] += 1
                    live[row] += 1
            else:
                row = (*draw(st.sampled_from(LIFETIMES)), draw(st.integers(0, 1)))
                sign = draw(st.sampled_from([1, 1, 1, 1, 1, -1]))
                push[row] += sign
                live[row] += sign
        rows = [(le, re, w, {"v": v}) for (le, re, v), w in push.items() if w]
        made.append(Batch.from_rows(SCHEMA, rows, frontier=draw(st.integers(0, 3))))
    return made


def passes_the_validator(output: list[Batch]) -> bool:
    try:
        Validator().check(from_batches(output, schema=SCHEMA))
    except InputError:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(outputs())
def test_as_strict_as_the_validator(output: list[Batch]) -> None:
    broken = broken_promise(output, complete=False)
    assert (broken.kind != "events") == passes_the_validator(output), broken.text


def test_what_is_said() -> None:
    first = Batch.from_rows(SCHEMA, [(1, 4, 1, {"v": 1})], frontier=3)
    gone = Batch.from_rows(SCHEMA, [(1, 4, -1, {"v": 1})])
    assert broken_promise([first, gone]).text == "push 1 changes [1, 4) {'v': 1}, though the CTI before it is 3"
    unknown = Batch.from_rows(SCHEMA, [(1, 5, -1, {"v": 1})])
    assert broken_promise([first, unknown]).text == "push 1 takes back [1, 5) {'v': 1}, which is not there"
    longer = Batch.from_rows(SCHEMA, [(1, 4, -1, {"v": 1}), (1, 9, 1, {"v": 1})], frontier=FOREVER)
    assert not broken_promise([first, longer])
    ending = Batch.from_rows(SCHEMA, [(1, 4, 1, {"v": 1})], frontier=4)
    assert not broken_promise([ending, longer]), "what ends at the CTI is still open"
