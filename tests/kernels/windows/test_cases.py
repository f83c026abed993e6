"""The worked cases of liveliness, cleanup and affected windows, through what a kernel shows of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER, read_tick
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.modules import Event, Registry, WindowSpan, uda, udo
from streamproof.plan.windows import WINDOWS, Window

CASES = json.loads((Path(__file__).parents[2] / "data" / "algebra.json").read_text())["cases"]
SCHEMA = Schema.of({"v": "int64"})


@uda("size", returns="int64")
def size(values: list[int]) -> int:
    return len(values)


@udo("seen", returns={"v": "int64"}, time_sensitive=True)
def seen(events: list[Event], window: WindowSpan) -> list[Event]:
    return events


def of_level(level: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["id"]) for case in CASES if case["level"] == level]


def window_of(given: dict[str, Any]) -> Window:
    return WINDOWS[given["type"]](**{name: value for name, value in given.items() if name != "type"})


def kernel_of(given: dict[str, Any]) -> WindowKernel:
    """A module with the case's settings: time-sensitive ones stamp their own rows."""
    window, clip = window_of(given["window"]), "right" if given.get("right_clip") else "none"
    if given.get("time_sensitive"):
        policy = given.get("policy", "window_based")
        restriction = "none" if policy == "unrestricted" else policy
        plan: nodes.Plan = nodes.Udo(nodes.Source("S"), window, "seen", None, (), clip, "clip", restriction)
    else:
        plan = nodes.Uda(nodes.Source("S"), window, "size", Col("v"), "n", clip=clip, restriction="window_based")
    registry = Registry([size, seen])
    return WindowKernel(check(plan, {"S": SCHEMA}, registry=registry), Context(registry))


def rows(*lifetimes: tuple[int, int, int], frontier: int = BEGINNING) -> Delta:
    le, re, w = (np.array([row[n] for row in lifetimes], np.int64) for n in range(3))
    return Delta(np.zeros(len(le), np.int64), le, re, w, (pa.array([1] * len(le), pa.int64()),), frontier)


def run(given: dict[str, Any]) -> WindowKernel:
    kernel = kernel_of(given)
    kernel.on_batch(0, rows(*((event["le"], read_tick(event["re"]), 1) for event in given["events"])))
    kernel.on_batch(0, rows(frontier=given.get("cti", BEGINNING)))
    return kernel


@pytest.mark.parametrize(("given", "expected"), of_level("liveliness"))
def test_liveliness(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert run(given).inspect().sealed == expected["cti_out"]


@pytest.mark.parametrize(("given", "expected"), of_level("cleanup"))
def test_cleanup(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert [[window.le, window.re] for window in run(given).inspect().final] == expected["deleted"]


@pytest.mark.parametrize(("given", "expected"), of_level("affected"))
def test_affected(given: dict[str, Any], expected: dict[str, Any]) -> None:
    change = given["change"]
    delta = rows((change["le"], change["re"], -1), (change["le"], change["re_new"], 1))
    found = run(given).inspect(delta).affected
    assert found is not None
    assert [[window.le, window.re] for window in found.retract] == expected["retract"]
    assert [[window.le, window.re] for window in found.insert] == expected["insert"]


def test_every_level_has_cases() -> None:
    assert {level: len(of_level(level)) for level in ("liveliness", "cleanup", "affected")} == {
        "liveliness": 6, "cleanup": 3, "affected": 1,
    }  # fmt: skip


def test_a_tumbling_window_is_sealed_from_its_start() -> None:
    """A CTI of 25 seals tumbling windows of 10 up to 20; 10 seals hopping 10/5 up to 5; gaps up to the CTI."""
    for window, cti, sealed in (
        ({"type": "tumbling", "size": 10}, 25, 20),
        ({"type": "hopping", "size": 10, "hop": 5}, 10, 5),
        ({"type": "hopping", "size": 5, "hop": 20}, 12, 12),
    ):
        assert run({"window": window, "events": [{"le": 3, "re": 50}], "cti": cti}).inspect().sealed == sealed


def test_inspection_shows_members_and_retained_events() -> None:
    events = [{"le": 3, "re": 12}, {"le": 4, "re": 6}]
    shown = run({"window": {"type": "tumbling", "size": 10}, "events": events, "cti": 11})
    found = shown.inspect()
    assert [(w.le, w.re, w.final, [m[1:3] for m in w.members]) for w in found.windows] == [
        (0, 10, True, [(3, 12)]),  # the other member went with the window
        (10, 20, False, [(3, 12)]),
    ]
    assert [event[1:] for event in found.events] == [(3, 12, 1)]
    assert shown.on_batch(0, rows(frontier=FOREVER)).frontier == FOREVER
