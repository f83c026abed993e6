"""Rules that the output of a streaming engine keeps on the way, whatever the result is.

It can be said in physical events that break no rule, so what an output CTI has sealed stays; no push gives a row twice
or one that cancels; under the policy ``final`` nothing is taken back; when all input is complete, so is the output.

>>> from streamproof.events.schema import Schema
>>> schema = Schema.of({"v": "int64"})
>>> early = Batch.from_rows(schema, [], frontier=9)
>>> late = Batch.from_rows(schema, [(3, 5, 1, {"v": 1})], frontier=FOREVER)
>>> broken_promise([early, late]).kind
'events'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from streamproof.errors import InputError
from streamproof.events.bag import python_rows
from streamproof.events.batch import Batch
from streamproof.events.order import canonical
from streamproof.events.physical import from_batches
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.events.validate import Validator

Rows = Counter[tuple[int, int, str]]


class Broken(NamedTuple):
    """A promise that was broken: which, and how, in words. Nothing if all is well."""

    kind: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.kind)


WELL: Final = Broken()


def broken_promise(output: Sequence[Batch], *, final: bool = False, complete: bool = True) -> Broken:
    """The first promise that an output breaks on the way. ``final``: only what is sealed may be given."""
    output = _telling(output)
    parts = [_rows(batch) for batch in output]
    for number, batch in enumerate(output):
        if len(parts[number]) < batch.rows.num_rows or 0 in parts[number].values():
            return Broken(
                "cancelling", f"push {number} gives a row twice, or one that it takes back: {batch.rows.to_pylist()}"
            )
        if final and min(parts[number].values(), default=0) < 0:
            return Broken("final", f"push {number} takes something back, though only final results are given")
    last = max((batch.frontier for batch in output), default=FOREVER)
    illegal = _illegal(parts, [batch.frontier for batch in output]) or _refused(output)
    if not illegal and complete and last < FOREVER:
        return Broken("complete", f"all input is complete, but the output is sealed up to {show_tick(last)} only")
    return illegal


def _telling(output: Sequence[Batch]) -> list[Batch]:
    """Without the batches that bring neither rows nor a later CTI."""
    told, last = [], BEGINNING
    for batch in output:
        if batch.rows.num_rows or batch.frontier > last:
            told.append(batch)
            last = max(last, batch.frontier)
    return told


def _illegal(parts: Sequence[Rows], frontiers: Sequence[int]) -> Broken:
    """What no physical stream can say: see `events.validate`, whose rules these are, over signed rows."""
    live: Rows = Counter()
    sealed = BEGINNING
    for number, (part, frontier) in enumerate(zip(parts, frontiers, strict=True)):
        live.update(part)
        unmatched = [row for row in part if live[row] < 0]
        if unmatched:
            return Broken("events", f"push {number} takes back {_shown(unmatched)}, which is not there")
        changed = _before(part, sealed)
        if changed:
            cti = f"though the CTI before it is {show_tick(sealed)}"
            return Broken("events", f"push {number} changes {_shown(changed)}, {cti}")
        sealed = max(sealed, frontier)
    return WELL


def _before(part: Rows, sealed: int) -> list[tuple[int, int, str]]:
    """The rows that change history before a CTI. What began before it may only get another end, from there on."""
    early = [row for row in part if row[0] < sealed or row[1] <= row[0]]
    balance: Counter[tuple[int, str]] = Counter()
    for le, re, payload in early:
        balance[le, payload] += part[le, re, payload]
    return [row for row in early if row[1] < max(sealed, row[0] + 1) or balance[row[0], row[2]]]


def _refused(output: Sequence[Batch]) -> Broken:
    """What the validator of physical events says of the output."""
    if not output:
        return WELL
    try:
        Validator().check(from_batches(output, schema=output[0].schema))
    except InputError as error:
        return Broken("events", str(error))
    return WELL


def _shown(rows: list[tuple[int, int, str]]) -> str:
    le, re, payload = min(rows)
    return f"[{show_tick(le)}, {show_tick(re)}) {payload}"


def _rows(batch: Batch) -> Rows:
    rows: Rows = Counter()
    if batch.rows.num_rows:
        for le, re, w, payload in python_rows(canonical(batch.rows)):
            rows[le, re, repr(payload)] += w  # whole: what is shown to people is cut
    return rows
