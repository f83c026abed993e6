"""The module tester: every kind of bad module gets its own verdict, and good ones get none."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from streamproof.errors import PlanError
from streamproof.kernels import modulecheck
from streamproof.kernels.modulecheck import Finding, check_module, laws
from streamproof.plan.library import installed
from streamproof.plan.modules import Event, Module, Parameter, Properties, WindowSpan, uda, udf, udo


class Summing:
    """A sum that is right; the bad ones below change one thing."""

    def start(self) -> Any:
        return 0.0

    def add(self, state: Any, events: Sequence[Any]) -> Any:
        return state + sum(value or 0.0 for value in events)

    def remove(self, state: Any, events: Sequence[Any]) -> Any:
        return state - sum(value or 0.0 for value in events)

    def result(self, state: Any) -> Any:
        return float(state)


class Forgetful(Summing):
    def add(self, state: float, events: Sequence[Any]) -> float:
        return float(sum(value or 0.0 for value in events))


class Stuck(Summing):
    def remove(self, state: float, events: Sequence[Any]) -> float:
        return state


class Shared(Summing):
    """All windows have one state."""

    def __init__(self) -> None:
        self.total = 0.0

    def start(self) -> None:
        return None

    def add(self, state: None, events: Sequence[Any]) -> None:
        self.total += sum(value or 0.0 for value in events)

    def remove(self, state: None, events: Sequence[Any]) -> None:
        self.total -= sum(value or 0.0 for value in events)

    def result(self, state: None) -> float:
        return self.total


class Unwritable(Summing):
    """Its state holds a function."""

    def start(self) -> tuple[float, Callable[[], int]]:
        return 0.0, lambda: 0

    def add(self, state: Any, events: Sequence[Any]) -> Any:
        return super().add(state[0], events), state[1]

    def remove(self, state: Any, events: Sequence[Any]) -> Any:
        return super().remove(state[0], events), state[1]

    def result(self, state: Any) -> float:
        return float(state[0])


class Rough(Summing):
    """Says that remove undoes add exactly, and adds plain floats."""


class Thrower(Summing):
    def remove(self, state: float, events: Sequence[Any]) -> float:
        raise NotImplementedError("cannot remove")


def incremental(implementation: type, **promises: Any) -> Module:
    return uda("m", returns="float64", takes="float64", incremental=True, properties=Properties(**promises))(
        implementation
    )


def aggregate(function: Callable[[Sequence[Any]], Any], **promises: Any) -> Module:
    return uda("m", returns="float64", takes="float64", properties=Properties(**promises))(function)


def operator(function: Callable[..., Any], *, timed: bool = False, **promises: Any) -> Module:
    described = udo("m", returns={"v": "float64"}, time_sensitive=timed, properties=Properties(**promises))
    return described(function)


def counting(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {"v": row["v"] if len(rows) < 3 else 0.0}


def whole_window(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    if events:
        yield Event(window.le, window.re, {"v": float(len(events))})


def one_earlier(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    for event in events:
        yield Event(event.le - 1, event.re, {"v": 0.0})


class Kept:
    """Keeps the values themselves; the bad ones below change one thing."""

    def start(self) -> list[float]:
        return []

    def add(self, state: list[float], events: Sequence[Any]) -> list[float]:
        return sorted([*state, *(v for v in events if v is not None)])

    def remove(self, state: list[float], events: Sequence[Any]) -> list[float]:
        for value in events:
            if value is not None:
                state.remove(value)
        return state

    def result(self, state: list[float]) -> float | None:
        return state[-1] - state[0] if state else None


class StuckRange(Kept):
    def remove(self, state: list[float], events: Sequence[Any]) -> list[float]:
        return state


class StuckMost(StuckRange):
    def result(self, state: list[float]) -> float | None:
        return max(state, default=None)


class StuckLeast(StuckRange):
    def result(self, state: list[float]) -> float | None:
        return min(state, default=None)


class RemovesAllAlike(Kept):
    def remove(self, state: list[float], events: Sequence[Any]) -> list[float]:
        return [v for v in state if v not in events]

    def result(self, state: list[float]) -> float | None:
        return float(len(state))


class RemovesOne(Kept):
    def remove(self, state: list[float], events: Sequence[Any]) -> list[float]:
        return super().remove(state, events[:1])


class RemovesTheLatest(Kept):
    def remove(self, state: list[float], events: Sequence[Any]) -> list[float]:
        return state[: len(state) - len(events)]


class ForgetsOnRemove(Summing):
    def remove(self, state: float, events: Sequence[Any]) -> float:
        return 0.0


class Grinding(Kept):
    """To be asked changes its state."""

    def result(self, state: list[float]) -> float | None:
        return state.pop() if state else None


class Remembering(Summing):
    """The first answer is given for ever."""

    def __init__(self) -> None:
        self.known: float | None = None

    def result(self, state: float) -> float:
        self.known = float(state) if self.known is None else self.known
        return self.known


class AddsTheFirst(Summing):
    def add(self, state: float, events: Sequence[Any]) -> float:
        return state + (events[0] or 0.0) * len(events)


class SharedList(Kept):
    """All states of a unit are one list."""

    def __init__(self) -> None:
        self.known: list[float] = []

    def start(self) -> list[float]:
        return self.known

    def add(self, state: list[float], events: Sequence[Any]) -> list[float]:
        state.extend(events)
        return state

    def result(self, state: list[float]) -> float:
        return float(len(state))


class LosesAField(Kept):
    """What is written down lacks what only `remove` looks at."""

    class State:
        def __init__(self) -> None:
            self.total, self.count = 0.0, 0

        def __getstate__(self) -> dict[str, float]:
            return {"total": self.total}

        def __setstate__(self, known: dict[str, float]) -> None:
            self.total, self.count = known["total"], 0

    def start(self) -> Any:
        return self.State()

    def add(self, state: Any, events: Sequence[Any]) -> Any:
        state.total, state.count = state.total + sum(events), state.count + len(events)
        return state

    def remove(self, state: Any, events: Sequence[Any]) -> Any:
        state.count -= len(events)
        state.total = state.total - sum(events) if state.count > 0 else 0.0
        return state

    def result(self, state: Any) -> float:
        return float(state.total)


def by_turns() -> Callable[[Sequence[Any]], float]:
    calls = iter(range(10**9))
    return lambda values: float(next(calls) // 2 % 2)


def renaming(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {"v": abs(row["v"])}


def half_as_long(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    """Where a row ends tells when its event will end."""
    for event in events:
        yield Event(event.le, event.le + (event.re - event.le + 1) // 2, {"v": 0.0})


def as_long_as(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    for event in events:
        yield Event(event.le, event.re, {"v": float(event.re - event.le)})


BAD = {
    "no_exceptions": aggregate(lambda values: float(sum(values))),  # nulls are among them
    "type": aggregate(lambda values: "many"),
    "deterministic": aggregate(lambda values: random.random()),
    "order_insensitive": aggregate(lambda values: values[0]),
    "add": incremental(Forgetful),
    "remove": incremental(Stuck),
    "apart": incremental(Shared),
    "state": incremental(Unwritable),
    "empty_preserving": operator(lambda rows: [{"v": float(len(rows))}]),
    "passes v": operator(counting, passes=frozenset({"v"})),
    "time_bound": operator(whole_window, timed=True, time_bound=True),
}


@pytest.mark.parametrize("law", BAD)
def test_each_kind_of_bad_module_has_its_verdict(law: str) -> None:
    plain = law != "no_exceptions"
    report = check_module(BAD[law], plain=plain, inputs={"v": "float64"} if BAD[law].kind == "udo" else None)
    assert not report.holds
    assert law in {finding.law for finding in report.findings}, report.to_text()
    found = next(finding for finding in report.findings if finding.law == law)
    assert found.what
    assert found.fix
    assert found.at.startswith("window [")


@pytest.mark.parametrize("law", [law for law in BAD if law not in ("no_exceptions", "apart")])
def test_a_planted_fault_is_what_is_found_first(law: str) -> None:
    report = check_module(BAD[law], plain=True, inputs={"v": "float64"} if BAD[law].kind == "udo" else None)
    assert report.findings[0].law == law
    assert len(report.findings) == 1 or law == "add"  # nothing comes right after a wrong add


MORE = [
    ("remove", incremental(StuckRange)),
    ("remove", incremental(StuckMost)),
    ("remove", incremental(StuckLeast)),
    ("remove", incremental(RemovesAllAlike)),
    ("remove", incremental(RemovesOne)),
    ("remove", incremental(RemovesTheLatest)),
    ("remove", incremental(ForgetsOnRemove)),
    ("add", incremental(Grinding)),
    ("add", incremental(Remembering)),
    ("add", incremental(AddsTheFirst)),
    ("apart", incremental(SharedList)),
    ("apart", incremental(Remembering)),
    ("state", incremental(LosesAField)),
    ("deterministic", aggregate(by_turns())),
    ("deterministic", aggregate(lambda values: float(id(object()) + random.random()))),
    ("order_insensitive", aggregate(lambda values: values[-1])),
    ("order_insensitive", aggregate(lambda values: values[0] - sum(values[1:]))),
    ("type", aggregate(lambda values: "x" if max(values) > 100 else 1.0)),
    ("type", operator(lambda rows: [{"w": 1.0}])),
    ("type", operator(lambda events, window: [Event(event.le, None, {"v": 1.0}) for event in events], timed=True)),
    ("no_exceptions", aggregate(lambda values: 1.0 / max(values))),
    ("empty_preserving", operator(lambda events, window: [{"v": 0.0}], timed=True)),
    ("passes v", operator(renaming, passes=frozenset({"v"}))),
    ("time_bound", operator(half_as_long, timed=True, time_bound=True)),
    ("time_bound", operator(as_long_as, timed=True, time_bound=True)),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("law", "module"), MORE, ids=lambda part: part if isinstance(part, str) else "")
def test_more_modules_that_break_a_law(law: str, module: Module, seed: int) -> None:
    report = check_module(module, plain=True, seed=seed, inputs={"v": "float64"} if module.kind == "udo" else None)
    assert law in {finding.law for finding in report.findings}, report.to_text()


def test_every_law_has_a_module_that_breaks_it() -> None:
    tried = {*BAD, "window_based"}  # which is in a test of its own, below
    rules = [each for each in vars(modulecheck).values() for each in (each if isinstance(each, tuple) else [each])]
    named = {rule.law: rule.name for rule in rules if isinstance(rule, modulecheck._Rule)}
    assert set(named.values()) <= tried
    public = {f for name, f in vars(laws).items() if callable(f) and getattr(f, "__module__", "") == laws.__name__}
    stated = {f for f in public if inspect.isfunction(f) and not f.__name__.startswith("_")} - {laws.same}
    assert stated == {*named, laws.passes_on}, "a law that no rule applies, or a rule without a law"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("module", [incremental(Kept), incremental(Summing)], ids=["kept", "summing"])
def test_the_good_ones_that_they_come_from_hold(module: Module, seed: int) -> None:
    assert check_module(module, plain=True, seed=seed).holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("module", list(installed()), ids=str)
def test_the_modules_that_come_with_us_hold(module: Module, seed: int) -> None:
    report = check_module(module, seed=seed)
    assert report.holds, report.to_text()
    assert report.to_text().startswith(f"{module}: keeps to no_exceptions, type, deterministic")


def test_a_good_incremental_module_holds() -> None:
    assert check_module(incremental(Summing), plain=True).holds


def test_who_promises_to_undo_exactly_is_held_to_it() -> None:
    finding = only(incremental(Rough, invertible=True), plain=True)
    assert finding.law == "remove"
    assert "incrementally" in finding.what


def test_the_window_is_made_small() -> None:
    finding = only(aggregate(lambda values: values[0]), plain=True)
    assert finding.at.count(") ") == 3  # the window and two events
    assert finding.what == "gave 0.0, but 1.0 when the events came in the order [1.0, 0.0]"
    assert str(finding) == (
        f"depends on the order of events\n  {finding.what}\n  at: {finding.at}\n"
        "  fix: sort the events first, or declare order_insensitive=False"
    )


def test_an_exception_is_shown_with_its_line() -> None:
    finding = check_module(BAD["no_exceptions"]).findings[0]
    assert finding.title == "raises"
    assert finding.what.startswith("TypeError: unsupported operand")
    assert "raised at test_modulecheck.py:" in finding.what
    assert finding.at.endswith(" None")


def test_an_exception_in_remove_is_a_finding_of_remove() -> None:
    finding = only(incremental(Thrower), plain=True)
    assert finding.law == "remove"
    assert finding.what.startswith("raised NotImplementedError: cannot remove at test_modulecheck.py:")


def test_what_is_not_promised_is_not_held_against_it() -> None:
    assert check_module(aggregate(lambda values: values[0], order_insensitive=False)).holds
    assert check_module(aggregate(lambda values: random.random(), deterministic=False)).holds


def test_a_restriction_is_checked() -> None:
    early = operator(one_earlier, timed=True)
    assert check_module(early, inputs={"v": "float64"}).holds
    finding = only(early, inputs={"v": "float64"}, restriction="window_based", clip="left")
    assert finding.law == "window_based"
    assert "which starts before the window" in finding.what
    passes = next(module for module in installed() if module.name == "passthrough")
    assert check_module(passes, clip="left", restriction="time_bound").holds


def test_missing_columns_are_explained() -> None:
    finding = check_module(operator(lambda rows: [{"v": row["speed"]} for row in rows])).findings[0]
    assert finding.what.startswith("KeyError: 'speed'")
    assert finding.fix.startswith("give the columns that it reads as inputs")


def test_parameters_are_bound() -> None:
    module = uda("m", returns="int64", params=[Parameter("most", "int64", required=True)])(
        lambda values, *, most: min(len(values), most)
    )
    assert check_module(module, params={"most": 3}).holds
    with pytest.raises(PlanError, match='uda m@1 needs the parameter "most"'):
        check_module(module)


def test_functions_are_tried_too() -> None:
    assert check_module(udf("half", returns="float64", takes=["float64"])(lambda x: x / 2)).holds
    inverse = only(udf("inverse", returns="float64", takes=["float64"])(lambda x: 1 / x))
    assert (inverse.law, inverse.at) == ("no_exceptions", "inverse(0.0)")
    assert inverse.what.startswith("ZeroDivisionError: float division by zero, raised at test_modulecheck.py:")
    wrong = only(udf("wrong", returns="int64", takes=["int64"])(lambda x: f"{x}"))
    assert (wrong.law, wrong.what) == ("type", "gave '0', which is not of type int64")
    dice = only(udf("dice", returns="float64", takes=["int64"])(lambda x: random.random()))
    assert dice.law == "deterministic"


def test_the_same_seed_tries_the_same() -> None:
    bad = BAD["order_insensitive"]
    assert check_module(bad, seed=5) == check_module(bad, seed=5)


def test_nothing_to_try_is_an_error() -> None:
    with pytest.raises(PlanError, match="0 windows to try"):
        check_module(BAD["type"], windows=0)


def only(module: Module, **options: Any) -> Finding:
    report = check_module(module, **options)
    assert len(report.findings) == 1, report.to_text()
    return report.findings[0]
