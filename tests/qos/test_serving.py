"""Serving: queries on the local engine, admitted, run by deadlines, watched; results are those of an ordinary run."""

from __future__ import annotations

from fractions import Fraction

import pytest

import streamproof as sp
from streamproof.errors import PlanError
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.generate import Facets
from streamproof.language.eql import loads
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.costs import declared, measured
from streamproof.qos.server import QueryServer, RegisteredQuery, RejectedQuery
from streamproof.qos.service import QoS
from streamproof.qos.serving import EventReplay, serve

SCHEMA = Schema.of({"k": "string", "v": "int64"}, unit="ms")
PLANS = {
    "positive": sp.source("S").where("v > 0"),
    "mean": sp.source("S").tumbling(1000).aggregate(n=sp.count(), mean=sp.avg("v")),
    "highest": sp.source("S").tumbling(500).aggregate(top=sp.max("v")),
}
WISHES = {"positive": QoS("2 s", 20_000), "mean": QoS("3 s"), "highest": QoS("4 s")}


def replay(rows: int, seconds: float, seed: int = 1) -> EventReplay:
    stream = sp.generated(SCHEMA, rows, seed, Facets(shape="point"))
    span = EventReplay.of(stream).times[-1]
    return EventReplay.of(stream, speed=Fraction(span / (1000 * seconds)).limit_denominator(1000))


def test_three_streams_are_served_and_their_results_are_right() -> None:
    server, inputs, outputs = QueryServer(share="0.5", quantum="40 ms"), {}, {}
    for number, (name, plan) in enumerate(PLANS.items()):
        stream = replay(3000 * (number + 1), 1.5, seed=number)
        window = "500 ms" if name == "highest" else None
        cost = measured({"S": stream.sample(2000)}) if name == "mean" else declared(8, 0.01)
        promise = server.register(
            plan, WISHES[name], name=name, arrival=stream.arrival(), cost=cost, window=window, schemas={"S": SCHEMA}
        )
        assert isinstance(promise, RegisteredQuery), promise.text
        inputs[name], outputs[name] = {"S": stream}, []
    found = serve(server, inputs).run(2.5, on_output=lambda name, batches: outputs[name].extend(batches))
    for name, plan in PLANS.items():
        stream = inputs[name]["S"]
        seen = found.observed[name]
        assert seen.rows == len(stream)
        assert seen.missed == 0 or seen.misses["scheduler"] < seen.missed, seen.as_dict()
        wanted = plan.on("duckdb").run({"S": stream.stream}).history
        assert History.from_batches(wanted.schema, outputs[name]) == wanted
    assert found.observed["highest"].pushes > 3  # windows were cut
    assert found.scheduling_share < 0.5


def test_a_flood_is_held_back_and_blamed_on_its_input() -> None:
    server = QueryServer(share="0.5")
    calm, noisy = replay(1000, 1.5), replay(6000, 1.5, seed=2)
    bucket = TokenBucket(50, "1/2")
    for name in ("calm", "noisy"):
        assert server.register(
            PLANS["positive"], QoS("1500 ms"), name=name, arrival=bucket if name == "noisy" else calm.arrival(),
            cost=declared(8, 0.01), schemas={"S": SCHEMA},
        ).admitted  # fmt: skip
    found = serve(server, {"calm": {"S": calm}, "noisy": {"S": noisy}}).run(3.0)
    noise = found.observed["noisy"]
    assert noise.held_back > 0
    assert noise.misses["input"] > 100
    assert noise.misses["scheduler"] == 0
    assert found.observed["calm"].misses["input"] == 0


def test_a_cost_above_the_declared_one_is_blamed_on_the_cost() -> None:
    server, stream = QueryServer(share="1"), replay(400, 1.0)
    promise = server.register(  # the declared cost allows it, and no push is as fast
        PLANS["positive"], QoS("200 us"), name="hurried", arrival=stream.arrival(), cost=declared(0.001, 0.00001),
        schemas={"S": SCHEMA},
    )  # fmt: skip
    assert promise.admitted
    seen = serve(server, {"hurried": {"S": stream}}).run(1.2).observed["hurried"]
    assert seen.overruns > 0
    assert seen.misses["cost"] > 0


def test_a_query_that_does_not_fit_is_refused_with_a_latency_that_does() -> None:
    server = QueryServer(share="0.5", policy="qed")
    given = {"arrival": TokenBucket(10, "1/10"), "schemas": {"S": SCHEMA}}
    heavy = server.register(PLANS["mean"], QoS("60 s"), name="hourly", cost=declared(400), **given)  # type: ignore[arg-type]
    assert heavy.admitted
    refused = server.register(PLANS["positive"], QoS("500 ms"), name="alerts", cost=declared(20), **given)  # type: ignore[arg-type]
    assert isinstance(refused, RejectedQuery)
    assert refused.text.startswith("alerts wants 500 ms: at ")
    assert "ms of blocking by `hourly` exceeds the supply by" in refused.text
    least = Fraction(str(refused.remedies["max_latency_ms"]))
    assert server.register(PLANS["positive"], QoS(least), name="alerts", cost=declared(20), **given).admitted  # type: ignore[arg-type]


def test_what_cannot_be_registered_is_an_error() -> None:
    server = QueryServer()
    given = {"arrival": TokenBucket(10, "1/10"), "schemas": {"S": SCHEMA}, "cost": declared(1)}
    with pytest.raises(PlanError, match="a query needs a wish"):
        server.register(PLANS["mean"], name="m", **given)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="a backlog of 5 cannot hold bursts of 10 events"):
        server.register(PLANS["mean"], QoS("1 s", 5), name="m", **given)  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="share lies between 0 and 1, got 2"):
        QueryServer(share=2)
    with pytest.raises(PlanError, match=r"max_latency must be positive, got 0 ms"):
        QoS(0)
    with pytest.raises(PlanError, match=r"takes 100\.00 ms, the quantum is 6\.00 ms of work"):
        server.register(PLANS["mean"], QoS("9 s"), name="m", window="1 s", **{**given, "cost": declared(100)})  # type: ignore[arg-type]


@pytest.mark.slow
def test_three_streams_keep_their_bounds_for_twenty_seconds() -> None:
    server, inputs = QueryServer(share="0.5", quantum="40 ms"), {}
    for number, (name, plan) in enumerate(PLANS.items()):
        stream = replay(20_000 * (number + 1), 19.0, seed=number)
        window = "1 s" if name == "highest" else None
        cost = measured({"S": stream.sample(20_000)})
        assert server.register(
            plan, WISHES[name], name=name, arrival=stream.arrival(), cost=cost, window=window, schemas={"S": SCHEMA}
        ).admitted
        inputs[name] = {"S": stream}
    found = serve(server, inputs).run(20.0)
    for seen in found.observed.values():
        print(seen.as_dict())
        assert seen.misses["scheduler"] == seen.misses["input"] == 0
        assert seen.misses["cost"] <= seen.rows // 100  # only where the machine was taken away
    assert found.scheduling_share < 0.05


def test_a_wish_in_eql_is_the_wish() -> None:
    plan = loads("SELECT count(*) AS n FROM S ON ARRIVAL WINDOW 1s QOS LATENCY 900ms BACKLOG 1000")
    given = {"arrival": TokenBucket(10, "1/10"), "schemas": {"S": SCHEMA}, "cost": declared(1)}
    found = QueryServer().register(plan, name="counted", **given)  # type: ignore[arg-type]
    assert isinstance(found, RegisteredQuery)
    assert found.bound == (900, 100)
