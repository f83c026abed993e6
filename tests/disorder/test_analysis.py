"""The figures of real streams, and of random ones beside the slow and obvious way to count."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamproof.disorder.analysis import Analysis, analyze_file
from streamproof.errors import InputError

from .streams import random_times

ROOT = Path(__file__).parents[2]
HOUR, DAY = 3600, 86_400


@pytest.fixture(scope="module")
def commits() -> Analysis:
    return analyze_file(ROOT / "tests/data/gitgit_commits.csv", "author_ts", arrival="commit_ts", unit="s")


def test_the_commits_of_git(commits: Analysis) -> None:
    assert commits["events"] == 60_751
    assert commits["factor"] == pytest.approx(50.12, abs=0.005)
    lateness = commits["lateness"]
    days = [lateness[name] / DAY for name in ("mean", "p50", "p99")]
    assert days == pytest.approx([9.4, 0.87, 139], rel=0.01)
    assert lateness["max"] / (365.25 * DAY) == pytest.approx(12.9, abs=0.05)
    curve = dict(map(tuple, commits["drop_curve"]))
    shares = [curve[delay] for delay in (0, HOUR, DAY, 7 * DAY, 30 * DAY)]
    assert shares == pytest.approx([50.12, 46.30, 23.53, 7.57, 2.27], abs=0.005)
    assert commits["negatives"] == 14


def test_a_month_of_earthquakes() -> None:
    path = ROOT / "examples/earthquakes.csv"
    arrived = analyze_file(path, "time", arrival="updated", unit="ms")
    assert (arrived["events"], arrived["out_of_order"]) == (10_387, 8_848)
    assert arrived["factor"] == pytest.approx(85.18, abs=0.005)
    days = [arrived["lateness"][name] / (1000 * DAY) for name in ("mean", "p50", "p99", "max")]
    assert days == pytest.approx([5.9, 1.5, 28, 28.8], rel=0.02)
    standing = analyze_file(path, "time")
    assert standing["factor"] == pytest.approx(99.99, abs=0.005)
    assert any("newest first" in line for line in standing["advice"])


def test_keys_of_the_report(commits: Analysis) -> None:
    wanted = "events out_of_order factor lateness delay drop_curve delay_for_loss frequency runs blame nulls duplicates"
    figures = json.loads(commits.to_json())
    assert set(f"{wanted} rejected advice".split()) <= set(figures)
    assert list(figures["delay_for_loss"]) == ["1%", "0.1%", "0"]
    assert {"min", "mean", "p50", "p90", "p99", "p999", "max"} <= set(figures["lateness"])


def by_hand(times: list[int]) -> dict[str, object]:
    """The definitions, word by word."""
    lateness = [max(0, max(times[:n], default=time) - time) for n, time in enumerate(times)]
    late = sorted(value for value in lateness if value)
    pairs = [(i, j) for j in range(len(times)) for i in range(j) if times[i] > times[j]]
    longest = [1] * len(times)
    for j in range(len(times)):
        longest[j] = 1 + max((longest[i] for i in range(j) if times[i] <= times[j]), default=0)
    return {
        "late": late,
        "runs": 1 + sum(b < a for a, b in pairwise(times)),
        "inversions": len(pairs),
        "buffer": max((sum(j == k for _, j in pairs) for k in range(len(times))), default=0),
        "rem": len(times) - max(longest),
    }


def write(path: Path, times: list[int]) -> Path:
    path.write_text("t,x\n" + "".join(f"{time},{n}\n" for n, time in enumerate(times)))
    return path


def test_random_streams_beside_the_definitions(tmp_path: Path) -> None:
    for seed in range(60):
        draw = random.Random(seed)
        times = random_times(draw, 60).tolist()
        draw.choice([lambda x: None, draw.shuffle])(times)
        wanted = by_hand(times)
        late = wanted["late"]
        assert isinstance(late, list)
        path = write(tmp_path / "s.csv", times)
        found = analyze_file(path, "t", unit="s", more=True, on="here", partitions=draw.randint(1, 5))
        assert found["out_of_order"] == len(late)
        assert found["runs"] == wanted["runs"]
        assert {name: found["order"][name] for name in ("inversions", "buffer", "rem")} == {
            name: wanted[name] for name in ("inversions", "buffer", "rem")
        }
        for delay, percent in found["drop_curve"]:
            assert percent == pytest.approx(100 * sum(value > delay for value in late) / len(times))
        for name, share in (("1%", 0.01), ("0.1%", 0.001), ("0", 0)):
            delay = found["delay_for_loss"][name]
            assert sum(value > delay for value in late) <= share * len(times)
            assert not delay or sum(value > delay - 1 for value in late) > share * len(times)
        assert sum(event["made_late"] for event in found["blame"]) <= len(late)
        if late:
            assert found["lateness"]["p50"] == np.quantile(late, 0.5, method="inverted_cdf")
            assert found["lateness"]["p99"] == np.quantile(late, 0.99, method="inverted_cdf")
            assert sum(count for *_, count in found["lateness"]["histogram"]) == len(late)


def test_blame_adds_up_over_pieces(tmp_path: Path) -> None:
    times = [0, 1000, *range(1, 500), 1001, *range(500, 900), 2000]
    path = write(tmp_path / "s.csv", times)
    for pieces in (1, 2, 7):
        found = analyze_file(path, "t", unit="s", on="here", partitions=pieces)
        blamed = [(event["event_time"], event["made_late"], event["ahead"]) for event in found["blame"]]
        assert blamed == [(1000, 499, 1000), (1001, 400, 1)]
        assert [event["row"] for event in found["blame"]] == ["line 3", "line 503"]


def test_a_wrong_clock_is_found_and_said(tmp_path: Path) -> None:
    times = [*range(0, 4000, 10), 10**9, *range(4000, 10_000, 10)]
    found = analyze_file(write(tmp_path / "s.csv", times), "t", unit="s")
    assert found["factor"] == pytest.approx(100 * 600 / 1001)
    assert found["runs"] == 2
    assert found["without_culprits"]["out_of_order"] == 0
    (line,) = [line for line in found["advice"] if "clock" in line]
    assert "made 600 others late" in line
    assert "Filter such events out" in line


def test_leaving_wrong_clocks_out_is_measuring_a_file_without_them(tmp_path: Path) -> None:
    """However the file is cut: what comes before a piece counts without them too."""
    rest = [time + 25 * (n % 17 == 0) for n, time in enumerate(range(0, 10_000, 10))]
    times = [*rest[:400], 10**9, *rest[400:]]
    clean = analyze_file(write(tmp_path / "clean.csv", rest), "t", unit="s", on="here")
    path = write(tmp_path / "s.csv", times)
    for pieces in (1, 2, 5, 9):
        found = analyze_file(path, "t", unit="s", on="here", partitions=pieces)["without_culprits"]
        assert [event["event_time"] for event in found["left_out"]] == [10**9]
        assert {name: found[name] for name in ("out_of_order", "factor", "delay_for_loss")} == {
            name: clean[name] for name in ("out_of_order", "factor", "delay_for_loss")
        }


def test_advice_to_paste(tmp_path: Path) -> None:
    found = analyze_file(write(tmp_path / "s.csv", [0, 100, 40, 200, 199]), "t", unit="s")
    assert any('.withWatermark("t", "1 minute")' in line for line in found["advice"])
    in_order = analyze_file(write(tmp_path / "o.csv", [1, 1, 2]), "t", unit="s")
    assert "All 3 events arrive in order" in in_order["advice"][0]
    assert in_order["lateness"]["p50"] is None


def test_duplicates_nulls_and_rejects(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("t,x\n1,a\n1,a\n2,b\n1,a\n,c\nx,d\n")
    found = analyze_file(path, "t", unit="s", rejects=tmp_path / "bad.jsonl")
    assert (found["events"], found["duplicates"], found["nulls"], found["rejected"]) == (4, 2, 1, 2)
    assert [json.loads(line)["line"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()] == [6, 7]


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("t,k\n10,a\n5,b\n12,a\n11,b\n13,a\n")
    found = analyze_file(path, "t", unit="s", key="k")
    assert found["keys"]["count"] == 2
    assert found["keys"]["most_late"][0] == {
        "key": "b",
        "events": 2,
        "out_of_order": 2,
        "factor": 100.0,
        "max_lateness": 5,
    }


def test_what_spark_would_drop(tmp_path: Path) -> None:
    times = [0, 100, 1, 2, 50, 10, 95, 200, 99, 290]
    path = write(tmp_path / "s.csv", times)
    found = analyze_file(path, "t", unit="s", batch_rows=2, delay=10)["spark"]
    # what drops late rows in the five batches: nothing, nothing, 90, 90, 90
    assert (found["batches"], found["dropped"]) == (5, 2)
    windowed = analyze_file(path, "t", unit="s", batch_rows=2, delay=0, window=100)["spark"]
    assert (windowed["dropped"], windowed["windows_hit"]) == (4, 1)
    with pytest.raises(InputError, match="at least 1"):
        analyze_file(path, "t", unit="s", batch_rows=0)


def test_the_page_is_complete_and_harmless(tmp_path: Path) -> None:
    path = tmp_path / "<b>.csv"
    path.write_text("<i>t,k\n10,<script>\n5,<script>\n12,a\n")
    found = analyze_file(path, "<i>t", unit="s", key="k", more=True, batch_rows=2)
    page = found.to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "<i>t" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<svg") == 5
    assert found._repr_html_() in page
    assert "out of order" in str(found)


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ({"format": "excel"}, "there is no format 'excel'"),
        ({"zone": ""}, "unknown time zone ''"),
        ({"separator": "ab"}, "the separator cannot be 'ab'"),
        ({"separator": '"'}, "the separator cannot be"),
        ({"event_time": "²"}, 'there is no column "²"'),
        ({"key": "9" * 5000}, "there is no column"),
        ({"on": "mars"}, "nothing runs on 'mars'"),
        ({"partitions": -3}, "partitions cannot be -3"),
        ({"delay": 3}, "delay and window are of micro-batches"),
        ({"batch_rows": 10**30}, "rows or ticks"),
    ],
)
def test_options_that_mean_nothing_are_refused(option: dict[str, Any], what: str, tmp_path: Path) -> None:
    file = tmp_path / "r.csv"
    file.write_text("time,v\n1,2\n5,3\n4,9\n")
    with pytest.raises(InputError, match=what):
        analyze_file(file, **{"event_time": "time", "unit": "ms", "on": "here", **option})
