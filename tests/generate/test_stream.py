"""Generated streams: legal, exact, and a pure function of the seed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.events.history import History
from streamproof.events.order import ints
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import Cti, Insert, PhysicalStream, Retract
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator
from streamproof.generate.describe import describe
from streamproof.generate.draws import part_of
from streamproof.generate.facets import Facets
from streamproof.generate.lifetimes import lifetimes
from streamproof.generate.sequence import RowSequence
from streamproof.generate.stream import _RowWriter, generate, generated
from tests.generate.space import EVERY_TYPE, Words, covering, facet_words, own_pattern

SMALL = Schema.of({"k": "string", "v": "int64"})
COUNTS = st.sampled_from([0, 1, 2, 3, 17, 120])
SEEDS = st.integers(0, 2**64 - 1)


def validated(stream: PhysicalStream, facets: Facets) -> History:
    """The history of a stream that keeps every rule, with the shape and the order that its facets promise."""
    order = "by_le" if not facets.numbers.late else "insert_first"
    Validator(shape=facets.shape, order=order).check(stream)  # type: ignore[arg-type]  # a word that Facets checked
    return to_history(stream)


def calm(words: Words) -> Facets:
    """The same events, each inserted once, in order."""
    return Facets(**{**words, "disorder": "in_order", "speculation": "none", "liveliness": "never"})


def late_of(words: Words, count: int, seed: int) -> int:
    """How many inserts must be late: as many as asked for, but what starts last cannot be."""
    facets = Facets(**words)
    starts = ints(generated({}, count, seed, calm(words)).rows["le"])
    times = 2 if facets.numbers.copies == 1 else 1
    return min(times * part_of(count, facets.numbers.late), int(np.sum(starts < starts.max())))


@pytest.mark.parametrize("quarter", range(4))
def test_every_pair_of_facets_gives_a_legal_stream_with_the_history_of_its_events(quarter: int) -> None:
    for words in covering()[quarter::4]:
        facets = Facets(**words)
        history = validated(generated(EVERY_TYPE, 100, 11, facets), facets)
        assert history == to_history(generated(EVERY_TYPE, 100, 11, calm(words))), words


@settings(max_examples=60)
@given(facet_words(), COUNTS, SEEDS)
@example({"duration": "infinite", "disorder": (0.9, 5), "liveliness": "eager"}, 2, 0)
def test_any_stream_is_legal_and_has_the_history_of_its_events(words: Words, count: int, seed: int) -> None:
    facets = Facets(**words)
    stream = generated(EVERY_TYPE, count, seed, facets)
    assert validated(stream, facets) == to_history(generated(EVERY_TYPE, count, seed, calm(words)))


@settings(max_examples=40)
@given(facet_words(), COUNTS, SEEDS, st.sampled_from([1, 2, 7, 64]))
def test_chunks_are_parts_of_one_stream(words: Words, count: int, seed: int, rows: int) -> None:
    chunks = list(generate(SMALL, count, seed, Facets(**words), chunk_rows=rows))
    assert all(len(chunk) == rows for chunk in chunks[:-1])
    assert PhysicalStream.concat(chunks) == generated(SMALL, count, seed, Facets(**words))


@settings(max_examples=30)
@given(facet_words(), SEEDS, st.sampled_from([3, 20]))
def test_the_size_of_a_block_is_of_no_consequence(words: Words, seed: int, block: int) -> None:
    facets = Facets(**words)
    lives = lifetimes(facets, 60, seed=seed)
    writer = _RowWriter.of(SMALL, facets, lives, seed=seed)
    parts = RowSequence.of(lives, facets, seed=seed, block=block).parts()
    stream = PhysicalStream.concat(PhysicalStream(SMALL, writer.table(rows)) for rows in parts)
    assert stream == generated(SMALL, 60, seed, facets)


@settings(max_examples=40)
@given(facet_words(), st.sampled_from([10, 256, 300, 1000]), SEEDS)
def test_late_events_are_exactly_as_many_as_asked_for(words: Words, count: int, seed: int) -> None:
    assert describe(generated({}, count, seed, Facets(**words))).late == late_of(words, count, seed)


@pytest.mark.parametrize(
    ("word", "late", "places"), [("slightly", 100, 4), ("out_of_order", 1000, 64), ("highly", 5000, 1024)]
)
def test_each_word_for_disorder_is_a_number(word: str, late: int, places: int) -> None:
    figures = describe(generated(SMALL, 10_000, 7, Facets(disorder=word, duration=8, overlap=1)))
    assert figures.late == late
    assert figures.most_late is not None
    assert figures.most_late <= 8 * (places + 1)


def test_all_events_that_can_be_late_are_late_where_that_is_asked_for() -> None:
    def most_start_last() -> Iterator[tuple[int, int]]:
        yield from ((n, n + 5) for n in range(700))
        yield from ((9000, 9001 + n) for n in range(300))

    assert describe(generated({}, 1000, 4, Facets(pattern=most_start_last, disorder=(0.9, 3)))).late == 700


@pytest.mark.parametrize("share", [0.1, 0.37, 0.9])
def test_copies_are_exactly_as_many_as_asked_for(share: float) -> None:
    figures = describe(generated({"v": "int64"}, 1000, 3, Facets(duplicates=share, keys="unique", disorder="highly")))
    assert (figures.copies, figures.inserts, figures.late) == (round(1000 * share), 1000, 500)


def test_the_union_of_a_multicast_brings_every_row_twice() -> None:
    facets = Facets(speculation="mixed", disorder="highly", keys="unique")
    once = describe(generated(SMALL, 500, 3, facets))
    twice = describe(Validator().check(generated(SMALL, 500, 3, Facets(**{**facets.as_dict(), "duplicates": "all"}))))
    for figure in ("inserts", "retractions", "late", "shrunk", "extended", "taken_back"):
        assert getattr(twice, figure) == 2 * getattr(once, figure)
    assert twice.copies == 500


@pytest.mark.parametrize(("change", "figure"), [("shrink", "shrunk"), ("extend", "extended"), ("full", "taken_back")])
def test_each_sort_of_speculation_changes_exactly_the_share_of_events(change: str, figure: str) -> None:
    figures = describe(generated(SMALL, 1000, 3, Facets(speculation=(change, 0.3), disorder="out_of_order")))
    assert (getattr(figures, figure), figures.retractions, figures.late) == (300, 300, 100)


@pytest.mark.parametrize("duration", ["short", (1, 2), "infinite"])
def test_chains_change_one_event_two_to_four_times(duration: str | tuple[int, int]) -> None:
    stream = generated(SMALL, 1000, 3, Facets(speculation=("chains", 0.5), duration=duration))
    changes = Counter(event.id for event in stream.to_events() if isinstance(event, Retract))
    assert len(changes) == 500
    assert set(changes.values()) == {2, 3, 4}


def test_an_id_is_used_again_after_a_full_retraction() -> None:
    stream = generated(SMALL, 200, 3, Facets(speculation=("full", 1.0)))
    inserted = [event.id for event in stream.to_events() if isinstance(event, Insert)]
    again = len(inserted) - len(set(inserted))
    assert 50 < again < 150


@pytest.mark.parametrize(
    ("word", "ctis"), [("never", 0), ("final", 1), ("lazy", 3), ("steady", 250), ("eager", 2500), (7, 358)]
)
def test_liveliness_is_how_many_events_go_between_ctis(word: str | int, ctis: int) -> None:
    assert describe(generated(SMALL, 2500, 3, Facets(liveliness=word))).ctis == ctis


def test_ctis_promise_all_that_can_be_promised() -> None:
    facets = Facets(liveliness="eager", disorder="highly", speculation="mixed", shape="interval")
    events = generated(SMALL, 300, 5, facets).to_events()
    least, moved = FOREVER, 0
    for event in reversed(events):
        if isinstance(event, Cti):
            assert event.t == least
            moved += 1
        else:
            least = min(least, event.le if not hasattr(event, "re_new") else min(event.re, max(event.re_new, event.le)))
    assert moved > 300


def test_a_stream_of_nothing_has_its_last_cti() -> None:
    assert generated(SMALL, 0, 7, Facets()).to_events() == [Cti(FOREVER)]
    assert [len(chunk) for chunk in generate(SMALL, 0, 7, Facets(liveliness="never"))] == [0]


def test_own_lifetimes_are_taken_as_they_are() -> None:
    history = to_history(generated({}, 50, 7, Facets(pattern=own_pattern, disorder="highly", speculation="mixed")))
    pairs = [pair for pair, _ in zip(own_pattern(), range(50), strict=False)]
    assert sorted((row.le, row.re) for row in history.to_rows()) == sorted(pairs)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ((-1, 7), "count must be from 0 to 2,147,483,647, got -1"),
        ((10, -1), "seed must be from 0 to 18,446,744,073,709,551,615, got -1"),
        ((1.5, 0), "count must be a whole number, got 1.5"),
    ],
)
def test_counts_and_seeds_are_checked(arguments: Any, what: str) -> None:
    with pytest.raises(PlanError) as raised:
        generated(SMALL, *arguments)
    assert raised.value.what == what


def test_memory_does_not_grow_with_the_stream() -> None:
    facets = Facets(disorder="highly", speculation="mixed", shape="interval")
    lives = lifetimes(facets, 300_000, seed=1)
    sequence = RowSequence.of(lives, facets, seed=1, block=4096)
    assert max(len(part) for part in sequence.parts()) < 4096 * 6


def fingerprint(stream: PhysicalStream) -> str:
    """A hash of every value of every column, in order."""
    digest = hashlib.sha256()
    for column in stream.rows.columns:
        digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()[:16]


EVERYTHING: Words = {
    "disorder": "highly", "speculation": "mixed", "duplicates": "some", "liveliness": "eager", "nulls": "some",
    "boundary": "many", "skew": 1.5,
}  # fmt: skip
GOLDEN: list[tuple[str, Words]] = [
    ("b2f3c22644d809b8", {}),
    ("96c101978bbea309", EVERYTHING),
    (
        "6bc797fc56c998d6",
        {**EVERYTHING, "shape": "edge", "speculation": "full", "duration": "long", "duplicates": "all"},
    ),
    ("010edff5dd37ce06", {**EVERYTHING, "duration": "infinite", "keys": "unique", "skew": "uniform", "start": -5000}),
    ("552d0e5b173e7b53", {"pattern": "disjoint", "keys": "many", "skew": "zipf", "disorder": "slightly"}),
    ("138177519ea76537", {"pattern": "staggered", "speculation": "chains", "disorder": "out_of_order", "keys": "few"}),
    ("32ca95acfe058200", {"pattern": "back_to_back", "shape": "point", "illegal": "cti_violation"}),
    ("46514b063340ce53", {"pattern": "duplicates", "duration": (1, 10**6), "overlap": 0.3, "boundary": 1.0}),
]


@pytest.mark.parametrize(("golden", "words"), GOLDEN)
def test_the_same_seed_gives_the_same_bytes_for_ever(golden: str, words: Words) -> None:
    stream = generated(EVERY_TYPE, 700, 20260701, Facets(**words))
    assert fingerprint(stream) == golden
