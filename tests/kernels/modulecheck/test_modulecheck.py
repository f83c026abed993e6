"""The module tester: every kind of bad module gets its own verdict, and good ones get none."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from streamproof.errors import PlanError
from streamproof.kernels.modulecheck import Finding, check_module
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
