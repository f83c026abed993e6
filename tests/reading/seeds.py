"""Small inputs that every target can begin with: good ones, from examples and worked cases, and bad ones, made by hand.

python -m tests.reading.seeds     writes them into tests/data/corpus/<target>/, beside the findings that are there
"""

# ruff: noqa: E501  # inputs stand as they are

from __future__ import annotations

import gzip
import io
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from tests.reading.targets import ANY, CORPUS, ROOT, SCHEMAS, TARGETS, running_query

Seeds = Iterator[bytes | str]
SOURCE: Final = '{"op":"source","name":"S"}'
TEN: Final = (
    '{"op":"where","in":%s,"expr":"v > 1 and k is not null"}',
    '{"op":"agg","aggs":{"n":["count",null],"m":["max","v"]},"window":{"type":"tumbling","size":"10s"},"in":%s}',
    '{"op":"select","in":%s,"exprs":{"w2":"v*2","s":"upper(k)"}}',
    '{"op":"shift","in":%s,"by":"5s"}',
)
EVENTS: Final = """{"kind":"insert","id":"a","le":1,"re":5,"payload":{"v":1,"k":"x"}}
{"kind":"insert","id":"b","le":3,"re":"inf","payload":{"v":null,"k":"y"}}
{"kind":"retract","id":"b","le":3,"re":"inf","re_new":7,"payload":{"v":null,"k":"y"}}
{"kind":"cti","t":9}
"""
CSV: Final = 'kind,id,le,re,re_new,v,k\ninsert,a,1,5,,1,x\ninsert,b,3,inf,,,"y ""q"""\nretract,b,3,inf,7,,"y ""q"""\ncti,,9,,,,\n'
BAD_NUMBERS: Final = ("9" * 5000, "1e999999999", "-0", "1_000", "NaN", "²", "٣", "0x1F", "1e", "--1", "")
BAD_TEXTS: Final = (
    "",
    "\0",
    "\ufeff",
    "\r",
    "'" * 50,
    '"' * 51,
    "(" * 300,
    "[" * 300,
    "{" * 300,
    "\ud800",
    "/*",
    "-- x",
    "é" * 40,
)

BAD_DOCUMENTS: Final = (
    '{"a":1,"a":2}', '{"version":1e999}', '{"version":' + "9" * 5000 + "}", "[]", "null", '"x"', "3", '{"version":"\\ud800"}', "{}", "[" * 20000,
)  # fmt: skip


def good() -> dict[str, Seeds]:
    """Inputs that are read."""
    return {
        "json": _plans(), "plan-file": _plans(), "xml": _xml(), "eql": _eql(), "sql": _sql(), "expression": iter(EXPRESSIONS),
        "python": iter(['sp.source("S").where("v > 1")']), "duration": iter(("5s", "1m 30s", "10", "inf", "250 ms", "-1 hour", "ms")),
        "columns": iter(("k string, price decimal(10, 2)", "v: int64", "decimal(38,0)", "timestamp")),
        "jsonl": iter((EVENTS, '{"le":1,"re":2,"w":3,"payload":{"v":1}}\n')), "events": _events(),
        "csv": iter((CSV, "le,re,v\n1,2,3\n")), "mapped-csv": _mapped_csv(), "mapped-jsonl": _mapped_jsonl(),
        "parquet": _parquet(), "ipc": _ipc(), "packed": _packed(), "input-option": iter(("S=data/x.csv", "start=time,duration=1h", "S:start=at,rename.a=b")),
        "savepoint": _savepoints(), "interrupted": _interrupted(), "replay-state": _replay_states(),
        "replay-manifest": iter(('{"source":{"time_unit":"us"}}\n---\ningestion_time,v\n1,2\n5,3\n',)),
        "spark-source": iter(("ingestion_time,v\n1,2\n5,3\n", '{"ingestion_time":1,"v":2}\n')),
        "replay-to": iter(("tcp://127.0.0.1:5", "kafka://a:1,b:2/topic?acks=all", "folder")), "output-folder": _outputs(), "checkpoint": _checkpoints(), "file-record": _file_records(),
        "document": iter(('{"a":[1,2.5,"x",null,true],"b":{"c":1e3}}',)), "disorder": _disorder(),
        "histogram": iter(("0,10,5\n10,20,2.5\n", "[[0,1,2],[1,5,1]]", '{"unit":"us","delay":{"histogram":[[0,10,2]]}}')),
        "recording": _recordings(), "qos": _files("examples/qos/worked.json", "examples/qos/flood.json"),
        "serve": _files("examples/qos/serve.json"), "repro": _repros(), "suite": _files("examples/suites/windows.json"),
        "tallies": _tallies(),
    }  # fmt: skip


def bad() -> dict[str, list[bytes | str]]:
    """Inputs that are refused: hand-made, of the kinds that once hung or broke something."""
    count = "SELECT count(*) FROM D"
    texts: dict[str, list[bytes | str]] = {name: [] for name in TARGETS} | {
        ANY: [*BAD_TEXTS, *BAD_DOCUMENTS, *BAD_NUMBERS]
    }
    texts["json"] += [f'{{"op":"shift","in":{SOURCE},"by":{number or 0}}}' for number in BAD_NUMBERS[:3]]
    texts["sql"] += [
        f"SELECT {'varchar(' * 16} FROM S",
        "SELECT TOP" + " " * 900 + "x",
        "SELECT decimal(a,b) FROM S",
        "SELECT 1 UNION " * 60,
    ]
    texts["expression"] += [
        "varchar(" * 16,
        "cast(v as decimal(a,b))",
        "v" + "@" * 400,
        "case when " * 40,
        "v + " * 200 + "v",
        "round(v,1,'x')",
    ]
    texts["eql"] += [
        f"{count} AT {'ARRIVE(A) @ ' * 200} ARRIVE(B)",
        f"{count} /* {'x' * 500}",
        f"{count} AT TIME(CRON '*/0 * * * *')",
    ]
    texts["xml"] += ["<a>" * 200, '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', '<source name="S"' + " a='1'" * 50 + "/>"]
    texts["replay-to"] += [
        "udp://h:1", "tcp://:5", "tcp://[", "tcp://h:x", "tcp://h:99999", "tcp://a..b:1", "tcp://h\0:1", "kafka:", "kafka://h",
        "kafka://h/t?a", "kafka://h/t?a=1&a=2", "tcp://h\u2100:1", "x\0y", "n" * 300,
    ]  # fmt: skip
    source = '{"file":"r.csv","time":{"timeIndex":"%s","sourceTimeUnit":"ms"}}'
    texts["disorder"] += [
        f'{{"dataSource":{source % digits},"experimentDataConfigurations":[{{"targetOutOfOrderFactor":20,"maxDelay":2000}}]}}'
        for digits in ("²", "9" * 5000)
    ]
    texts["spark-source"] += [
        "ingestion_time,event_time\n1,x\n", b"ingestion_time,v\n1,\xff\n", "[]\n", '\n{"ingestion_time":1}\n', '\ufeff{"ingestion_time":1}\n',
        b"\xff\xfe\n", '{"ingestion_time":1,"event_time":"x"}\n',
    ]  # fmt: skip
    texts["histogram"] += ["0,nan,5", "0,10,nan", "0,inf,5", f"[[0,1,{'9' * 390}]]", "0,1,1e308\n1,2,1e308"]
    texts["csv"] += [
        'le,re,k\n1,2,"open\n3,4,x\n',
        "le,re,v\r1,2,3\r",
        "le,re,v\n1,2\n1,2,3,4\n",
        "le,le,re\n1,1,2\n",
        "le,re," + "h" * 132000,
        "le,re,v\n" + "9" * 5000 + ",1,2",
    ]
    texts["jsonl"] += [
        '{"kind":"insert","le":1,"re":5,"payload":{"v":1e999}}',
        '{"kind":"insert","le":' + "9" * 5000 + ',"re":1}',
        '{"le":1,"le":2,"re":3}',
    ]
    return texts


EXPRESSIONS: Final = (
    "v > 1 and k is not null", "case when v > 1 then 'a' else k end", "cast(v as varchar) || k", "round(x, 1) + coalesce(v, 0)",
    "extract(year from t)", "v between 1 and 3 or k in ('a', 'b')", "l.k = r.k", "timestamp '2024-05-01T00:00:00Z'", "-v % 3", "not t",
)  # fmt: skip


def _plans() -> Seeds:
    yield from (one % SOURCE for one in TEN)
    yield from _files("examples/swarms.json", "examples/per_day.json", "examples/qos/strong.json")
    cases = json.loads((ROOT / "tests/data/algebra.json").read_text(encoding="utf-8"))
    found = [case["plan"] for case in _dicts(cases) if isinstance(case.get("plan"), dict)]
    yield from (json.dumps(plan) for plan in random.Random(1).sample(found, min(12, len(found))))


def _dicts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _dicts(part)


def _xml() -> Seeds:
    from streamproof.language import json as plan_json
    from streamproof.language import xml

    for text in _plans():
        yield xml.dumps(plan_json.loads(text if isinstance(text, str) else text.decode()))


def _eql() -> Seeds:
    text = (ROOT / "examples/eql/queries.eql").read_text(encoding="utf-8")
    yield from (query for query in text.split("\n\n") if query.strip())
    yield text


def _sql() -> Seeds:
    yield from _files("examples/eql/per_seg.sql")
    yield "SELECT k, count(*) AS n, max(v) AS m FROM S GROUP BY k"
    yield "SELECT v, upper(k) AS u FROM S WHERE v > 1"
    yield "SELECT A.v FROM A JOIN B ON A.k = B.k"


def _events() -> Seeds:
    yield "[" + ",".join(EVENTS.splitlines()) + "]"


def _mapped_csv() -> Seeds:
    yield "start=time,duration=1h,unit=ms\ntime,mag\n2024-05-01T12:00:00Z,5\n2024-05-01 12:00:01+02:00,6\n"
    yield "start=a,end=b,unit=s\na,b,c\n1,2,3\n3,,x\n"
    yield "start=t,kind=kind,id=id,new_end=n\nkind,id,t,n,v\ninsert,a,1,,2\nretract,a,1,1,2\n"


def _mapped_jsonl() -> Seeds:
    yield 'start=time,duration=len,unit=ms\n{"time":1,"len":3,"v":{"a":[1]}}\n{"time":2,"len":1,"v":null}\n'
    yield 'start=t,unit=us,payload=a+b\n{"t":"2024-05-01T12:00:00Z","a":1,"b":"x"}\n'


def _table(weight: int = 1) -> pa.Table:
    return pa.table(
        {
            "le": [1, 2, 4],
            "re": [3, 2**62, 9],
            "w": [1, weight, 1],
            "v": [1, None, 3],
            "k": ["a", "bc", None],
            "x": [0.5, None, -1.0],
        }
    )


def _parquet() -> Seeds:
    for options in ({}, {"use_dictionary": False, "compression": "none"}):
        sink = io.BytesIO()
        pq.write_table(_table(), sink, **options)
        yield sink.getvalue()


def _packed() -> Seeds:
    for text in (b"1;a\n2;b\n", b'1;"a\n;"\n', b"1\n2;\n"):
        yield b";" + gzip.compress(text, mtime=0)


def _ipc() -> Seeds:
    table = _table()
    rich = table.append_column("d", pa.array([1, 2, 3]).cast(pa.decimal128(30, 2))).append_column(
        "c", table["k"].dictionary_encode()
    )
    for one in (table, rich, _table(weight=2)):
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, one.schema) as file:
            file.write_table(one)
        yield sink.getvalue()
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    yield sink.getvalue()


def _savepoints() -> Seeds:
    query = running_query()
    yield query.savepoint()
    query.processor.push("S", json_events())
    yield (whole := query.savepoint())
    yield whole[68:]  # without the seal
    yield query.processor.savepoint()


def json_events() -> list[dict[str, Any]]:
    rows = [("a", 1, 5, 1, "x"), ("b", 3, 12, 2, "y"), ("c", 25, 40, None, "x")]
    return [
        {"kind": "insert", "id": n, "le": a, "re": b, "payload": {"v": v, "k": k, "x": 0.5, "t": True}}
        for n, a, b, v, k in rows
    ]


def _interrupted() -> Seeds:
    from streamproof.cli import savepoint

    query = running_query()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.savepoint"
        savepoint.save(path, query, claim={"plan": 1}, positions={"S": 0}, written={}, files={})
        yield path.read_bytes()
        yield path.read_bytes()[68:]


def _replay_states() -> Seeds:
    """Where a replay of the recording that the target makes stood when it was at its end."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "replay.state"
        TARGETS["replay-state"].read(b"", Path(folder))
        content = state.read_bytes()[68:].replace(str(Path(folder).resolve()).encode(), b"@FOLDER@")
        yield content


def _outputs() -> Seeds:
    from streamproof.engines.sealed import sealed_json
    from streamproof.engines.spark.output import KIND, VERSION, OutputFile, OutputState

    rows = '\n---\n{"kind":"insert","id":"a","le":1,"re":5,"payload":{"v":1}}\n'
    part = OutputFile("batch-000000000000.jsonl", 0, "@DIGEST@")
    state = OutputState("r", "events", "jsonl", (("v", "int64"),), None, 0, files=(part,))
    of_events, of_rows = (
        json.dumps(one.as_dict()).replace('"size": 0', '"size": "@SIZE@"')
        for one in (state, replace(state, content="rows"))
    )
    yield of_events + rows
    yield sealed_json(OutputState("r", "rows", "parquet", (), "ms").as_dict(), kind=KIND, version=VERSION)
    for row in ('{"le":1,"re":2,"w":1,"payload":{"v":1}}', '{"le":1,"re":2,"payload":{"v":1}}', "[]", "x", "[" * 5000):
        yield f"{of_rows}\n---\n{row}\n"


def _checkpoints() -> Seeds:
    from streamproof.engines.sealed import sealed_json
    from streamproof.engines.spark.stream.checkpoint import KIND, VERSION, CheckpointId

    claim = asdict(CheckpointId("p", 4, {"emit": "events"}, ((0, "d", 4),), "stop", "r"))
    yield json.dumps(claim)
    yield sealed_json(claim, kind=KIND, version=VERSION)


def _file_records() -> Seeds:
    from streamproof.engines.spark.stream.ledger import FileRecord

    yield json.dumps(asdict(FileRecord(0, "a.parquet", 10, 5, "d", {"format": "parquet"}, ("v",))))


def _disorder() -> Seeds:
    source = {"file": "r.csv", "time": {"timeIndex": 0, "sourceTimeUnit": "ms"}, "key": "device"}
    one = {"targetOutOfOrderFactor": 20, "maxDelay": 2000, "seed": 7}
    more = {
        **one,
        "distribution": {"name": "exponential", "mean": 500},
        "outages": [{"from": 1, "to": 2, "key": ["a"]}],
        "clockSkew": {"m1": 250},
        "output": {"path": "o.csv", "format": "csv"},
    }
    yield json.dumps({"dataSource": source, "experimentDataConfigurations": [one]})
    yield json.dumps({"dataSource": source, "experimentDataConfigurations": [more]})


def _recordings() -> Seeds:
    yield b"\x00" + b"time,v\n1,2\n5,3\n4,9\n"
    yield b"\x01" + b"time,v\n2024-05-01T12:00:00Z,2\n2024-05-01 11:00:00.5+01:00,3\n"
    yield b"\x02" + b"a;5\nb;4\nc;7\n"
    yield b"\x03" + b'{"time":5,"v":1}\n{"time":4}\n'
    yield b"\x04" + b'1,2,"a\nb"\n3,4,c\n'


def _repros() -> Seeds:
    from streamproof.workbench.draw.plans import seeded_case
    from streamproof.workbench.repro import Repro, write
    from streamproof.workbench.verdict import Verdict

    for seed in (3, 5):
        yield json.dumps(write(Repro(seeded_case(seed), Verdict("holds"), engine="local")))


def _tallies() -> Seeds:
    from streamproof.workbench.results import EngineResult

    yield json.dumps({"key": {}, "done": [], "tallies": {"local": EngineResult("local").as_dict()}})


def _files(*names: str) -> Seeds:
    yield from ((ROOT / name).read_bytes() for name in names)


def main() -> None:
    """Write them all."""
    assert SCHEMAS
    refused = bad()
    for name, seeds in {**good(), ANY: iter(())}.items():
        for kind, inputs in (("good", list(seeds)), ("bad", refused.get(name, []))):
            folder = CORPUS / name
            folder.mkdir(parents=True, exist_ok=True)
            for number, one in enumerate(inputs):
                (folder / f"{kind}-{number:02}").write_bytes(
                    one if isinstance(one, bytes) else one.encode(errors="surrogatepass")
                )


if __name__ == "__main__":
    main()
