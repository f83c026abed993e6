"""Rules that the output of a streaming engine keeps on the way, whatever the result is.

As physical events it passes the validator; what an output CTI has sealed stays; no push gives a row twice or one that
cancels; under the policy ``final`` nothing is taken back; when all input is complete, so is the output.

>>> from streamproof.events.schema import Schema
>>> schema = Schema.of({"v": "int64"})
>>> early = Batch.from_rows(schema, [], frontier=9)
>>> late = Batch.from_rows(schema, [(3, 5, 1, {"v": 1})], frontier=FOREVER)
>>> broken_promise([early, late], schema).kind
'events'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.order import canonical
from streamproof.events.physical import from_batches
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.events.validate import Validator

Rows = Counter[tuple[int, int, str]]


class Broken(NamedTuple):
    """A promise that was broken: which, and how, in words. Nothing if all is well."""

    kind: str = ""
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.kind)


def broken_promise(output: Sequence[Batch], schema: Schema, *, final: bool = False, complete: bool = True) -> Broken:
    """The first promise that an output breaks on the way. ``final``: only what is sealed may be given."""
    output = _telling(output)
    try:
        Validator().check(from_batches(output, schema=schema))
    except InputError as error:
        return Broken("events", f"the output is not a legal stream: {error.what} ({error.at})")
    parts = [_rows(batch) for batch in output]
    for number, batch in enumerate(output):
        if len(parts[number]) < batch.rows.num_rows or 0 in parts[number].values():
            return Broken(
                "cancelling", f"push {number} gives a row twice, or one that it takes back: {batch.rows.to_pylist()}"
            )
        if final and min(parts[number].values(), default=0) < 0:
            return Broken("final", f"push {number} takes something back, though only final results are given")
    last = max((batch.frontier for batch in output), default=FOREVER)
    if complete and last < FOREVER:
        return Broken("complete", f"all input is complete, but the output is sealed up to {show_tick(last)} only")
    return _unsealed(parts, [batch.frontier for batch in output])


def _telling(output: Sequence[Batch]) -> list[Batch]:
    """Without the batches that bring neither rows nor a later CTI."""
    told, last = [], BEGINNING
    for batch in output:
        if batch.rows.num_rows or batch.frontier > last:
            told.append(batch)
            last = max(last, batch.frontier)
    return told


def _unsealed(parts: Sequence[Rows], frontiers: Sequence[int]) -> Broken:
    """Walk back from the end: what later pushes change must lie after every CTI given before."""
    for number, frontier in enumerate(frontiers):
        if number and frontier == frontiers[number - 1] and not parts[number]:
            continue
        later: Rows = Counter()
        for part in parts[number + 1 :]:
            for (le, re, payload), w in part.items():
                if le < frontier:
                    later[le, min(re, frontier), payload] += w
        changed = [row for row, w in later.items() if w]
        if changed:
            le, re, payload = min(changed)
            what = f"later pushes change [{show_tick(le)}, {show_tick(re)}) {payload}"
            return Broken("sealed", f"push {number} sealed history up to {show_tick(frontier)}, but {what}")
    return Broken()


def _rows(batch: Batch) -> Rows:
    rows: Rows = Counter()
    if batch.rows.num_rows:
        for row in canonical(batch.rows).to_pylist():
            le, re, w = row.pop("le"), row.pop("re"), row.pop("w")
            rows[le, re, repr(row)] += w  # whole: what is shown to people is cut
    return rows
