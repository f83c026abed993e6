"""The transformer: from an intent to concrete cases. Every pair of choices first, then at random.

The choices of a scenario are *factors*: which operator stands in a hole, which kind of window, each facet of the data,
each thing that a run may do. A covering array has every pair of their values in some row.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING
from streamproof.generate import make_duplicates, make_speculative
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.thresholds import NAMED
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.covering import CoveringGroups
from streamproof.workbench.draw.choices import DrawnShape, RandomChoices
from streamproof.workbench.draw.dense import HABITS, TYPES, UNITS
from streamproof.workbench.draw.operators import Made
from streamproof.workbench.draw.plans import random_case, shape_of
from streamproof.workbench.facets import LIVES, EventFacets, events, is_possible, small_stream
from streamproof.workbench.faults import CHANGES, OF_INPUT, OF_OUTPUT
from streamproof.workbench.filling import Filler, is_windowed
from streamproof.workbench.holes import WINDOWS as WINDOW_KINDS
from streamproof.workbench.holes import Hole, OneOf, WindowHole
from streamproof.workbench.intent import Intent
from streamproof.workbench.modules import all_modules
from streamproof.workbench.schedule import Lowered, Schedule

RUNS: Final[dict[str, tuple[Any, ...]]] = {
    "cuts": (0, 1, 3),
    "reorder": (False, True),
    "interleave": (False, True),
    "restart": (False, True),
    "changed": ("nothing", "a setting"),
    "files": ("none", "input", "output"),
    "emission": ("speculative", "eager", "final"),
    "optimise": (False, True),
    "door": ("plan", "json", "xml", "python"),
    "live": (False, True),
    "buckets": (1, 2, 3),
    "thresholds": ("usual", "some", "all"),
}
"""What a run may do, as factors."""

SCHEMAS: Final = ("k v f", "k v s", "k f d", "v b t", "k u z h", "k v g day")
"""The columns of streams whose columns are a hole, with the types that `TYPES` says."""

NAMES: Final = ("S", "R", "T", "U", "V", "W")
TRIES: Final = 20
COSTLY: Final = ("fragment", "restart", "live", "changed", "files")
LARGE: Final = 2**62  # what integers are when boundary values are among them


@dataclass(frozen=True)
class Factors:
    """The factors of an intent: those of its plan, and those of data and run."""

    plan: dict[str, tuple[Any, ...]]
    data: dict[str, tuple[Any, ...]]

    @property
    def all(self) -> dict[str, tuple[Any, ...]]:
        return {**self.plan, **self.data}


def factors_of(intent: Intent) -> Factors:
    """What there is to choose."""
    if intent.op == "case":
        return Factors({}, dict(RUNS))
    plan: dict[str, tuple[Any, ...]] = {}
    for part, number in {part: number for number, part in enumerate(intent.walk())}.items():
        if part.op == "operator":
            plan[f"{number}.operator"] = tuple(part.fixed["among"])
        if part.op == "operator" or is_windowed(part.op):
            plan[f"{number}.window"] = _kinds(part.fixed.get("window"))
    if any(part.op == "stream" and "columns" not in part.fixed for part in intent.walk()):
        plan["schema"] = SCHEMAS
    data = data_of(intent)
    runs = {**RUNS, "thresholds": ("usual",)} if data.is_large else RUNS
    return Factors(plan, {**data.factors(), **runs})


def _kinds(window: Any) -> tuple[Any, ...]:
    if isinstance(window, WindowHole):
        return window.kinds
    if isinstance(window, str):
        return (window,)
    if isinstance(window, OneOf):
        return window.options
    return WINDOW_KINDS if window is None or isinstance(window, Hole) else (window.kind,)


def data_of(intent: Intent) -> EventFacets:
    """What the streams are like: as the outermost node says that says anything."""
    return next((part.data for part in intent.walk() if part.data is not None), events())


def covering_groups(intent: Intent, *, seed: int, size: int) -> CoveringGroups:
    """The groups of an intent, all pairs once."""
    factors = factors_of(intent)
    return CoveringGroups.of(tuple(factors.plan.items()), tuple(factors.data.items()), seed, size)


def _stays(name: str, chance: random.Random) -> bool:
    """Whether a costly choice is left as it usually is: in random rows, not in those of the covering array."""
    return name in COSTLY and chance.random() < 0.8


def random_row(factors: Mapping[str, Sequence[Any]], chance: random.Random) -> dict[str, Any]:
    """A row drawn at random, of facets that go together."""
    for _ in range(100):
        row = {name: values[0] if _stays(name, chance) else chance.choice(values) for name, values in factors.items()}
        if all(name not in row for name in LIVES) or is_possible(row):
            return row
    return row


def concretise(
    intent: Intent,
    count: int,
    *,
    seed: int = 1,
    streams_per_plan: int = 4,
    registry: Registry | None = None,
    start: int = 0,
) -> Iterator[Case]:
    """Cases number ``start`` to ``start + count`` of an intent, the same for the same seed.

    Cases that follow each other have one plan, as many as ``streams_per_plan``.
    """
    for number in range(start // streams_per_plan, -(-(start + count) // streams_per_plan)):
        group = concrete_group(intent, number, seed=seed, size=streams_per_plan, registry=registry)
        first = number * streams_per_plan
        yield from group[max(0, start - first) : max(0, start + count - first)]


def concrete_group(
    intent: Intent, number: int, *, seed: int, size: int, registry: Registry | None = None
) -> list[Case]:
    """The cases of the plan of that number: one plan over several streams, each with its own facets and run."""
    factors, groups = factors_of(intent), covering_groups(intent, seed=seed, size=size).groups
    for attempt in range(TRIES):
        chance = random.Random(f"{seed}/{intent.name}/{number}/{attempt}")  # noqa: S311  # test data, not secrets
        if number < len(groups) and attempt < TRIES // 2:
            rows = list(groups[number])
        else:
            chosen = random_row(factors.plan, chance)
            rows = [{**chosen, **random_row(factors.data, chance)} for _ in range(size)]
        try:
            return _cases(intent, rows, chance, registry or all_modules())
        except StreamproofError:  # what was drawn is no plan: another draw
            continue
    return []


def _cases(intent: Intent, rows: list[dict[str, Any]], chance: random.Random, registry: Registry) -> list[Case]:
    choices = RandomChoices(chance.getrandbits(48))
    if intent.op == "case":
        return [_drawn(intent, row, choices) for row in rows]
    leaves = list(dict.fromkeys(part for part in intent.walk() if part.op == "stream"))
    unit = choices.pick(UNITS)
    schemas = [_schema(leaf, rows[0], unit) for leaf in leaves]
    many = [_streams(schemas, row, choices, data_of(intent)) for row in rows]
    endless = any(stream.is_endless for one in many for stream in one)
    horizon = choices.integer(10, 40) if endless or choices.chance(10) else None
    small = 10**6 if data_of(intent).is_large else 1000
    size = small if all(row["boundary"] == "none" or row["pattern"] in HABITS for row in rows) else LARGE
    shapes = [shape_of(*(streams[n] for streams in many), size=size) for n in range(len(leaves))]
    filler = Filler(
        choices, rows[0], _numbers(intent), _sources(leaves, shapes), schemas_of(schemas), registry, horizon
    )
    plan = _with_fragment(filler.fill(intent)[0], rows[0]["fragment"], filler.schemas)
    check(plan, filler.schemas, registry=registry)
    return [
        _case(intent.name, (plan, horizon), streams, row, choices.integer(0, 2**31))
        for streams, row in zip(many, rows, strict=True)
    ]


def _drawn(intent: Intent, row: Mapping[str, Any], choices: RandomChoices) -> Case:
    """A case of which all is drawn but the run."""
    drawn = random_case(choices, deepest=intent.fixed["depth"])
    schedule = schedule_of(_needed_by(drawn.plan, row), choices.integer(0, 2**31))
    return replace(drawn, schedule=schedule, seed=schedule.seed, scenario=intent.name)


def _schema(leaf: Intent, row: Mapping[str, Any], unit: Any) -> Schema:
    said = leaf.fixed.get("columns")
    drawn = {name: TYPES[name] for name in row.get("schema", "").split()}
    return Schema.of(said if said is not None else drawn, unit=unit)


def _streams(
    schemas: list[Schema], row: Mapping[str, Any], choices: RandomChoices, data: EventFacets
) -> list[CaseStream]:
    """One stream per leaf; one that begins at −∞ would leave hopping windows without an end."""
    words = dict(row)
    if words["duration"] == "infinite" and choices.chance(70):
        found = _alike(schemas, words, choices, data)
        if not any(line[0] == BEGINNING for stream in found for line in stream.rows):
            return found
        words["duration"] = "long"
    return _alike(schemas, words, choices, data)


def _alike(
    schemas: list[Schema], words: Mapping[str, Any], choices: RandomChoices, data: EventFacets
) -> list[CaseStream]:
    """Streams, each of which knows the rows of those before it."""
    found: list[CaseStream] = []
    for schema in schemas:
        rows = [line for stream in found for line in stream.rows]
        found.append(small_stream(choices, schema, words, data, like=rows))
    return found


def schemas_of(schemas: Sequence[Schema]) -> dict[str, Schema]:
    """The schemas of the leaves, by the names of their sources."""
    return dict(zip(NAMES, schemas, strict=False))


def _sources(leaves: Sequence[Intent], shapes: Sequence[DrawnShape]) -> dict[int, Made]:
    return {id(leaf): (nodes.Source(NAMES[n]), shapes[n]) for n, leaf in enumerate(leaves)}


def _numbers(intent: Intent) -> dict[int, int]:
    """The nodes of an intent, numbered; one that stands in several places has the number of the last."""
    return {id(part): number for number, part in enumerate(intent.walk())}


def _with_fragment(plan: Plan, fragment: str, schemas: Mapping[str, Schema]) -> Plan:
    """Speculation and duplicates by query: what is called later stands closer to the source."""
    if fragment in ("duplicates", "both"):
        plan = make_duplicates(plan)
    if fragment in ("speculative", "both"):
        plan = make_speculative(plan, schemas=schemas)
    return plan


def drawn_faults(row: Mapping[str, Any], seed: int) -> dict[str, str]:
    """What is changed where a run goes on, and what happens to its files.

    >>> drawn_faults({"changed": "a setting", "files": "none"}, 3)
    {'changed': 'emission', 'files': ''}
    """
    chance = random.Random(f"mishaps/{seed}")  # noqa: S311  # test data, not secrets
    happens = {"none": ("",), "input": OF_INPUT, "output": OF_OUTPUT}[row["files"]]
    return {
        "changed": chance.choice(("",) if row["changed"] == "nothing" else tuple(CHANGES)),
        "files": chance.choice(happens),
    }


def drawn_thresholds(word: str, seed: int) -> Lowered:
    """Thresholds that are lowered, each to a number with which a stream of a few events takes the ways of a large one.

    >>> drawn_thresholds("usual", 3)
    ()
    """
    chance = random.Random(f"thresholds/{seed}")  # noqa: S311  # test data, not secrets
    share = {"usual": 0.0, "some": 0.4, "all": 1.0}[word]
    return tuple((one.name, chance.choice(one.others)) for one in NAMED.values() if chance.random() < share)


def with_what_it_needs(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The factors of a run: where something changes between two runs, there are two."""
    return row if row["changed"] == "nothing" else {**row, "live": True, "restart": True}


def schedule_of(row: Mapping[str, Any], seed: int) -> Schedule:
    """How a run goes, given a word for each factor in `RUNS`."""
    run = {name: row[name] for name in RUNS}
    thresholds = drawn_thresholds(row["thresholds"], seed)
    return Schedule(seed=seed, **{**run, "thresholds": thresholds, **drawn_faults(row, seed)})


def _needed_by(plan: Plan, row: Mapping[str, Any]) -> Mapping[str, Any]:
    if any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(plan)):
        row = {**row, "live": True}  # where it does something
    return with_what_it_needs(row)


def _case(
    name: str, planned: tuple[Plan, int | None], streams: list[CaseStream], row: Mapping[str, Any], seed: int
) -> Case:
    plan, horizon = planned
    row = _needed_by(plan, row)
    used = nodes.sources(plan)
    named = {source: stream for source, stream in zip(NAMES, streams, strict=False) if source in used}
    shown = {factor: str(value) for factor, value in row.items()}
    return Case(plan, named, horizon, schedule=schedule_of(row, seed), seed=seed, scenario=name, factors=shown)
