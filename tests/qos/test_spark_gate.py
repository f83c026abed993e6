"""The EDF gate: grants in the order of deadlines, costs from progress events, and three real streaming queries."""

from __future__ import annotations

import importlib.util
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from streamproof.engines.spark.session import active, session
from streamproof.errors import InputError
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.spark_admission import MicroBatches
from streamproof.qos.spark_gate import Arbiter, EdfGate, fit_progress
from tests.spark.sessions import FAST


def test_grants_come_one_at_a_time_in_the_order_of_deadlines() -> None:
    arbiter, running, most, waits = Arbiter(), [], [], {}

    def ask(deadline: float) -> None:
        with arbiter.grant(deadline) as waited:
            waits[deadline] = waited
            running.append(deadline)
            most.append(len(running))
            time.sleep(0.01)
            running.remove(deadline)

    begun = time.time()
    with arbiter.grant(0.0) as waited:  # while this one runs, the others queue up
        assert 0 <= waited <= time.time() - begun
        threads = [threading.Thread(target=ask, args=(float(deadline),)) for deadline in (5, 3, 9, 1, 7)]
        for thread in threads:
            thread.start()
        while arbiter.waiting < 5:
            time.sleep(0.001)
    for thread in threads:
        thread.join(10)
    assert arbiter.granted == [0, 1, 3, 5, 7, 9]
    assert max(most) == 1
    assert list(waits.values()) == sorted(waits.values())  # who comes later has waited longer
    assert 0.04 <= waits[9] <= time.time() - begun


def test_a_failing_batch_gives_its_grant_back() -> None:
    arbiter = Arbiter()
    with pytest.raises(ValueError, match="broken"), arbiter.grant(1.0):
        raise ValueError("broken")
    with arbiter.grant(2.0):
        pass
    assert arbiter.granted == [1, 2]


def test_costs_are_fitted_from_progress_without_the_time_at_the_gate() -> None:
    progress = [
        {"batchId": n, "numInputRows": rows, "durationMs": {"triggerExecution": 200 + rows + 1000}}
        for n, rows in enumerate((10, 100, 10, 100, 0))
    ]
    found = fit_progress(progress, dict.fromkeys(range(5), 1000.0))
    assert (round(found.push_ms), round(found.row_ms, 3)) == (200, 1.0)
    with pytest.raises(InputError, match="no progress event tells of a batch with rows"):
        fit_progress([])


def test_only_admitted_queries_pass() -> None:
    gate = EdfGate([MicroBatches("a", TokenBucket(1, 1), period=100, latency=200, batch_ms=1, row_ms=0)])
    with pytest.raises(InputError, match='no query "b" was admitted'):
        gate.turn("b")


def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples/qos/three_streams.py"
    spec = importlib.util.spec_from_file_location("three_streams", path)
    assert spec is not None and spec.loader is not None  # noqa: PT018  # for the type checker
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.slow
def test_three_streaming_queries_of_which_one_floods(tmp_path: Path) -> None:
    spark = active() or session(**{**FAST, "spark.scheduler.mode": "FAIR"})
    three = example()
    cost = three.calibrate(spark, tmp_path / "calibration")
    verdict = three.admission(cost)
    assert verdict.admitted, verdict.text
    seconds = min(90.0, max(30.0, 3 * float(verdict.flows[0].latency) / 1000))
    gate = three.run(spark, tmp_path, verdict, seconds, gated=True)
    for name in ("alerts", "totals"):
        found = gate.turns[name].observed
        print(found.as_dict())
        assert found.rows > 1  # batches
        assert found.misses["scheduler"] == found.misses["input"] == 0, found.as_dict()
        assert found.misses["cost"] == 0 or found.overruns > 0
    assert gate.turns["noisy"].observed.max_delay > gate.turns["alerts"].observed.max_delay


@pytest.mark.slow
def test_a_batch_in_pieces_is_the_whole_batch(tmp_path: Path) -> None:
    spark = active() or session(**FAST)
    flow = MicroBatches("cut", TokenBucket(1000, 1), period=100, latency=60_000, batch_ms=100, row_ms=0)
    gate, seen = EdfGate([flow]), []
    take = gate.guard("cut", lambda part, number: seen.append(part.count()), split_by="id", pieces=3)
    take(spark.range(100).toDF("id"), 0)
    assert sum(seen) == 100
    assert len(gate.arbiter.granted) == len(seen) == 3
    assert min(seen) > 10
