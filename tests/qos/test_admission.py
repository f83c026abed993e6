"""Admission, refusals and remedies; the worked example with its numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from streamproof.qos.admission import Admitted, Refused, admit
from streamproof.qos.arrivals import ArrivalCurve, TokenBucket
from streamproof.qos.batching import plan_batches
from streamproof.qos.curves import piecewise, staircase
from streamproof.qos.demand import Demand
from streamproof.qos.service import QoS, RateLatency, ServiceCurve
from streamproof.qos.simulate import make_scenario, run_policy
from streamproof.qos.tasks import Cost, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, Policy, SchedulabilityVerifier, slack, with_capacity
from tests.qos.sets import random_set
from tests.qos.worked import QUERIES, machine


def test_p_qed_admits_the_worked_example_with_its_numbers() -> None:
    found = admit(QUERIES, machine("p-qed"))
    assert all(isinstance(decision, Admitted) for decision in found)
    assert [(d.delay_bound, d.backlog_bound) for d in found if isinstance(d, Admitted)] == [
        (30, 30),
        (20, 10),
        (200, Fraction(6, 5)),
    ]
    flows = [flow for d in found if isinstance(d, Admitted) for flow in d.flows]
    assert slack(flows, machine("p-qed")) == Fraction("11.1")
    plan = plan_batches(flows, machine("p-qed"))
    assert plan is not None
    assert (plan.factor, plan.longest, plan.sizes) == (Fraction(3, 2), 4800, (24, 5, 1))


@pytest.mark.parametrize("policy", ["qed", "b-qed", "p-qed"])
def test_only_policies_that_batch_have_a_plan_for_batches(policy: Policy) -> None:
    on = machine(policy)
    found = [decision for decision in admit(QUERIES[:2], on) if isinstance(decision, Admitted)]
    assert len(found) == 2
    wanted = None if policy == "qed" else plan_batches([flow for d in found for flow in d.flows], on)
    assert [decision.plan for decision in found] == [wanted] * 2
    assert (wanted is None) == (policy == "qed")
    assert admit([], on) == []


@pytest.mark.parametrize("policy", ["qed", "b-qed"])
@pytest.mark.parametrize("test", ["reserved", "policed"])
def test_without_preemption_the_worked_example_is_refused_at_12_ms(policy, test) -> None:  # type: ignore[no-untyped-def]
    *_, last = admit(QUERIES, machine(policy, test=test))
    assert isinstance(last, Refused)
    found = last.as_dict()
    assert (found["at_ms"], found["blocker"], found["blocking_ms"], found["excess_ms"]) == (12, "Q3", 40, 28.4)
    assert found["demand"] == {"Q1": 0, "Q2": 0.4, "Q3": 0}
    assert last.text.startswith(
        "Q3 wants 200 ms: at 12 ms the demand of 0.4 ms plus 40 ms of blocking by `Q3` exceeds the supply by 28.4 ms; "
    )
    flows = SchedulabilityVerifier(machine(policy)).check(QUERIES).flows
    assert plan_batches(flows, machine(policy)) is None  # 40 ms are more than the least latency


def test_remedies_are_true_and_sharp() -> None:
    """Each remedy, applied alone, admits; a little less does not."""
    checked = 0
    for seed in range(30):
        queries, on = random_set(seed)
        decisions = admit(queries, on)
        refused = [d for d in decisions if isinstance(d, Refused)]
        for decision in refused[:1]:
            checked += _check_remedies(decision, on)
    assert checked > 30


def _check_remedies(refused: Refused, on: Machine) -> int:
    query, count = refused.query, 0

    def admits(changed: QosQuery, machine: Machine = on) -> bool:
        return SchedulabilityVerifier(machine).check([*refused.accepted, changed], first=False).schedulable

    for name, value in refused.remedies.items():
        count += 1
        amount = Fraction(str(value)) if name != "test" else Fraction(0)
        less, more = amount * Fraction(98, 100), amount * Fraction(102, 100)
        if name in ("max_latency_ms", "latency_ms"):
            assert admits(query.with_latency(amount))
            assert not admits(query.with_latency(less))
        elif name == "burst":
            assert admits(query.with_arrival(burst=amount))
            assert amount + 1 >= query.inputs[0].arrival.buckets[-1][0] or not admits(
                query.with_arrival(burst=amount + 1)
            )
        elif name == "rate_per_ms":
            assert admits(query.with_arrival(rate=amount))
            assert not admits(query.with_arrival(rate=more))
        elif name == "ops_per_ms":
            assert admits(query, with_capacity(on, amount))
            assert not admits(query, with_capacity(on, less))
        elif name == "quantum_ms":
            assert admits(query, replace(on, policy="p-qed", quantum=amount * on.capacity))
        else:
            assert admits(query, replace(on, test="policed"))
    return count


def test_the_order_of_registration_decides_who_stays_out() -> None:
    first, second = QUERIES[2], QUERIES[1]
    decisions = admit([first, second], machine("qed"))
    assert [d.admitted for d in decisions] == [True, False]
    assert decisions[1].text.startswith("Q2 wants 20 ms: at 12 ms")
    assert [d.admitted for d in admit([second, first], machine("qed"))] == [True, False]


def test_a_backlog_that_cannot_hold_a_burst_is_refused() -> None:
    query = QosQuery("small", (QueryInput(Cost(1), TokenBucket(10, "1/100")),), qos=QoS("1 s", 5))
    (refused,) = admit([query], machine("qed"))
    assert refused.text == (
        "small wants a backlog of at most 5, but 10 may come at once; a backlog of 10 is the least that can be kept"
    )
    assert refused.as_dict()["remedies"] == {"max_backlog": 10.0}


def test_a_wish_becomes_the_least_reservation() -> None:
    query = QosQuery("w", (QueryInput(Cost(100), TokenBucket(10, 1)),), qos=QoS("30 ms", 15))
    (found,) = admit([query], machine("qed"))
    assert isinstance(found, Admitted)
    assert found.flows[0].service == RateLatency(1, 5)  # σ + ρT <= 15
    assert (found.delay_bound, found.backlog_bound) == (15, 15)


def test_several_inputs_add_their_demands() -> None:
    both = QosQuery(
        "join",
        (QueryInput(Cost(300), TokenBucket(2, "1/2"), "l"), QueryInput(Cost(500), TokenBucket(3, 1), "r")),
        service=RateLatency(1, 10),
    )
    (found,) = admit([both], machine("qed"))
    assert isinstance(found, Admitted)
    assert [flow.name for flow in found.flows] == ["join.l", "join.r"]
    assert (found.delay_bound, found.backlog_bound) == (13, 2 + 5 + 3 + 10)
    assert not admit([both, replace(both, name="again")], machine("qed"))[1].admitted


def test_a_cost_with_a_quantile_is_told() -> None:
    query = QosQuery(
        "n", (QueryInput(Cost(100, deviation=10, quantile="0.999"), TokenBucket(1, 1)),), service=RateLatency(1, 9)
    )
    (found,) = admit([query], machine("qed"))
    assert found.as_dict()["cost"] == {"n": {"quantile": 0.999, "ops": 131.0}}


def test_a_thousand_queries_of_which_some_are_refused() -> None:
    draw = random.Random(5)
    queries = [
        QosQuery(
            f"q{n}",
            (
                QueryInput(
                    Cost(draw.randint(10, 1000)), TokenBucket(draw.randint(1, 20), f"{draw.randint(1, 1000)}/100000")
                ),
            ),
            qos=QoS(Fraction(draw.randint(500, 60_000))),
        )
        for n in range(1000)
    ]  # fmt: skip
    load = sum(q.inputs[0].cost.declared * q.inputs[0].arrival.buckets[0][1] for q in queries)
    found = admit(queries, Machine.of(load / Fraction(101, 100), policy="qed"))
    assert 900 < sum(d.admitted for d in found) < 1000
    sharper = admit(queries, Machine.of(load / Fraction(101, 100), policy="qed", test="policed"))
    assert sum(d.admitted for d in found) < sum(d.admitted for d in sharper) < 1000


def test_the_search_finds_what_listing_every_step_finds() -> None:
    """Quick processor-demand analysis against the definition, at every step up to the horizon."""
    refused = 0
    for seed in range(40):
        queries, on = random_set(seed, test="policed")
        flows = SchedulabilityVerifier(on).check(queries, first=False).flows
        demand = Demand(flows, on.sections(flows), on.capacity)
        horizon = demand.horizon()
        found = demand.search()
        if horizon is None or horizon > 3_000:
            continue
        steps, time = [], demand.last_step(Fraction(horizon), inclusive=True)
        while time is not None:
            steps.append(time)
            time = demand.last_step(time, inclusive=False)
        wrong = [step for step in steps if demand.violation(step) is not None]
        assert (found is None) == (not wrong), seed
        if found is not None:
            assert demand.first(found).at == min(wrong), seed
            refused += 1
    assert refused > 2


def test_curves_of_any_shape_are_admitted_and_keep_their_bounds() -> None:
    bursty = ArrivalCurve(staircase(2, 40, jitter=10))
    bent = ServiceCurve(piecewise([(0, 0), (15, 0), (35, 1)], rate="1/4"))
    queries = [
        QosQuery("bent", (QueryInput(Cost(300), bursty),), service=bent),
        QosQuery("plain", (QueryInput(Cost(200), TokenBucket(3, "1/10", peak=1)),), service=RateLatency("1/5", 8)),
    ]
    on = Machine.of(100, policy="qed", test="policed")
    decisions = admit(queries, on)
    assert [d.admitted for d in decisions] == [True, True]
    flows = [flow for d in decisions if isinstance(d, Admitted) for flow in d.flows]
    for pattern, seed in (("adversarial", 0), ("random", 1), ("random", 2)):
        scenario = make_scenario(flows, on, duration=3000, arrivals=pattern, seed=seed)  # type: ignore[arg-type]
        for flow, got in zip(flows, run_policy(scenario, on, "qed").values(), strict=True):
            assert got.misses == 0
            assert got.max_delay <= flow.delay
