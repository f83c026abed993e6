"""Whole data sets: exact on real streams, faithful to the bytes of the source, patient with bad rows."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.disorder.generate import DataSet, generate_disorder, sha256_of
from streamproof.errors import InputError

from .streams import late_events

ROOT = Path(__file__).parents[2]
COMMITS = ROOT / "tests/data/gitgit_commits.csv"
QUAKES = ROOT / "examples/earthquakes.csv"
DAY = 86_400_000
TARGETS = [
    {"targetOutOfOrderFactor": f, "maxDelay": d, "delaySeed": 5} for f in (1, 5, 20, 50, 80) for d in (5000, 3 * DAY)
]


def rows_of(outcome: DataSet, separator: str = ",") -> list[list[str]]:
    with outcome.path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file, delimiter=separator))


def measured(outcome: DataSet, separator: str = ",") -> int:
    """The out-of-order events of a CSV file, counted by hand; rows must be in the order of ingestion."""
    rows = [row for row in rows_of(outcome, separator) if row and row[0] != "ingestion_time"]
    ingestion = [int(row[0]) for row in rows]
    assert ingestion == sorted(ingestion)
    return late_events(np.array([int(row[1]) for row in rows]))


@pytest.mark.parametrize(("path", "time", "unit"), [(COMMITS, "author_ts", "s"), (QUAKES, "time", "ms")])
def test_real_streams_are_hit_to_the_event(path: Path, time: str, unit: str, configured, tmp_path: Path) -> None:
    source = sorted(path.read_text(encoding="utf-8").splitlines()[1:])
    for outcome in generate_disorder(configured(path, time, *TARGETS, unit=unit), out=tmp_path):
        wanted, found = outcome.manifest["requested"], outcome.manifest["achieved"]
        reachable = outcome.manifest["reachable_max"]["events"]
        assert found["events"] == min(wanted["events"], reachable) == measured(outcome)
        assert outcome.exact or outcome.manifest["mode"] == "highest reachable"
        lines = outcome.path.read_text(encoding="utf-8").splitlines()
        assert sorted(line.split(",", 2)[2] for line in lines[1:]) == source


def stream(count: int = 400, step: int = 10) -> str:
    """Times in order, with a header, quotes and separators inside them."""
    lines = [f'{n * step},"a, ""{n}""",dev{n % 3}\n' for n in range(count)]
    return "t,text,device\n" + "".join(lines)


def test_bytes_of_the_source_are_kept(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream())
    (outcome,) = generate_disorder(configured(path, "t", {"maxDelay": 500}), out=tmp_path)
    lines = outcome.path.read_text().splitlines()
    assert lines[0] == "ingestion_time,event_time,t,text,device"
    assert sorted(line.split(",", 2)[2] for line in lines[1:]) == sorted(path.read_text().splitlines()[1:])
    assert measured(outcome) == outcome.manifest["achieved"]["events"] == 80


@pytest.mark.parametrize("separator", [";", "|", "\t"])
def test_separators(separator: str, configured, written, tmp_path: Path) -> None:
    path = written("s.txt", "".join(f"x{separator}{n}\n" for n in range(100)))
    config = configured(path, 1, {"maxDelay": 50}, separator=separator)
    (outcome,) = generate_disorder(config, out=tmp_path)
    assert measured(outcome, separator) == 20
    assert outcome.path.name == "s-1.csv"


def test_line_endings_byte_order_marks_and_a_last_line_without_break(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", b"\xef\xbb\xbft,x\r\n" + b"".join(b"%d,\xe9\r\n" % n for n in range(100)) + b"100,z")
    (outcome,) = generate_disorder(configured(path, "t", {"maxDelay": 50}), out=tmp_path)
    data = outcome.path.read_bytes()
    assert data.startswith(b"ingestion_time,event_time,t,x\r\n")
    assert data.count(b"\xe9\r\n") == 100
    assert b",z\n" in data
    assert outcome.manifest["source"]["rows"] == 101


def test_bad_rows_are_counted_and_kept_with_their_lines(configured, written, tmp_path: Path) -> None:
    good = [f"{n},x\n" for n in range(100)]
    text = "t,x\n" + "".join(good[:50]) + "\n7\noops,x\n,x\n5,x,y\n" + "".join(good[50:])
    (outcome,) = generate_disorder(configured(written("s.csv", text), "t", {"maxDelay": 50}), out=tmp_path)
    assert outcome.manifest["source"] | {"rows": 100, "rejected": 5} == outcome.manifest["source"]
    rejects = [json.loads(line) for line in (tmp_path / "s.rejects.jsonl").read_text().splitlines()]
    assert [(reject["line"], reject["why"]) for reject in rejects] == [
        (52, "the line is blank"),
        (53, "1 fields where there should be 2"),
        (54, '"oops" is not a time'),
        (55, 'the time in "t" is missing'),
        (56, "3 fields where there should be 2"),
    ]
    assert len(rows_of(outcome)) == 101


def test_line_breaks_inside_quotes_are_found_out(configured, written, tmp_path: Path) -> None:
    text = "t,x\n" + "".join(f'{n},"two\nlines {n}"\n' for n in range(100))
    (outcome,) = generate_disorder(
        configured(written("s.csv", text), "t", {"maxDelay": 50}), out=tmp_path, partitions=None
    )
    assert outcome.manifest["source"]["rejected"] == 0
    assert {row[3] for row in rows_of(outcome)[1:]} == {f"two\nlines {n}" for n in range(100)}


def test_one_stray_quote_loses_one_line(configured, written, tmp_path: Path) -> None:
    text = (
        "t,x\n" + "".join(f"{n},x\n" for n in range(50)) + '50,"5 inch\n' + "".join(f"{n},x\n" for n in range(51, 100))
    )
    (outcome,) = generate_disorder(configured(written("s.csv", text), "t", {"maxDelay": 50}), out=tmp_path)
    assert outcome.manifest["source"]["rows"] == 99
    assert "does not end" in (tmp_path / "s.rejects.jsonl").read_text()


def test_quotes_may_mean_nothing_in_every_format(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", "t,x\n" + "".join(f'{n},"{n} inch\n' for n in range(40)))
    experiment = {"maxDelay": 50, "output": {"path": "o.parquet", "format": "parquet"}}
    (outcome,) = generate_disorder(configured(path, "t", experiment, quote=False), out=tmp_path)
    assert outcome.manifest["source"]["rejected"] == 0
    assert set(pq.read_table(outcome.path)["x"].to_pylist()) == {f'"{n} inch' for n in range(40)}


def test_a_header_is_found_out(configured, written, tmp_path: Path) -> None:
    with_header = written("a.csv", "when,x\n" + "".join(f"{n},x\n" for n in range(10)))
    without = written("b.csv", "".join(f"{n},x\n" for n in range(10)))
    for path, first in ((with_header, "ingestion_time,event_time,when,x"), (without, "0,0,0,x")):
        (outcome,) = generate_disorder(configured(path, 0, {"targetOutOfOrderFactor": 0}), out=tmp_path)
        assert outcome.path.read_text().splitlines()[0] == first
        assert outcome.manifest["source"]["rows"] == 10


def test_very_long_fields_and_odd_bytes(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", b"t,x\n" + b"".join(b"%d,%s\n" % (n, b"\x00\xff" * 100_000) for n in range(10)))
    (outcome,) = generate_disorder(configured(path, "t", {"maxDelay": 5}), out=tmp_path)
    assert outcome.manifest["source"]["rows"] == 10
    assert sorted(line.split(b",", 2)[2] for line in outcome.path.read_bytes().splitlines()) == sorted(
        path.read_bytes().splitlines()
    )


def test_nothing_but_noise(configured, written, tmp_path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 256, 100_000).astype(np.uint8).tobytes()
    (outcome,) = generate_disorder(configured(written("s.csv", noise + b"\n5\n6\n"), 0, {}), out=tmp_path)
    assert outcome.manifest["source"]["rows"] >= 1
    rejects = (tmp_path / "s.rejects.jsonl").read_text().split("\n")[:-1]
    assert [json.loads(line)["line"] for line in rejects] == sorted({json.loads(line)["line"] for line in rejects})
    assert len(rejects) == outcome.manifest["source"]["rejected"]


def test_columns_by_number_need_no_header(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", "".join(f"{n},x\n" for n in range(10)))
    (outcome,) = generate_disorder(configured(path, "0", {"targetOutOfOrderFactor": 0}), out=tmp_path)
    assert outcome.manifest["source"]["rows"] == 10


def test_lengths_of_time_that_do_not_fit(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", "t,k\n5,a\n6,b\n")
    for experiment, unit, what in (
        ({"maxDelay": 10**12}, "ps", "more than 2\\^60 ticks"),
        ({"outages": [{"from": 0, "to": 2**62}]}, "ms", "is not a time"),
        ({"outages": [{"from": 5, "to": 1}]}, "ms", "before it starts"),
        ({"clockSkew": {"a": 10**17}}, "ns", "below 2\\^60"),
        ({"clockSkew": {"a": 0.5}}, "s", "not a whole number of ticks"),
    ):
        with pytest.raises(InputError, match=what):
            generate_disorder(configured(path, "t", experiment, unit=unit, key="k"), out=tmp_path, overwrite=True)
    with pytest.raises(InputError, match="unknown time zone 'Mars'"):
        generate_disorder(configured(path, "t", {}, zone="Mars"), out=tmp_path)


def test_packed_files_and_folders_of_files(configured, written, tmp_path: Path) -> None:
    lines = [f"{n},x\n" for n in range(100)]
    plain = written("s.csv", "t,x\n" + "".join(lines))
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a.csv").write_text("t,x\n" + "".join(lines[:40]))
    (parts / "b.csv").write_text("t,x\n" + "".join(lines[40:]))
    texts = []
    for path in (plain, tmp_path / "packed.csv.gz", parts):
        (outcome,) = generate_disorder(configured(path, "t", {"maxDelay": 50}), out=tmp_path)
        assert outcome.manifest["achieved"]["events"] == measured(outcome) == 20
        texts.append(outcome.path.read_text())
    assert texts[0] == texts[1]
    assert sorted(line.split(",", 2)[2] for line in texts[2].splitlines()) == sorted(
        line.split(",", 2)[2] for line in texts[0].splitlines()
    )


def test_json_lines_and_tables(configured, written, tmp_path: Path) -> None:
    documents = [{"n": n, "when": {"t": 0}, "t": n * 10, "text": 'é"'} for n in range(100)]
    path = written("s.jsonl", "".join(json.dumps(document) + "\n" for document in documents))
    table = tmp_path / "s.parquet"
    pq.write_table(pa.Table.from_pylist(documents), table, row_group_size=30)
    for source, output in ((path, "jsonl"), (path, "parquet"), (table, "parquet"), (table, "jsonl"), (table, "csv")):
        config = configured(source, "t", {"maxDelay": 500, "output": {"path": str(tmp_path / f"made.{output}")}})
        (outcome,) = generate_disorder(config, out=tmp_path, overwrite=True)
        assert outcome.manifest["achieved"]["events"] == 20
        if output == "jsonl":
            rows = [json.loads(line) for line in outcome.path.read_text().splitlines()]
        elif output == "parquet":
            rows = pq.read_table(outcome.path).to_pylist()
        else:
            continue
        assert late_events(np.array([row["event_time"] for row in rows])) == 20
        assert [row["ingestion_time"] for row in rows] == sorted(row["ingestion_time"] for row in rows)
        kept = sorted(({k: row[k] for k in documents[0]} for row in rows), key=lambda row: row["n"])
        assert kept == documents


def test_columns_that_are_called_as_the_added_ones(configured, written, tmp_path: Path) -> None:
    text = "".join(json.dumps({"event_time": n, "x": 1}) + "\n" for n in range(50))
    for path in (written("s.jsonl", text), written("s.csv", "event_time,x\n" + "".join(f"{n},1\n" for n in range(50)))):
        (outcome,) = generate_disorder(configured(path, "event_time", {"maxDelay": 50}), out=tmp_path, overwrite=True)
        assert outcome.manifest["renamed_columns"] == {"event_time": "source_event_time"}
        assert "source_event_time" in outcome.path.read_text().splitlines()[0]
        assert outcome.manifest["achieved"]["events"] == 10


def test_the_promise_queries_over_event_time_do_not_see_the_disorder(configured, tmp_path: Path) -> None:
    experiment = {"targetOutOfOrderFactor": 60, "maxDelay": 2 * DAY, "output": {"path": str(tmp_path / "made.csv")}}
    (outcome,) = generate_disorder(configured(QUAKES, "time", experiment), out=tmp_path)
    assert outcome.exact
    queries = [
        sp.source("S").tumbling("1 day").aggregate(n=sp.count(), strongest=sp.max("mag")),
        sp.source("S").where("mag > 2").group_by("net").hopping("6 hours", "1 hour").aggregate(n=sp.count()),
        sp.source("S").where("mag > 3").snapshot().aggregate(n=sp.count(), mean=sp.avg("mag")),
    ]
    mapping = sp.ColumnMapping(start="time", duration="1h", unit="ms", payload=["mag", "net"])
    for query in queries:
        for engine in ("local", "duckdb"):
            before, after = (
                query.on(engine).run({"S": sp.read(path, mapping=mapping)}).history for path in (QUAKES, outcome.path)
            )
            assert len(before)
            assert before.rows.equals(after.rows)


def test_one_delay_per_device(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream(3000, step=1))
    config = configured(path, "t", {"targetOutOfOrderFactor": 10, "maxDelay": 10_000}, key="device")
    (outcome,) = generate_disorder(config, out=tmp_path)
    waits: dict[str, set[int]] = {}
    for row in rows_of(outcome)[1:]:
        if row[0] != row[1]:
            waits.setdefault(row[4], set()).add(int(row[0]) - int(row[1]))
    assert outcome.exact
    assert {device: len(found) for device, found in waits.items()} == {"dev0": 1, "dev1": 1, "dev2": 1}


def test_outages_hold_everything_up_until_they_end(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream())
    down = {"outages": [{"from": 1000, "to": 1500, "key": "dev1"}], "maxDelay": 300, "perKey": False}
    (outcome,) = generate_disorder(configured(path, "t", down, key="device"), out=tmp_path)
    assert outcome.exact
    assert measured(outcome) == outcome.manifest["achieved"]["events"]
    held = [row for row in rows_of(outcome)[1:] if row[4] == "dev1" and 1000 <= int(row[1]) < 1500]
    assert held
    assert {int(row[0]) for row in held} == {1500}
    assert outcome.manifest["before_delays"]["events"] == len(held)
    assert outcome.manifest["source"]["out_of_order"]["events"] == 0


def test_less_than_outages_make_cannot_be_had(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream())
    down = {"outages": [{"from": 0, "to": 3000, "key": "dev1"}], "targetOutOfOrderFactor": 1, "maxDelay": 300}
    (outcome,) = generate_disorder(configured(path, "t", down, key="device"), out=tmp_path)
    assert outcome.manifest["mode"] == "lowest reachable"
    assert not outcome.exact
    assert measured(outcome) == outcome.manifest["achieved"]["events"]


def test_wrong_clocks_move_arrivals_and_never_event_times(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream())
    skewed = {"clockSkew": {"dev0": 250, "dev2": -120}, "targetOutOfOrderFactor": 90, "maxDelay": 3000, "perKey": False}
    (outcome,) = generate_disorder(configured(path, "t", skewed, key="device"), out=tmp_path)
    assert measured(outcome) == outcome.manifest["achieved"]["events"]
    for row in rows_of(outcome)[1:]:
        assert row[1] == row[2]
        if row[4] == "dev0":
            assert int(row[0]) == int(row[1]) + 250


def test_the_same_configuration_gives_the_same_bytes(configured, tmp_path: Path) -> None:
    for seed, same in ((5, True), (6, False)):
        pair = []
        for name, number in (("a", 5), ("b", seed)):
            (tmp_path / name).mkdir(exist_ok=True)
            experiment = {"targetOutOfOrderFactor": 60, "maxDelay": 3 * DAY, "delaySeed": number}
            config = configured(COMMITS, "author_ts", experiment, unit="s")
            (outcome,) = generate_disorder(config, out=tmp_path / name, overwrite=True)
            assert outcome.manifest["output"]["sha256"] == sha256_of(outcome.path)
            pair.append(outcome.path.read_bytes())
        assert (pair[0] == pair[1]) == same


def test_rows_in_the_order_of_an_arrival_column(configured, tmp_path: Path) -> None:
    wanted = [{"targetOutOfOrderFactor": factor, "maxDelay": DAY} for factor in (20, 86, 90)]
    config = configured(QUAKES, "time", *wanted, arrival="updated")
    for outcome in generate_disorder(config, out=tmp_path):
        assert outcome.exact
        assert outcome.manifest["source"]["out_of_order"]["events"] == 8_848
        assert measured(outcome) == outcome.manifest["achieved"]["events"]


def test_zones(configured, written, tmp_path: Path) -> None:
    text = "t\n" + "".join(f"2024-07-01 12:00:{n:02d}\n" for n in range(60))
    path = written("s.csv", text)
    for zone, hours in ((None, 12), ("Europe/Vienna", 10)):
        config = configured(path, "t", {"targetOutOfOrderFactor": 0}, unit="s", **({"zone": zone} if zone else {}))
        (outcome,) = generate_disorder(config, out=tmp_path, overwrite=True)
        first = int(rows_of(outcome)[1][1])
        assert first % 86_400 == hours * 3600
        assert outcome.manifest["source"]["zone_assumed"] == 60


@pytest.mark.parametrize(
    ("content", "time", "unit", "what"),
    [
        ("", "t", "ms", "the source is empty"),
        ("t\n", "t", "ms", "the source holds no events"),
        ("t\nx\n", "t", "ms", "none of the 1 rows could be read"),
        ("t\n5\n", "tt", "ms", 'there is no column "tt"'),
        ("5\n", 3, "ms", "there is no column 3"),
        ("t\n5\n", "t", None, "nothing says how long a tick is"),
        ("t\n2024-05-01T12:00:00.5Z\n", "t", "s", "is finer than 1 s"),
        ("t\n99999999999999999999\n", "t", "s", "is not a time"),
        ("t,x\r1,a\r2,b\r", 0, "s", "none of the 1 rows could be read"),
    ],
)
def test_sources_that_cannot_be_read(  # noqa: PLR0917  # fixtures
    content: str, time: Any, unit: Any, what: str, configured, written, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as caught:
        generate_disorder(configured(written("s.csv", content), time, {}, unit=unit), out=tmp_path)
    assert what in caught.value.what
    assert caught.value.fix
    assert not list(tmp_path.glob("s-1*"))


def test_outputs_stay_below_their_folder(configured, written, tmp_path: Path) -> None:
    path = written("s.csv", stream())
    (tmp_path / "made").mkdir()
    (outcome,) = generate_disorder(configured(path, "t", {"output": {"path": "x.jsonl"}}), out=tmp_path / "made")
    assert outcome.path == tmp_path / "made/x.jsonl"
    assert json.loads(outcome.path.read_text().splitlines()[0])["device"] == "dev0"
    with pytest.raises(InputError, match="leads out of"):
        generate_disorder(configured(path, "t", {"output": {"path": "../x.csv"}}), out=tmp_path / "made")


def test_existing_data_sets_are_not_overwritten(configured, written, tmp_path: Path) -> None:
    config = configured(written("s.csv", stream()), "t", {})
    generate_disorder(config, out=tmp_path)
    with pytest.raises(InputError, match=r"s-1\.csv exists"):
        generate_disorder(config, out=tmp_path)
    assert generate_disorder(config, out=tmp_path, overwrite=True)[0].exact
    assert not list(tmp_path.glob(".streamproof-*"))
