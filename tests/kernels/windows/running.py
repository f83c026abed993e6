"""Running a window kernel over random legal streams, split into batches at random, and what its output sums up to."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed, check
from streamproof.plan.expr import Col
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from streamproof.plan.windows import Hopping, Snapshot, Tumbling, Window
from streamproof.workbench.case import CaseStream
from streamproof.workbench.draw.choices import Choices, DrawnColumn, DrawnShape
from streamproof.workbench.draw.dense import TYPES, UNITS, random_schema, random_stream
from streamproof.workbench.draw.windowed import WindowMaker
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.evaluator.values import Row, identity
from streamproof.workbench.modules import all_modules

Bag = Counter[tuple[Any, ...]]
KINDS = ("aggregation", "topk", "uda", "udo")
EMISSIONS: tuple[Emission, ...] = ("speculative", "eager", "final")


@dataclass(frozen=True)
class Case:
    """A windowed node over one stream, with groups or without."""

    typed: Typed
    stream: CaseStream
    grouped: bool = False
    horizon: int | None = None
    limits: Limits = field(default_factory=Limits)
    registry: Registry = field(default_factory=all_modules)

    def context(self, emission: Emission = "speculative") -> Context:
        return Context(self.registry, self.limits, emission, self.horizon)

    def kernel(self, emission: Emission = "speculative", **options: Any) -> WindowKernel:
        return WindowKernel(self.typed, self.context(emission), **options)


def random_case(choices: Choices, *, most: int = 14, kinds: Sequence[str] = KINDS) -> Case:
    """A random stream and a random node over it."""
    stream = random_stream(choices, random_schema(choices, choices.pick(UNITS)), most=most)
    horizon = choices.integer(5, 30) if choices.chance(25) else None
    limits = Limits(windows_per_event=choices.integer(1, 4)) if choices.chance(2) else Limits()
    maker = WindowMaker(choices, shape_of(stream), horizon)
    plan, _ = getattr(maker, choices.pick(kinds))(nodes.Source("S"))
    grouped = "k" in stream.schema.names and choices.chance(50)
    return Case(check(plan, {"S": stream.schema}, registry=all_modules()), stream, grouped, horizon, limits)


def shape_of(stream: CaseStream) -> DrawnShape:
    columns = tuple((name, DrawnColumn(kind, size=1000)) for name, kind in stream.schema)
    rows = stream.rows
    no_end, no_start = any(row[1] == FOREVER for row in rows), any(row[0] == BEGINNING for row in rows)
    return DrawnShape(columns, stream.schema.unit, no_end, no_start)


# --- input ------------------------------------------------------------------------------------------------------------


def signed(event: Event) -> list[tuple[int, int, int, dict[str, Any]]]:
    """An event as signed rows."""
    match event:
        case Insert(_, le, re, payload):
            return [(le, re, 1, dict(payload))]
        case Retract(_, le, re, re_new, payload):
            return [(le, re, -1, dict(payload)), *([(le, re_new, 1, dict(payload))] if re_new > le else [])]
    return []


def deltas(case: Case, sizes: Iterable[int]) -> list[Delta]:
    """The stream as batches of these many events each (the rest one by one), and the end of time."""
    events, made = list(case.stream.events), []
    sizes = iter(sizes)
    while events:
        count = max(1, next(sizes, 1))
        taken, events = events[:count], events[count:]
        frontier = max((event.t for event in taken if isinstance(event, Cti)), default=BEGINNING)
        made.append(delta_of(case, [row for event in taken for row in signed(event)], frontier))
    return [*made, delta_of(case, [], FOREVER)]


def delta_of(case: Case, rows: list[tuple[int, int, int, dict[str, Any]]], frontier: int) -> Delta:
    schema = case.typed.inputs[0].schema
    le, re, w = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    columns = tuple(pa.array([row[3].get(name) for row in rows], kind.arrow) for name, kind in schema)
    group = np.array([group_of(case, row[3]) for row in rows], np.int64)
    return Delta(group, le, re, w, columns, frontier)


def group_of(case: Case, payload: dict[str, Any]) -> int:
    return {"a": 3, "b": 1, "c": 7, None: 4}[payload["k"]] if case.grouped else 0


# --- output -----------------------------------------------------------------------------------------------------------


def bag(outputs: Iterable[Delta]) -> Bag:
    """What outputs sum up to, bit for bit."""
    total: Bag = Counter()
    for delta in outputs:
        columns = [column.to_pylist() for column in delta.columns]
        for n in range(len(delta)):
            payload = tuple(bits(column[n]) for column in columns)
            total[int(delta.group[n]), int(delta.le[n]), int(delta.re[n]), payload] += int(delta.w[n])
    return Counter({row: w for row, w in total.items() if w})


def bits(value: Any) -> Any:
    if isinstance(value, float):
        found = identity(value)
        return struct.pack("d", found) if isinstance(found, float) else found
    return value


def value_of(found: Any, kind: str) -> Any:
    """The inverse of `bits`."""
    if kind != "float64" or found is None:
        return found
    return struct.unpack("d", found)[0] if isinstance(found, bytes) else float("nan")


def rows_by_group(case: Case, outputs: Iterable[Delta]) -> dict[int, list[Row]]:
    """The rows that outputs sum up to, per group."""
    found: dict[int, list[Row]] = {}
    names = case.typed.schema.names
    for (group, le, re, payload), w in bag(outputs).items():
        kinds = (case.typed.schema[name].kind for name in names)
        values = {name: value_of(v, kind) for name, v, kind in zip(names, payload, kinds, strict=True)}
        assert w > 0, f"{w} times [{le}, {re}) {values}"
        found.setdefault(group, []).extend([(le, re, values)] * w)
    return found


def expected(case: Case) -> dict[int, list[Row]]:
    """What the definition says, per group."""
    groups: dict[int, list[Row]] = {}
    for row in case.stream.rows:
        groups.setdefault(group_of(case, row[2]), []).append(row)
    made = {
        group: evaluate(case.typed, {"S": rows}, horizon=case.horizon, limits=case.limits, registry=case.registry)
        for group, rows in groups.items()
    }
    return {group: rows for group, rows in made.items() if rows}


def prefix(case: Case, count: int) -> Case:
    """The case with the first events of its stream only."""
    return replace(case, stream=replace(case.stream, events=case.stream.events[:count]))


def with_window(case: Case, window: Any) -> Case:
    node = replace(case.typed.node, window=window)  # type: ignore[type-var]
    return replace(case, typed=check(node, {"S": case.stream.schema}, registry=case.registry))


def summed_case(
    choices: Choices, *, windows: Sequence[str] = ("tumbling", "hopping", "snapshot"), most: int = 20
) -> Case:
    """A random stream, and counts, sums, means and extremes over it: what has fast paths."""
    names = ["k", *(name for name in ("v", "u", "f", "g", "d") if choices.chance(50))]
    stream = random_stream(choices, Schema.of({name: TYPES[name] for name in names}), most=most)
    functions = ("sum", "avg", "max", "min") if choices.chance(20) else ("sum", "avg")
    aggs = [("n", Aggregate("count"))] if choices.chance(60) or len(names) == 1 else []
    aggs += [(f"a{n}", Aggregate(choices.pick(functions), Col(name))) for n, name in enumerate(names) if n]
    number = choices.integer
    window: Window
    match choices.pick(windows):
        case "tumbling":
            window = Tumbling(number(1, 9), number(-3, 3))
        case "hopping":
            window = Hopping(number(1, 12), number(1, 9), number(-3, 3))
        case _:
            window = Snapshot()
    node = nodes.Aggregation(nodes.Source("S"), window, tuple(aggs), choices.pick(("window", "window", "point_end")))
    horizon = number(5, 30) if choices.chance(25) else None
    return Case(check(node, {"S": stream.schema}), stream, choices.chance(60), horizon)
