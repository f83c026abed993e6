"""Rules that the output of a streaming engine keeps on the way, whatever the result is.

It can be said in physical events that break no rule, so what an output CTI has sealed stays; no push gives a row twice
or one that cancels; under the policy ``final`` nothing is taken back; when all input is complete, so is the output; and
it is sealed as far as every operator must seal it, whatever the input is.

>>> from streamproof.events.schema import Schema
>>> schema = Schema.of({"v": "int64"})
>>> early = Batch.from_rows(schema, [], frontier=9)
>>> late = Batch.from_rows(schema, [(3, 5, 1, {"v": 1})], frontier=FOREVER)
>>> broken_promise([early, late]).kind
'events'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from streamproof.errors import InputError
from streamproof.events.bag import python_rows
from streamproof.events.batch import Batch
from streamproof.events.order import canonical
from streamproof.events.physical import from_batches
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.events.validate import Validator
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, Col, columns_of
from streamproof.plan.windows import Hopping, Snapshot, Tumbling

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


# --- how far the output must be sealed --------------------------------------------------------------------------------


def demanded(typed: Typed, frontiers: Mapping[str, int], emission: Emission) -> int:
    """The least CTI that the output must have; the beginning of time where nothing can be said.

    Only what is the same for every input is demanded; where it depends on what is live, nothing is. Under the policy
    ``final`` the output waits for whatever is not settled, so nothing is demanded of it.

    >>> from streamproof.plan.check import check
    >>> from streamproof.events.schema import Schema
    >>> demanded(check(nodes.Shift(nodes.Source("S"), 3), {"S": Schema.of({"v": "int64"})}), {"S": 10}, "speculative")
    13
    """
    return BEGINNING if emission == "final" else _visit(typed, frontiers, BEGINNING, {})


def _visit(typed: Typed, frontiers: Mapping[str, int], group: int, known: dict[tuple[int, int], int]) -> int:
    """What is read twice is looked at once; inside of groups, once for each CTI that a group has."""
    if (id(typed), group) not in known:
        known[id(typed), group] = _least(typed, frontiers, group, known)
    return known[id(typed), group]


def _least(typed: Typed, frontiers: Mapping[str, int], group: int, known: dict[tuple[int, int], int]) -> int:
    node = typed.node
    if isinstance(node, nodes.Source):
        return frontiers.get(node.name, BEGINNING)
    if isinstance(node, nodes.GroupInput):
        return group
    if isinstance(node, nodes.GroupApply):
        inner = _visit(typed.inputs[0], frontiers, group, known)
        return _visit(typed.inputs[1], frontiers, inner, known)
    least = min(_visit(part, frontiers, group, known) for part in typed.inputs)
    return least if least in (BEGINNING, FOREVER) else _after(node, least)


def _after(node: nodes.Node, cti: int) -> int:
    """What an operator must make of a finite CTI."""
    if node.keeps_ctis:
        return cti
    if isinstance(node, nodes.Shift | nodes.Extend) and isinstance(node.by, int):
        return cti + (node.by if isinstance(node, nodes.Shift) else min(node.by, 0))
    if isinstance(node, nodes.AlterDuration):
        dur = node.dur
        reads_end = not isinstance(dur, int | str | None) and Col(LIFE_END) in columns_of(dur)  # type: ignore[arg-type]
        return BEGINNING if reads_end else cti
    if isinstance(node, nodes.Aggregation | nodes.TopK):
        return _of_windows(node, cti)
    return BEGINNING


def _of_windows(node: nodes.Aggregation | nodes.TopK, cti: int) -> int:
    """Results carry the lifetime of their window: the first one that can still get members holds the output back."""
    if isinstance(node, nodes.Aggregation) and any(agg.function.ordered for _, agg in node.aggs):
        return BEGINNING  # an end that moves may change which event is the first
    window = node.window
    if isinstance(window, Snapshot):
        return cti
    if not isinstance(window, Tumbling | Hopping):
        return BEGINNING
    hop = window.hop if isinstance(window, Hopping) else window.size
    if not (isinstance(window.size, int) and isinstance(hop, int) and isinstance(window.offset, int)):
        return BEGINNING
    if node.output == "point_end":
        return cti
    first = window.offset + ((cti - window.offset - window.size) // hop + 1) * hop
    return min(cti, first)


class CtiProgress:
    """Whether the output is sealed as far as it must be, push by push."""

    def __init__(self, typed: Typed, emission: Emission) -> None:
        self._typed, self._emission = typed, emission
        self._frontiers: dict[str, int] = {}
        self._sealed = BEGINNING
        self.broken = Broken()

    def check(self, frontiers: Mapping[str, int], output: int) -> None:
        """Take in how far sources have come, and the CTI that was given then."""
        for source, frontier in frontiers.items():
            self._frontiers[source] = max(frontier, self._frontiers.get(source, BEGINNING))
        self._sealed = max(self._sealed, output)
        wanted = demanded(self._typed, self._frontiers, self._emission)
        if self._sealed < wanted and not self.broken:
            shown = f"{show_tick(wanted)}, found {show_tick(self._sealed)}"
            self.broken = Broken("progress", f"the output should be sealed up to {shown}")
