"""The worked cases of the algebra, on both databases."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import StreamproofError
from streamproof.events.compare import explain_difference, same_snapshots
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.plan.check import check
from tests.reference.cases import WorkedCase, worked_cases


@pytest.mark.parametrize("case", worked_cases(), ids=lambda case: case.name)
def test_worked_case(case: WorkedCase, engine: Oracle) -> None:
    if case.error is not None:
        with pytest.raises(StreamproofError) as caught:
            _result(case, engine)
        assert caught.value.name == case.error
        return
    found = _result(case, engine)
    expected = History.from_rows(found.schema, case.rows or [])
    if case.compare == "exact":
        assert explain_difference(expected, found) is None
    assert same_snapshots(expected, found)


def _result(case: WorkedCase, engine: Oracle) -> History:
    typed = check(case.plan, case.schemas)
    inputs = {}
    for name, events in case.streams.items():
        stream = PhysicalStream.from_events(events, schema=case.schemas[name])
        Validator().check(stream)
        inputs[name] = list(to_batches(stream))
    return History.from_batches(typed.schema, engine.run(typed, inputs, Settings(horizon=case.horizon)))
