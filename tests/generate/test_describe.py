"""Measuring: figures of hand-made streams, and of generated ones against a count event by event."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.event import Cti, Insert, Retract
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.generate.describe import describe
from streamproof.generate.facets import Facets
from streamproof.generate.stream import generate, generated
from tests.generate.space import Words, facet_words


def figures_of(*events: Insert | Retract | Cti, **options: bool) -> dict[str, int | float | None]:
    return describe(PhysicalStream.from_events(events), **options).as_dict()


def test_a_small_stream_in_figures() -> None:
    found = figures_of(
        Insert("a", 0, 10, {"v": 1}), Insert("b", 20, 30, {"v": 1}), Cti(0), Insert("c", 5, FOREVER, {"v": 2}),
        Retract("a", 0, 10, 30, {"v": 1}), Retract("b", 20, 30, 25, {"v": 1}), Retract("a", 0, 30, 20, {"v": 1}),
        Insert("d", 7, 9, {"v": 3}), Retract("d", 7, 9, 7, {"v": 3}), Insert("e", 0, 20, {"v": 1}), Cti(FOREVER),
    )  # fmt: skip
    assert found == {
        "rows": 11, "inserts": 5, "retractions": 4, "ctis": 2, "late": 3, "late_fraction": 0.6, "most_late": 20,
        "shrunk": 2, "extended": 1, "taken_back": 1, "longest_chain": 2, "retraction_ratio": 0.8, "cti_lag": 20,
        "mean_alive": (2 * 20 + 20 + 5) / 25, "most_alive": 3, "copies": 1, "shortest": 5, "longest": 20,
        "endless": 1, "without_start": 0,
    }  # fmt: skip


def test_nothing_has_no_figures() -> None:
    found = describe(PhysicalStream.from_events([]))
    assert (found.rows, found.late_fraction, found.most_late, found.mean_alive, found.copies) == (0, 0, None, None, 0)


def test_infinities_are_not_measured_as_numbers() -> None:
    found = figures_of(Insert("a", 5, FOREVER, {}), Cti(BEGINNING), Insert("b", BEGINNING, FOREVER, {}))
    assert (found["late"], found["most_late"], found["cti_lag"], found["mean_alive"]) == (1, None, None, None)
    assert (found["endless"], found["without_start"], found["longest"], found["most_alive"]) == (2, 1, None, 2)


def test_an_illegal_stream_is_measured_as_far_as_it_goes() -> None:
    found = figures_of(Insert("a", 1, 1, {}), Retract("x", 1, 5, 1, {}))
    assert (found["retractions"], found["copies"], found["endless"]) == (1, None, None)
    assert figures_of(Insert("a", 1, 3, {}), history=False)["copies"] is None


@settings(max_examples=40)
@given(facet_words(), st.sampled_from([0, 1, 30]), st.integers(0, 2**64 - 1))
def test_figures_agree_with_a_count_event_by_event(words: Words, count: int, seed: int) -> None:
    facets = Facets(**words)
    stream = generated({"k": "string"}, count, seed, facets)
    latest, late, chains = BEGINNING, 0, dict[str, int]()
    alive: dict[str, tuple[int, int]] = {}
    for event in stream.to_events():
        if isinstance(event, Insert):
            late += event.le < latest
            latest = max(latest, event.le)
            alive[event.id] = (event.le, event.re)
        elif isinstance(event, Retract):
            chains[event.id] = chains.get(event.id, 0) + 1
            alive[event.id] = (event.le, event.re_new)
    lives = [(le, re) for le, re in alive.values() if re > le]
    found = describe(generate({"k": "string"}, count, seed, facets, chunk_rows=13))
    assert (found.late, found.longest_chain) == (late, max(chains.values(), default=0))
    assert found.endless == sum(re == FOREVER for _, re in lives)
    assert found.most_alive == max((sum(le <= at < re for le, re in lives) for at, _ in lives), default=0)


@pytest.mark.parametrize(("share", "ratio"), [(0.25, Fraction(1, 4)), (1.0, Fraction(1))])
def test_the_ratio_of_retractions(share: float, ratio: Fraction) -> None:
    assert describe(generated({}, 400, 2, Facets(speculation=("shrink", share)))).retraction_ratio == ratio
