"""Emission: what the three policies have in common, and what each of them promises, over random plans."""

from __future__ import annotations

import pytest

from streamproof.engines.job import on
from streamproof.engines.local import LocalEngine
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.kernels.base import Emission
from streamproof.language.notation import from_document
from streamproof.plan.check import check
from streamproof.workbench.arrivals import batches_of, pushes
from streamproof.workbench.case import Case
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.modules import all_modules
from streamproof.workbench.promises import broken_promise
from streamproof.workbench.schedule import Schedule
from tests.engines.local.running import settings_of

S = {"op": "source", "name": "S"}


def inputs(case: Case, seed: int) -> dict[str, list[Batch]]:
    """The streams in batches, cut at random."""
    found: dict[str, list[Batch]] = {name: [] for name in case.streams}
    for name, piece in pushes(case, Schedule(seed=seed, cuts=seed % 5)):
        found[name] += batches_of(case.schemas[name], piece)
    return found


def output(case: Case, emission: Emission, seed: int) -> list[Batch] | None:
    typed = check(case.plan, case.schemas, registry=all_modules())
    try:
        return list(LocalEngine(emission=emission).run(typed, inputs(case, seed), settings_of(case)))
    except StreamproofError:
        return None


@pytest.mark.parametrize("start", range(0, 90, 30))
def test_all_policies_add_up_to_the_same_and_keep_their_promises(start: int) -> None:
    compared = 0
    for number in range(start, start + 30):
        case = seeded_case(number)
        outputs = [output(case, policy, number) for policy in ("speculative", "eager", "final")]
        if any(batches is None or not batches for batches in outputs):
            continue
        histories = []
        for batches in outputs:
            assert batches is not None
            assert not broken_promise(batches), f"case {number}"
            histories.append(History.from_batches(batches[0].schema, batches))
        assert histories[0] == histories[1] == histories[2], f"case {number}"
        final = outputs[2]
        assert final is not None
        assert all(w > 0 for batch in final for w in batch.rows["w"].to_pylist()), f"case {number}: final took back"
        compared += 1
    assert compared > 18


def events(*items: tuple[int, int] | int) -> list[dict[str, object]]:
    """Inserts for lifetimes, CTIs for numbers."""
    return [
        {"kind": "cti", "t": item} if isinstance(item, int) else {"le": item[0], "re": item[1], "payload": {"v": 1}}
        for item in items
    ]


def seen(query: dict[str, object], emission: Emission, pieces: list[list[dict[str, object]]]) -> list[object]:
    """Per push the rows and the CTI that came out."""
    running = on(from_document(query), "local", emission=emission).start({"S": {"v": "int64"}})
    found: list[object] = []
    for piece in pieces:
        running.push("S", piece)
        rows = [row for batch in running.pull() for row in batch.rows.to_pylist()]
        found.append([(row["le"], row["re"], row["w"]) for row in rows])
        found.append(running.cti)
    return found


def test_final_holds_back_what_may_still_change() -> None:
    """An event that ends at the CTI may still be extended, so it waits; and with it the output's CTI."""
    pieces = [events((1, 3), (2, 9), 5), events(9), events(10)]
    assert seen(S, "final", pieces) == [[(1, 3, 1)], 2, [], 2, [(2, 9, 1)], 10]


def test_final_windows_come_when_they_are_final() -> None:
    tumbling = {"op": "agg", "in": S, "window": {"type": "tumbling", "size": 5}, "aggs": {"n": ["count", None]}}
    pieces = [events((1, 2), (7, 8)), events(5), events(9)]
    assert seen(tumbling, "final", pieces)[0::2] == [[], [(0, 5, 1)], []]
    assert seen(tumbling, "speculative", pieces)[0::2] == [[(0, 5, 1)], [], []]
    assert seen(tumbling, "eager", pieces)[0::2] == [[(0, 5, 1), (5, 10, 1)], [], []]


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(StreamproofError, match=r'emission must be one of .* got the text "late"') as raised:
        on(from_document(S), "local", emission="late")
    assert raised.value.fix == 'known: "speculative", "eager", "final"'
