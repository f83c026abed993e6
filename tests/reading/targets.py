"""Everything that reads what people or other programs wrote: one target each, fed with bytes.

A target hands bytes to a reader as a user would, and goes on as far as reading and checking go. `FORMATS` says which
parser, loader or reader of the product each covers, so that a new one without a target fails a test.
"""

# ruff: noqa: E501  # words of languages stand in one line

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema

ROOT: Final = Path(__file__).parents[2]
CORPUS: Final = ROOT / "tests" / "data" / "corpus"
ANY: Final = "any"

Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """A reader: what it does with bytes in a folder of its own, what it covers, and the words of its language."""

    name: str
    read: Read
    covers: tuple[str, ...]  # module:function, below streamproof
    words: str = ""  # tokens that bytes alone would take long to find, between blanks
    binary: bool = False

    def corpus(self) -> list[Path]:
        """The inputs that are kept, seeds and findings; texts that nothing should choke on are shared by all."""
        folders = [CORPUS / self.name] if self.binary else [CORPUS / self.name, CORPUS / ANY]
        return sorted(path for folder in folders for path in folder.glob("*") if path.is_file())


TARGETS: Final[dict[str, Target]] = {}


def target(name: str, *covers: str, words: str = "", binary: bool = False) -> Callable[[Read], Read]:
    """A target of this name."""

    def add(read: Read) -> Read:
        TARGETS[name] = Target(name, read, covers, words, binary)
        return read

    return add


@contextmanager
def refusing() -> Iterator[None]:
    """Go on after a refusal, where one input is read in several ways."""
    with suppress(StreamproofError):
        yield


def text_of(data: bytes) -> str:
    """Text as a program hands it over: any characters, halves of characters too."""
    try:
        return data.decode("utf-8", errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", errors="replace")


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# --- plans as text ----------------------------------------------------------------------------------------------------

SCHEMAS: Final = {
    name: Schema.of({"v": "int64", "k": "string", "x": "float64", "t": "bool"}, unit="ms") for name in ("A", "B", "S")
}
_EQL: Final = ("Acc", "Badge", "Bird", "Car", "Door", "Heart", "Pos", "Room", "Seg", "Sensors")
_NUMBERS: Final = dict.fromkeys(("mag", "speed", "bpm", "temp", "avgspeed", "light", "open", "on", "seg"), "float64")
PLAN_SCHEMAS: Final = {
    name: Schema.of(
        {
            "v": "int64",
            "k": "string",
            "x": "float64",
            "t": "timestamp",
            "b": "bool",
            "time": "timestamp",
            "person": "string",
            "dir": "string",
            "kind": "string",
            "soldier": "string",
            **_NUMBERS,
        },
        unit="ms",
    )
    for name in ("A", "B", "S", "quakes", *_EQL)
}
_OPS: Final = (
    "source group_input ref let where select shift extend alter_duration to_point point_at_end chop stitch coalesce distinct "
    "union join left_outer full_outer followed_by lasj clip group_apply session agg topk uda udo advance_time transition drift "
    "pairing during eql anti_join in ins left right by expr exprs name op on keys aggs k size hop offset period timeout "
    "stream columns fn params version plan unit inf window type tumbling hopping snapshot count max sum"
)
_SQL_WORDS: Final = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT TOP UNION ALL JOIN ON LEFT FULL AS WITH AND OR NOT NULL IS IN BETWEEN "
    "CASE WHEN THEN ELSE END CAST ( ) , . * + - / % < <= = <> || '5s' \"S\" INTERVAL TUMBLE HOP SESSION EXTRACT count(*) "
    "sum(v) avg(x) varchar( decimal(10,2) timestamp int64 OVER PARTITION ROWS EXISTS QUALIFY USING S A B v k x t 1e9 0x1F "
    ":: \"\" -> => : [ ] { } ; ! ^ ~ & | # $1 ? // e'' x'1' LAMBDA STRUCT MAP ARRAY TRY_CAST( EXTRACT( SUBSTRING( TRIM( POSITION( "
    "UNNEST PIVOT ANY SOME ASOF LATERAL WINDOW FILTER WITHIN IGNORE NULLS COLLATE AT TIME ZONE DISTINCT SIMILAR TO ESCAPE"
)


def _checked(loads: Callable[[str], Any], text: str) -> None:
    from streamproof.engines.base import Settings, prepare

    prepare(loads(text), PLAN_SCHEMAS, Settings())


@target("json", "language/json.py:loads", "language/notation.py:from_document", "language/notation.py:read_value",
        words=f'{_OPS} {{ }} [ ] : , " true false null -1 1e9 "5s" "v>1" "type":"decimal" \\ud800')  # fmt: skip
def plan_json(data: bytes, folder: Path) -> None:
    from streamproof.language import json as language

    _checked(language.loads, text_of(data))


@target("xml", "language/xml.py:loads",
        words=f'{_OPS} < > </ /> = " <!DOCTYPE <!ENTITY <![CDATA[ ]]> &amp; &#x41; <?xml <!-- -->')  # fmt: skip
def plan_xml(data: bytes, folder: Path) -> None:
    from streamproof.language import xml

    _checked(xml.loads, text_of(data))


@target("eql", "language/eql/__init__.py:loads", "language/eql/__init__.py:loads_all",
        "language/eql/parser.py:parse_document", "language/eql/parser.py:parse_query",
        words=f"{_SQL_WORDS} EVENT AT DURING EVERY WINDOW LASTING ARRIVE( CHANGES( BECOMES TIME CRON WITHIN OPEN @ ; "
        "'*/5 * * * *' CURRENT FILL CLOSED STARTS ENDS QOS LATENCY /* */ -- ON ARRIVAL ticks s ms h d")  # fmt: skip
def plan_eql(data: bytes, folder: Path) -> None:
    from streamproof.language import eql

    text = text_of(data)
    with refusing():
        eql.loads_all(text)
    _checked(eql.loads, text)


@target("sql", "language/sql/reader.py:loads", "language/sql/reader.py:loads_all", words=_SQL_WORDS)
def plan_sql(data: bytes, folder: Path) -> None:
    from streamproof.language import sql

    text = text_of(data)
    with refusing():
        sql.loads_all(text)
    _checked(sql.loads, text)


@target("python", "language/python.py:loads")
def plan_python(data: bytes, folder: Path) -> None:
    from streamproof.language import python

    python.loads(text_of(data))


@target("plan-file", "cli/plans.py:load_plan", words=_OPS)
def plan_file(data: bytes, folder: Path) -> None:
    """Files of every language, with the name of one of their queries."""
    from streamproof.cli.plans import load_plan

    for name in ("p.json", "p.xml", "p.eql#2", "p.sql#1", "p.eql"):
        put(folder, name.partition("#")[0], data)
        with refusing():
            load_plan(str(folder / name), modules=())


@target("expression", "plan/parse.py:parse", "plan/parse.py:parse_or_literal", words=_SQL_WORDS)
def expression(data: bytes, folder: Path) -> None:
    from streamproof.plan.check import check
    from streamproof.plan.nodes import Select, Source
    from streamproof.plan.parse import parse, parse_or_literal
    from streamproof.plan.text import to_text

    text = text_of(data)
    with refusing():
        parse_or_literal(text)
    found = parse(text)
    to_text(found)
    check(Select(Source("S"), (("z", found),)), PLAN_SCHEMAS)


@target("duration", "plan/durations.py:read_span", "plan/durations.py:read_duration", "events/time.py:read_tick", "events/time.py:read_unit",
        "cli/plans.py:read_horizon", words="ns us ms s m h d w seconds minutes hour inf -inf 1 5s 1m 30s 2.5 1e9 , + - .")  # fmt: skip
def duration(data: bytes, folder: Path) -> None:
    from streamproof.cli.plans import read_horizon
    from streamproof.events import time
    from streamproof.plan.durations import read_duration, read_span

    text = text_of(data)
    for read in (read_span, read_duration, time.read_tick, read_horizon):
        with refusing():
            read(text)
    for unit in (*time.UNITS, None):
        with refusing():
            time.duration(text, unit)
    time.read_unit(text, "unit=")


@target("columns", "cli/generate.py:read_columns", "events/schema.py:parse_type",
        words="int64 float64 string bool bytes decimal(10,2) timestamp date null decimal( ) , : k v le re w streamproof_w")  # fmt: skip
def columns(data: bytes, folder: Path) -> None:
    from streamproof.cli.generate import read_columns
    from streamproof.events.schema import parse_type

    text = text_of(data)
    with refusing():
        parse_type(text)
    read_columns(text, "ms")


# --- files of events --------------------------------------------------------------------------------------------------


def _read_file(path: Path, **options: Any) -> None:
    """All that a run does with a file before its first operator: rows, rules of the stream, signed rows."""
    from streamproof.engines.inputs import load
    from streamproof.events.files import read
    from streamproof.pictures.text import marbles

    reader = read(path, **options)
    loaded = load("S", reader).checked()
    loaded.history()
    assert reader.schema == loaded.schema
    marbles(reader.stream(), rows=5)


def _read_mapped(data: bytes, folder: Path, name: str) -> None:
    """The first line is an option --map, the rest the file."""
    from streamproof.cli.inputs import mapping_for

    option, _, rest = data.partition(b"\n")
    _read_file(put(folder, name, rest), mapping=mapping_for("S", [text_of(option)]))


_LAYOUT: Final = "kind id le re re_new w payload insert retract cti inf -inf streamproof_le"
_MAP: Final = (
    "start=time end= duration=1h duration=len id= kind= new_end= cti= unit=ms payload=a+b rename.a=b assume_zone=UTC S:"
)
_TIMES: Final = (
    "2024-05-01T12:00:00Z 2024-05-01 12:00:00 +02:00 1714564800 1e400 -1 0 9223372036854775807 10000-01-01T00:00:00Z"
)


@target("jsonl", "events/files/__init__.py:read", "events/event.py:read_event", "events/notation.py:read_value",
        "engines/inputs.py:load", "events/stream.py:PhysicalStream.from_dicts",
        words=f'{_LAYOUT} {{"kind":"insert","id":"a","le":1,"re":5,"payload":{{"v":1}}}} {{ }} [ ] : , " null true 1e400 \\ud800 NaN')  # fmt: skip
def jsonl(data: bytes, folder: Path) -> None:
    """Events; with a schema too, where texts become days, decimals and instants."""
    path = put(folder, "S.jsonl", data)
    rich = {"v": "int64", "k": "string", "m": "decimal(10,2)", "f": "float64", "b": "bool"}
    with refusing():
        _read_file(path, schema=Schema.of(rich, unit="ms"))
    _read_file(path)


@target("events", "events/stream.py:PhysicalStream.from_dicts", "events/event.py:read_event",
        words=f'{_LAYOUT} {{"kind":"insert","id":"a","le":1,"re":5,"payload":{{"v":1}}}} {{ }} [ ] : , " null true 1e400 NaN')  # fmt: skip
def events(data: bytes, folder: Path) -> None:
    """Events as Python has them: whatever JSON can say."""
    from streamproof.engines.inputs import load

    try:
        documents = json.loads(data)
    except (ValueError, RecursionError):
        return  # the user's own
    if isinstance(documents, list) and all(isinstance(one, dict) for one in documents):
        load("S", documents).checked().history()


@target("csv", "events/files/__init__.py:read", words=f'{_LAYOUT} {_TIMES} , ; " "" \\r\\n \\n le,re,v')
def csv(data: bytes, folder: Path) -> None:
    path = put(folder, "S.csv", data)
    with refusing():
        _read_file(path, schema=SCHEMAS["S"])
    _read_file(path)


@target("mapped-csv", "cli/inputs.py:mapping_for", "cli/inputs.py:open_input", words=f'{_MAP} {_TIMES} , ; " \\n')
def mapped_csv(data: bytes, folder: Path) -> None:
    _read_mapped(data, folder, "S.csv")


@target("mapped-jsonl", "cli/inputs.py:mapping_for", words=f'{_MAP} {_TIMES} {{ }} [ ] : , " null true')
def mapped_jsonl(data: bytes, folder: Path) -> None:
    _read_mapped(data, folder, "S.jsonl")


@target("parquet", "events/files/__init__.py:read", "events/files/binary.py:read_metadata", binary=True)
def parquet(data: bytes, folder: Path) -> None:
    _read_file(put(folder, "S.parquet", data))


@target("ipc", "events/files/__init__.py:read", binary=True)
def ipc(data: bytes, folder: Path) -> None:
    _read_file(put(folder, "S.arrow", data))


@target("packed", "events/files/listing.py:open_text", binary=True)
def packed(data: bytes, folder: Path) -> None:
    """The first byte is the separator, the rest a packed file without header; it lies in a folder too."""
    from streamproof.events.files import ColumnMapping

    (folder / "S").mkdir(exist_ok=True)
    path = put(folder / "S", "a.csv.gz", data[1:])
    separator = data[:1].decode("latin-1")
    with refusing():
        _read_file(path, mapping=ColumnMapping(start="c0"), separator=separator, header=False)
    _read_file(path.parent, mapping=ColumnMapping(start="c0"), separator=separator, header=False)


@target("input-option", "cli/inputs.py:split_input", "events/files/listing.py:read_separator", words=f"S = / .. {_MAP}")
def input_option(data: bytes, folder: Path) -> None:
    from streamproof.cli.inputs import mapping_for, split_input
    from streamproof.events.files.listing import read_separator

    text = text_of(data)
    with refusing():
        split_input(text)
    with refusing():
        read_separator(text, "here")
    mapping_for("S", [text])


# --- state that runs leave behind -------------------------------------------------------------------------------------


def running_query() -> Any:
    """A query whose savepoint holds rows, sums and open windows."""
    import streamproof as sp

    processor = sp.Processor()
    processor.source("S", SCHEMAS["S"])
    query = sp.source("S").group_by("k").apply(lambda s: s.tumbling(10).aggregate(n=sp.count(), most=sp.max("v")))
    return processor.start(query.plan, name="q")


@target("savepoint", "engines/local/processor.py:Processor.restore", "engines/local/processor.py:Processor.load",
        "engines/local/query.py:RunningQuery.restore", "engines/local/graph_state.py:read_table",
        "engines/sealed.py:opened", binary=True)  # fmt: skip
def savepoint(data: bytes, folder: Path) -> None:
    import streamproof as sp
    from streamproof.engines.local.savepoint import KIND, VERSION

    whole = _sealed(data, KIND, VERSION)
    with refusing():
        sp.Processor.restore(whole)
    running_query().restore(whole)


def _sealed(data: bytes, kind: str, version: int) -> bytes:
    """The bytes, if they have a seal, right or wrong; else what somebody who can seal made of them."""
    from streamproof.engines.sealed import MAGIC, sealed

    return data if data.startswith(MAGIC[:4]) else sealed(data, kind=kind, version=version)


@target("interrupted", "cli/savepoint.py:load", binary=True)
def interrupted(data: bytes, folder: Path) -> None:
    from streamproof.cli import savepoint

    path = put(folder, "run.savepoint", _sealed(data, savepoint.KIND, savepoint.VERSION))
    found = savepoint.load(path, claim={"plan": 1}, files={})
    savepoint.restore(running_query(), found, folder)


@target("replay-state", "disorder/config.py:read_configuration", binary=True)
def replay_state(data: bytes, folder: Path) -> None:
    """The file of ``replay --resume``."""
    from streamproof.disorder.replaying import STATE, STATE_VERSION, Recording, Replay
    from streamproof.disorder.targets import open_target

    source = put(folder, "in.csv", b"ingestion_time,v\n1,2\n5,3\n9,4\n")
    shutil.rmtree(folder / "out", ignore_errors=True)
    state = folder / "replay.state"
    state.unlink(missing_ok=True)
    recorded = Recording(source, unit="ms")
    Replay(recorded, open_target(str(folder / "out"), recorded, overwrite=True), speed=None, state=state).run()
    if data:
        told = data.replace(b"@FOLDER@", str(folder.resolve()).encode())
        state.write_bytes(_sealed(told, STATE, STATE_VERSION))
        Replay(recorded, open_target(str(folder / "out"), recorded, overwrite=True), speed=None, state=state).run()


@target("spark-source", words='ingestion_time event_time v 1 2 "x" { } [ ] : , " \\n null 1.5')
def spark_source(data: bytes, folder: Path) -> None:
    """A recording as Spark reads it; lines of JSON or of CSV."""
    from streamproof.disorder.spark_sources import batches, schema_of

    for name in ("s.jsonl", "s.csv"):
        with refusing():
            path = put(folder, name, data)
            list(batches(path, schema_of(path), 0, len(data)))


@target("replay-manifest", "disorder/rows.py:read_bytes", words='source time_unit ms ps { } [ ] : , " null')
def replay_manifest(data: bytes, folder: Path) -> None:
    """What disorder writes beside a stream; after a line of dashes, the stream."""
    from streamproof.disorder.replaying import Recording

    manifest, _, rows = data.partition(b"\n---\n")
    put(folder, "s.manifest.json", manifest)
    for recorded in Recording(put(folder, "s.csv", rows or b"ingestion_time,v\n1,2\n")).rows():
        len(recorded.due)


@target(
    "replay-to",
    "disorder/targets.py:open_target",
    words="tcp:// kafka:// :9999 :x [ ] :: / @ ? & acks=all = localhost . - %00 # , ~",
)
def replay_to(data: bytes, folder: Path) -> None:
    """The name of a target; nobody is called, and folders are made here alone."""
    from streamproof.disorder import targets
    from streamproof.disorder.replaying import Recording

    text, recorded = text_of(data), Recording(put(folder, "in.csv", b"1,2\n5,3\n"), unit="ms")
    shutil.rmtree(folder / "to", ignore_errors=True)
    if "://" not in text:
        (folder / "to").mkdir()
        targets.open_target(f"{folder}/to/{text.replace('/', '')}", recorded)
        return
    with patch.object(targets, "TcpTarget"), patch.object(targets, "KafkaTarget"):
        targets.open_target(text, recorded)


def _forged(data: bytes, kind: str, version: int) -> bytes:
    """The bytes, if they are a sealed document, whole or damaged; else with the seal that anybody can compute."""
    from streamproof.engines.sealed import digest_of, sealed_json

    head = sealed_json({}, kind=kind, version=version)[:12]
    if data.startswith(head):
        return data
    about = f'"kind": "{kind}", "version": {version}, '.encode()
    body = about + data[1:] if data.startswith(b"{") else data
    return head + digest_of(body).encode() + b'", ' + body


@target("output-folder", "engines/sealed.py:opened_json", "engines/spark/output.py:read_state",
        "engines/spark/output.py:read_output", "engines/spark/output.py:read_rows", "engines/spark/output.py:read_events",
        "engines/spark/output.py:OutputState.from_dict",
        words='version run batch content format files open letters columns unit cht events rows jsonl parquet ../ / { } [ ] " : , -1 1e9')  # fmt: skip
def output_folder(data: bytes, folder: Path) -> None:
    """The state of a folder of output; after a line of dashes, the file that it names."""
    from streamproof.engines.sealed import digest_of
    from streamproof.engines.spark.output import KIND, STATE, VERSION, read_events, read_output

    state, _, rows = data.partition(b"\n---\n")
    for name in ("batch-000000000000.jsonl", "sealed-000000000000.jsonl"):
        (folder / name).unlink(missing_ok=True)  # a file that no run recorded is refused
        if name.encode() in state:
            put(folder, name, rows)
    state = state.replace(b'"@SIZE@"', str(len(rows)).encode()).replace(b"@DIGEST@", digest_of(rows).encode())
    put(folder, STATE, _forged(state, KIND, VERSION))
    with refusing():
        read_events(folder)
    read_output(folder)


@target("checkpoint", "engines/spark/stream/checkpoint.py:recorded",
        words='version plan buckets facts stages on_error run { } [ ] " : , 3 4 -1 null')  # fmt: skip
def checkpoint(data: bytes, folder: Path) -> None:
    from streamproof.engines.spark.stream.checkpoint import FILE, KIND, VERSION, recorded

    put(folder, FILE, _forged(data, KIND, VERSION))
    recorded(folder)


@target("file-record", "engines/sealed.py:opened_json",
        words='number name size time digest columns schema parts { } [ ] " : , -1 null')  # fmt: skip
def file_record(data: bytes, folder: Path) -> None:
    """What a checkpoint notes of each file that it took."""
    from streamproof.engines.spark.stream.ledger import KIND, VERSION, FileLedger

    place = folder / "ledger"
    place.mkdir(exist_ok=True)
    put(place, "_000000.json", _forged(data, KIND, VERSION))
    FileLedger(place, {"format": "parquet"})


# --- configurations ---------------------------------------------------------------------------------------------------


@target(
    "document",
    "documents.py:parse",
    "documents.py:load",
    "documents.py:read_text",
    words='{ } [ ] : , " \\u \\ud800 true null NaN Infinity 1e400 -0 1_0',
)
def document(data: bytes, folder: Path) -> None:
    from streamproof import documents

    for exact in (False, True):
        with refusing():
            documents.parse(text_of(data), exact=exact)
    documents.load(put(folder, "d.json", data), constants=True)


@target("disorder", "disorder/config.py:read_configuration", "disorder/config.py:configuration_of",
        "disorder/distributions.py:read_distribution", "disorder/units.py:read_unit",
        words='dataSource file time timeIndex arrivalIndex sourceTimeUnit zone separator header format quote multiline key '
        'experimentDataConfigurations targetOutOfOrderFactor minDelay maxDelay delaySeed distribution perKey outages from to '
        'clockSkew output path name exponential mean normal pareto empirical constant { } [ ] : , " "1/3" 1e300 "ps" os:getcwd')  # fmt: skip
def disorder(data: bytes, folder: Path) -> None:
    """A configuration, and what it says of its source, over a source of ours."""
    from streamproof.disorder.config import read_configuration
    from streamproof.disorder.layout import plan_layout

    read = read_configuration(put(folder, "c.json", data))
    with refusing():
        plan_layout(replace(read.source, file=put(folder, "r.csv", b"time,v\n1,2\n5,3\n")), work=folder)
    for experiment in read.experiments:
        for unit in ("ps", "s"):
            with refusing():
                experiment.delays(unit)  # type: ignore[arg-type]


@target(
    "histogram",
    "disorder/distributions.py:read_distribution",
    words='[ ] { } , . - e 1 inf nan lateness delay unit histogram ms "',
)
def histogram(data: bytes, folder: Path) -> None:
    """The bins of an empirical distribution."""
    from streamproof.disorder.distributions import read_distribution

    put(folder, "h.csv", data)
    read_distribution({"name": "empirical", "file": "h.csv"}, "here", folder)


@target("recording", "disorder/loading.py:load", words=f'{_TIMES} , ; | " \\n \\r time,v')
def recording(data: bytes, folder: Path) -> None:
    """Rows whose disorder is measured; the first byte says how they are read."""
    from streamproof.disorder.analysis import analyze_file

    ways: list[dict[str, Any]] = [
        {"event_time": 0, "unit": "ms"}, {"event_time": "time", "key": 1}, {"event_time": 1, "header": False, "separator": ";"},
        {"event_time": "time", "format": "jsonl", "unit": "s"}, {"event_time": 0, "arrival": 1, "unit": "us", "zone": "UTC"},
    ]  # fmt: skip
    way = ways[data[0] % len(ways)] if data else ways[0]
    analyze_file(put(folder, "r.csv", data[1:]), on="here", **way)


@target("qos", "qos/config.py:read_config", "qos/config.py:load_config", "qos/config.py:config_of",
        "qos/config.py:read_machine", "qos/config.py:read_arrival", "qos/config.py:read_wish",
        words='capacity ops_per_ms scheduler policy p-qed b-qed qed quantum_ms test reserved queries name cost_ops arrival burst '
        'rate_per_ms service latency_ms qos max_latency_ms max_backlog task window simulate duration_ms arrivals adversarial policies '
        'seed flood mean stdev quantile { } [ ] : , " "1/150" 1e300 -1 0.5')  # fmt: skip
def qos(data: bytes, folder: Path) -> None:
    from streamproof.qos.config import load_config, read_config

    with refusing():
        read_config(text_of(data))
    load_config(put(folder, "q.json", data))


@target("serve", "qos/serve_config.py:load_serve_config",
        words='share scheduler policy quantum_ms speed duration_s queries name plan inputs file map arrival burst rate_per_ms qos '
        'max_latency_ms max_backlog window_ms cost push_ms row_ms quantile { } [ ] : , " os:getcwd ../ 1e300 -1')  # fmt: skip
def serve(data: bytes, folder: Path) -> None:
    from streamproof.qos.serve_config import load_serve_config

    load_serve_config(put(folder, "s.json", data))


@target(
    "repro",
    "workbench/repro.py:read",
    "workbench/schedule.py:Schedule.read",
    "workbench/repro.py:load",
    words=f'{_OPS} {_LAYOUT} format streamproof-repro engine oracle suite scenario seed horizon schedule streams verdict word {{ }} [ ] : , "',
)
def repro(data: bytes, folder: Path) -> None:
    from streamproof.workbench import repro as repros

    found = repros.load(put(folder, "r.json", data))
    compile(repros.pytest_file(found), "test_found.py", "exec")


@target("suite", "workbench/suite.py:load_suite",
        words='name about cases scenarios op in left right stream operator random among depth columns over shape disorder one_of '
        'agg join window edge slightly highly apply by_stream aggs count { } [ ] : , "')  # fmt: skip
def suite(data: bytes, folder: Path) -> None:
    from streamproof.workbench.suite import load_suite

    load_suite(str(put(folder, "s.json", data)))


@target(
    "tallies",
    "workbench/results.py:EngineResult.from_dict",
    words='key done tallies engine words laws errors rows found { } [ ] : , "',
)
def tallies(data: bytes, folder: Path) -> None:
    """The file of ``verify --resume``."""
    from streamproof.workbench.runner import SuiteResult, _Book

    _Book(put(folder, "tallies.json", data), SuiteResult("smoke", 1, "duckdb", {}), {})


@cache
def covered() -> frozenset[str]:
    """All that has a target."""
    return frozenset(place for one in TARGETS.values() for place in one.covers)
