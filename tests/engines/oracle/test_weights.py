"""Databases list events: what is there often is listed as often, or refused by name before it is."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Engine
from streamproof.plan.limits import Limits
from tests.engines.test_weights import PLANS, refused, whole

FEW = Limits(events_listed=20_000)
AS_OFTEN = 7
MORE = (2**32 + 1, 2**61, 2**63 - 1)


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
@pytest.mark.parametrize("shown", PLANS)
def test_weights_are_exact_or_refused(name: str, shown: str, request: pytest.FixtureRequest) -> None:
    judged: Engine = request.getfixturevalue(name)
    assert not refused(shown, AS_OFTEN, lambda: whole(judged, PLANS[shown], AS_OFTEN, FEW), listed=True)
    for w in MORE:
        assert refused(shown, w, lambda w=w: whole(judged, PLANS[shown], w, FEW), listed=True)  # type: ignore[misc]
