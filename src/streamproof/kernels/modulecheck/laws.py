"""What a module must keep to, each as a function of one window: None if it does, else what is wrong, in plain words."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from streamproof.errors import RunError
from streamproof.events.schema import Schema, Type
from streamproof.events.time import show_tick
from streamproof.kernels.modulecheck.samples import Sample, fresh, in_order
from streamproof.kernels.windows.recompute.module_output import checked_row, declared
from streamproof.plan.modules import Event, Module, Restriction, WindowSpan

Row: TypeAlias = "tuple[int, int, Any]"
CLOSE = 1e-9  # floats that differ by less, relatively, are taken for equal where no exactness is promised


@dataclass(frozen=True, slots=True)
class Subject:
    """A module with the parameters, types and promises it is tried with."""

    module: Module
    params: Mapping[str, Any]
    result: Type | Schema
    restriction: Restriction

    @property
    def incremental(self) -> bool:
        return self.module.incremental

    def answer(self, sample: Sample) -> Any:
        """What the module says to all events of a window."""
        if self.incremental:
            unit = self.unit()
            return self.said(unit, unit.add(unit.start(), self.seen(sample.fresh())), sample.window)
        extra = (sample.window,) if self.module.time_sensitive else ()
        found = self.module.implementation(self.seen(sample.fresh()), *extra, **self.params)
        return list(found) if self.module.kind == "udo" else found

    def unit(self) -> Any:
        return self.module.implementation(**self.params)

    def said(self, unit: Any, state: Any, window: WindowSpan) -> Any:
        """What an incremental module says to a state."""
        found = unit.result(state, *((window,) if self.module.time_sensitive else ()))
        return list(found) if self.module.kind == "udo" else found

    def seen(self, events: Sequence[Event]) -> list[Any]:
        return list(events) if self.module.time_sensitive else [event.value for event in events]

    def rows(self, sample: Sample) -> list[Row]:
        """The answer as rows with lifetimes, as the module itself stamps them."""
        answer, window = self.answer(sample), sample.window
        if self.module.kind == "uda":
            return [(window.le, window.re, answer)]
        return [(*window, row) if isinstance(row, Mapping) else tuple(row) for row in answer]


Law: TypeAlias = Callable[[Subject, Sample], str | None]


# --- every module -----------------------------------------------------------------------------------------------------


def gives_what_it_declares(subject: Subject, sample: Sample) -> str | None:
    """Answers are of the declared type."""
    answer = subject.answer(sample)
    try:
        if isinstance(subject.result, Type):
            declared(subject.module, answer, subject.result)
        else:
            for row in answer:
                checked_row(subject.module, subject.result, sample.window, row)
    except RunError as error:
        return error.what.removeprefix(f"{subject.module} ")
    return None


def is_deterministic(subject: Subject, sample: Sample) -> str | None:
    """The same call gives the same answer."""
    first = subject.answer(sample)
    for again in (subject.answer(sample) for _ in range(2)):
        if not same(first, again):
            return f"gave {first!r}, and {again!r} when it was called again"
    return None


def ignores_order(subject: Subject, sample: Sample) -> str | None:
    """The order of events does not matter."""
    shuffled = list(sample.events)
    sample.random().shuffle(shuffled)
    expected = subject.answer(sample)
    for order in (shuffled, list(reversed(sample.events))):
        found = subject.answer(Sample(sample.window, tuple(order), sample.seed))
        if not same(expected, found, close=True):
            values = [event.value for event in order]
            return f"gave {expected!r}, but {found!r} when the events came in the order {values!r}"
    return None


# --- incremental modules ----------------------------------------------------------------------------------------------


def adds_in_steps(subject: Subject, sample: Sample) -> str | None:
    """Events that come in two calls of add give what they give in one."""
    unit, events = subject.unit(), sample.fresh()
    cut = sample.random().randrange(len(events) + 1)
    state = unit.start()
    for part in (events[:cut], events[cut:]):
        if part:
            state = unit.add(state, subject.seen(part))
            subject.said(unit, state, sample.window)  # to be asked changes nothing
    return _compare(subject, sample, subject.said(unit, state, sample.window), f"added in steps of {cut} and the rest")


def removes_what_it_added(subject: Subject, sample: Sample) -> str | None:
    """Events that were added and removed again have left no trace."""
    random, unit = sample.random(), subject.unit()
    others = _others(sample)
    state = unit.add(unit.start(), subject.seen(in_order(sample.fresh() + others)))
    subject.said(unit, state, sample.window)
    if random.random() < 0.5:
        cut = random.randrange(len(others) + 1)
        for part in (others[:cut], others[cut:]):
            state = unit.remove(state, subject.seen(part)) if part else state
        how = "events were added and removed again"
    else:  # all of them go before what stays comes
        state = unit.remove(state, subject.seen(in_order(sample.fresh() + others)))
        state = unit.add(state, subject.seen(sample.fresh()))
        how = "all events were removed and these added again"
    found = subject.said(unit, state, sample.window)
    how = f"{how}: {[event.value for event in others]!r}"
    return _compare(subject, sample, found, how, exact=subject.module.properties.invertible)


def keeps_windows_apart(subject: Subject, sample: Sample) -> str | None:
    """The states of two windows do not know of each other."""
    unit, lonely = subject.unit(), subject.unit()
    mine, other, alone = unit.start(), unit.start(), lonely.start()
    for event in sample.fresh():
        mine = unit.add(mine, subject.seen([event]))
        other = unit.add(other, subject.seen([event, event]))
        alone = lonely.add(alone, subject.seen([event]))
    subject.said(unit, other, sample.window)
    found, expected = subject.said(unit, mine, sample.window), subject.said(lonely, alone, sample.window)
    return None if same(expected, found) else f"gave {found!r} beside another window, but {expected!r} alone"


def has_a_state_that_can_be_written(subject: Subject, sample: Sample) -> str | None:
    """A state that was written down and read back gives the same answer, now and after it has changed."""
    unit = subject.unit()
    state = unit.add(unit.start(), subject.seen(sample.fresh()))
    expected = subject.said(unit, copy.deepcopy(state) if _copies(state) else state, sample.window)
    try:
        again = pickle.loads(pickle.dumps(state))  # noqa: S301  # it was written one call before
    except Exception as error:
        return f"its state, {_kind(state)}, cannot be written down: {type(error).__name__}: {error}"
    found = subject.said(unit, again, sample.window)
    if not same(expected, found):
        return f"gave {expected!r}, but {found!r} from a state written and read back"
    return _goes_on(subject, sample, unit, again)


def _goes_on(subject: Subject, sample: Sample, unit: Any, again: Any) -> str | None:
    """What is wrong with a state that was read back, if it is only seen when events come and go."""
    others = _others(sample)

    def answers(state: Any) -> Iterator[Any]:
        for change in (unit.add, unit.remove):
            state = change(state, subject.seen(others))
            yield subject.said(unit, state, sample.window)

    try:
        expected = list(answers(unit.add(unit.start(), subject.seen(sample.fresh()))))
    except Exception:
        return None  # whatever it is, it has nothing to do with writing
    for wanted, found, what in zip(expected, answers(again), ("came", "came and went"), strict=True):
        if not same(wanted, found, close=True):
            values = [event.value for event in others]
            return f"gave {wanted!r}, but {found!r} from a state written and read back before {values!r} {what}"
    return None


def _copies(state: Any) -> bool:
    try:
        copy.deepcopy(state)
    except Exception:
        return False
    return True


def _kind(state: Any) -> str:
    return f"a {type(state).__name__}"


def _others(sample: Sample) -> list[Event]:
    """More events for the window: new ones, some with values beyond all others, and some of its own again."""
    random = sample.random()
    return in_order(fresh(sample.others) + [event for event in sample.fresh() if random.random() < 0.3])


def _compare(subject: Subject, sample: Sample, found: Any, how: str, *, exact: bool = False) -> str | None:
    expected = subject.answer(sample)
    if same(expected, found, close=not exact):
        return None
    return f"gave {found!r} incrementally ({how}), but {expected!r} for the same events at once"


# --- promises ---------------------------------------------------------------------------------------------------------


def starts_no_row_before_its_window(subject: Subject, sample: Sample) -> str | None:
    """window_based: no row starts before its window."""
    for le, re, value in subject.rows(sample):
        if le < sample.window.le:
            return f"gave the row [{show_tick(le)}, {show_tick(re)}) {value!r}, which starts before the window"
    return None


def changes_only_from_there_on(subject: Subject, sample: Sample) -> str | None:
    """time_bound: when events change from a time on, the rows change only from there on."""
    random, events = sample.random(), list(sample.events)
    gone = events.pop(random.randrange(len(events)))
    shown = f"the event [{show_tick(gone.le)}, {show_tick(gone.re)}) {gone.value!r}"
    sooner = gone.le + 1 + random.randrange(min(gone.re, sample.window.re, gone.le + 99) - gone.le)
    shorter = tuple(in_order([*events, gone._replace(re=min(sooner, gone.re))]))
    for time, changed, what in ((gone.le, tuple(events), "came"), (sooner, shorter, "ended later")):
        other = Sample(sample.window, changed, sample.seed)
        before, after = (_until(time, subject.rows(each)) if each.events else [] for each in (other, sample))
        if not same(before, after):
            return f"changed its rows before {show_tick(time)}, from {before!r} to {after!r}, when {shown} {what}"
    return None


def _until(time: int, rows: Iterable[Row]) -> list[Row]:
    """What rows say about the time before an instant."""
    return [(le, min(re, time), value) for le, re, value in rows if le < min(re, time)]


def makes_nothing_of_nothing(subject: Subject, sample: Sample) -> str | None:
    """empty_preserving: no rows without events. A module that cannot be called without any keeps to it."""
    try:
        rows = subject.answer(Sample(sample.window, (), sample.seed))
    except Exception:
        return None
    return f"gave {rows!r} for no events at all" if rows else None


def passes_on(column: str) -> Law:
    """passes: a filter on the column may run before the module or after it."""

    def law(subject: Subject, sample: Sample) -> str | None:
        wanted = sample.random().choice(sample.events).value[column]
        some = tuple(event for event in sample.events if same(event.value[column], wanted))
        before = subject.rows(Sample(sample.window, some, sample.seed))
        after = [row for row in subject.rows(sample) if same(row[2].get(column), wanted)]
        if same(before, after):
            return None
        where = f"where {column} is {wanted!r}"
        return f"gave {after!r} {where}, but {before!r} when only such events were there"

    return law


# --- equality ---------------------------------------------------------------------------------------------------------


def same(a: Any, b: Any, *, close: bool = False) -> bool:
    """Whether two answers are equal: NaN equals itself, rows are a bag; ``close`` floats may differ in the last digits.

    >>> same([{"v": 1.0}, {"v": 2.0}], [{"v": 2.0}, {"v": 1.0}]), same(0.1 + 0.2, 0.3), same(0.1 + 0.2, 0.3, close=True)
    (True, False, True)
    """
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(
            same(x, y, close=close) for x, y in zip(sorted(a, key=_rank), sorted(b, key=_rank), strict=True)
        )
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y, close=close) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[name], b[name], close=close) for name in a)
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or a == b or (close and math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE))
    return bool(a == b)


def _rank(row: Any) -> str:
    """A text that sorts rows; floats by few digits, so that close ones stay together."""
    if isinstance(row, Mapping):
        return repr([(name, _rank(row[name])) for name in sorted(row)])
    if isinstance(row, tuple):
        return repr([_rank(each) for each in row])
    return f"{row:.6g}" if isinstance(row, float) else repr(row)
