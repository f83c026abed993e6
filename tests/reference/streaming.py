"""The local engine held against the evaluator: besides its rows, what it promises on the way.

The input is cut at random, and then
- the output adds up to what the evaluator says,
- as physical events it passes the validator,
- what an output CTI has sealed is already as it will be in the end,
- no push gives a row twice, or gives one and takes it back,
- under the policy ``final`` nothing is ever taken back,
- an error may also be that of a prefix: an engine cannot know that an event will be taken back.

The policy is drawn too, and some runs are stopped at a push and go on from a snapshot.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from streamproof.engines.base import Engine, Settings
from streamproof.engines.local import LocalEngine, in_turn
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import context_of
from streamproof.engines.local.snapshot import restore, save
from streamproof.errors import ERROR_NAMES, InputError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.event import Cti, write_event
from streamproof.events.history import History
from streamproof.events.physical import PhysicalStream, from_batches, to_batches
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator
from streamproof.kernels.base import Emission
from streamproof.kernels.delta import Delta
from streamproof.language import json as plan_json
from streamproof.plan.check import Typed, check
from streamproof.plan.nodes import walk
from streamproof.workbench import promises
from streamproof.workbench.modules import all_modules
from streamproof.workbench.partners import with_late_partners
from tests.reference.evaluator import TooManyRows, evaluate
from tests.reference.random_cases import Case
from tests.reference.streams import Stream
from tests.reference.values import Row
from tests.spark.stream.chaining import ChainEngine


def streamed_outcome(case: Case, typed: Typed, engine: Engine) -> tuple[list[Row] | str, str]:
    """What an engine that streams says over a random split of the input, or which promise it broke."""
    seed = split_seed(case)
    inputs, chance = split_inputs(case, seed), random.Random(seed + 1)
    emission: Emission = chance.choice(("speculative", "speculative", "speculative", "eager", "final"))
    stop = chance.randint(1, 6) if chance.random() < 0.3 else None
    settings = Settings(horizon=case.horizon, limits=case.limits, registry=all_modules())
    try:
        if isinstance(engine, ChainEngine):
            output = list(engine.run(typed, inputs, settings, emission=emission))
        else:
            output = list(_run(typed, inputs, settings, emission=emission, stop=stop))
        broken = broken_promise(output, typed.schema, final=emission == "final")
    except StreamproofError as error:
        return error.name, str(error)
    except Exception as error:  # an engine may only fail with errors that have names
        return f"crash: {type(error).__name__}", f"{type(error).__name__}: {error}"
    if broken:
        return "broken promise", broken
    history = History.from_batches(typed.schema, output)
    return [(row.le, row.re, row.payload) for row in history.to_rows()], ""


def _run(
    typed: Typed, inputs: Mapping[str, Sequence[Batch]], settings: Settings, *, emission: Emission, stop: int | None
) -> Iterator[Batch]:
    """The output; with ``stop``, all before that push is forgotten but a snapshot."""
    if stop is None:
        yield from LocalEngine(emission=emission).run(typed, inputs, settings)
        return
    graph = Graph(typed, context_of(settings, emission))
    pushes = [(name, Delta.from_batch(batch)) for name, batch in in_turn({n: inputs[n] for n in graph.sources})]
    pushes += [(name, Delta.empty(schema, frontier=FOREVER)) for name, schema in graph.schemas.items()]
    for number, (name, delta) in enumerate(pushes):
        if number == stop:
            snapshot, graph = save(graph), Graph(typed, context_of(settings, emission))
            restore(graph, snapshot)
        yield graph.push(name, delta).to_batch(typed.schema)


def split_seed(case: Case) -> int:
    """A number that depends on the case alone."""
    texts = [repr(write_event(event)) for stream in case.streams.values() for event in stream.events]
    return zlib.crc32("\n".join([plan_json.dumps(case.plan), *texts]).encode())


def split_inputs(case: Case, seed: int) -> dict[str, list[Batch]]:
    """The streams in batches: cut at CTIs and at random between other events; some CTIs are left out."""
    chance = random.Random(seed)
    return {name: list(to_batches(_chunks(stream, chance))) for name, stream in case.streams.items()}


def _chunks(stream: Stream, chance: random.Random) -> list[PhysicalStream]:
    """Pieces between events: a retraction is one change, whose two rows no cut may part."""
    events = [event for event in stream.events if not isinstance(event, Cti) or chance.random() < 0.8]
    cuts = sorted(chance.sample(range(len(events) + 1), k=min(chance.randint(0, 4), len(events))))
    parts = [events[start:end] for start, end in pairwise([0, *cuts, len(events)])]
    return [PhysicalStream.from_events(part, schema=stream.schema) for part in parts]


def broken_promise(output: Sequence[Batch], schema: Schema, *, final: bool = False) -> str:
    """What the output does wrong on the way, as rows and as physical events; nothing if all is well."""
    try:
        Validator().check(from_batches(output, schema=schema))
    except InputError as error:
        return str(error)
    return promises.broken_promise(output, final=final, complete=False).text


def may_fail_so(case: Case, typed: Typed, name: str, expected: object) -> bool:
    """Whether an engine may fail with that error.

    Of several errors in one query, which comes first depends on the order of work. Where the whole has none, the error
    must be one that the evaluator raises over what the engine has seen at some time, perhaps while the partners of rows
    were still to come. Of an event without an end, which
    the evaluator says falls into infinitely many windows, an engine may say that they are more than the limit.
    """
    if name not in ERROR_NAMES:
        return False
    if name == "output_in_past" and any(getattr(node, "restriction", None) == "time_bound" for node in walk(case.plan)):
        return True  # a promise that the module does not keep, which only shows over time
    return isinstance(expected, str) or _error_of_a_prefix(case, typed, name)


def _error_of_a_prefix(case: Case, typed: Typed, name: str) -> bool:
    inputs = split_inputs(case, split_seed(case))
    seen: dict[str, list[Batch]] = {source: [] for source in inputs}
    late = [check(plan, case.schemas, registry=all_modules()) for plan in with_late_partners(case.plan)]
    plans = [typed, *late]
    for source, batch in in_turn(inputs):
        seen[source].append(batch)
        found = [_outcome(case, plan, seen) for plan in plans]
        if name in found or ("unbounded_windows" in found and name == "limit_exceeded"):
            return True
    return False


def _outcome(case: Case, typed: Typed, seen: Mapping[str, Sequence[Batch]]) -> str:
    histories = {
        name: [(r.le, r.re, r.payload) for r in History.from_batches(case.schemas[name], parts).to_rows()]
        for name, parts in seen.items()
    }
    try:
        evaluate(typed, histories, horizon=case.horizon, limits=case.limits, registry=all_modules())
    except TooManyRows:
        return ""
    except StreamproofError as error:
        return error.name
    return ""
