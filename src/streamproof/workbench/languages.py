"""A case in every language: fluent Python, JSON, XML, and SQL that runs on a bare DuckDB; each gives the same result.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> case = seeded_case(3)
>>> as_sql(case).splitlines()[0]
'-- the histories of the streams, one row per event'
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

from streamproof.engines.base import Settings, engine
from streamproof.engines.oracle.database import rows_of, to_storage
from streamproof.engines.oracle.engine import Oracle
from streamproof.engines.oracle.program import Compute, ComputeLists, Load, Program, Repeat, comment
from streamproof.events.history import History
from streamproof.events.schema import Schema, Type
from streamproof.language.notation import to_document
from streamproof.plan.check import check
from streamproof.plan.modules import Registry
from streamproof.workbench import repro
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.modules import all_modules
from streamproof.workbench.repro import Repro
from streamproof.workbench.round_trip import printed


def as_python(case: Case) -> str:
    """The query as fluent Python."""
    return printed(case.plan, "python")


def as_xml(case: Case) -> str:
    """The query as XML."""
    return printed(case.plan, "xml")


def plan_json(case: Case) -> str:
    """The query as JSON."""
    return json.dumps(to_document(case.plan), indent=1, ensure_ascii=False)


def as_json(one: Repro) -> str:
    """The whole case as JSON: what the repro file holds, without the rows."""
    document = repro.write(one)
    document["verdict"] = {key: document["verdict"][key] for key in ("word", "kind", "law", "text")}
    return json.dumps(document, indent=1, ensure_ascii=False)


def as_sql(case: Case, *, registry: Registry | None = None) -> str:
    """The streams and the query as one SQL script for DuckDB; where a user's module runs, a comment says so."""
    program, schema = _program(case, registry)
    return f"{_statements(case, program)}\n\n{_query(program, schema)};"


def _statements(case: Case, program: Program) -> str:
    lines = ["-- the histories of the streams, one row per event"]
    note = ""
    for step in program.steps:
        if step.note != note:
            note = step.note
            lines.append(comment(note))
        lines.append(_load(step, case.streams[step.source]) if isinstance(step, Load) else step.show())
    return "\n\n".join(lines)


def _query(program: Program, schema: Schema) -> str:
    return f"SELECT {', '.join(name for name, _ in rows_of(schema))} FROM {program.result}"


def runs_as_sql(case: Case, *, registry: Registry | None = None) -> bool:
    """Whether the script is SQL alone: without modules and sums that run in Python."""
    return not any(isinstance(step, Compute | ComputeLists | Repeat) for step in _program(case, registry)[0].steps)


def result_of_sql(case: Case, *, registry: Registry | None = None) -> History:
    """What the printed script gives on a database that knows nothing else. Law: what any engine gives."""
    program, schema = _program(case, registry)
    found = _oracle().run_script(_statements(case, program), _query(program, schema), schema)
    return History.from_table(schema, found)


def _oracle() -> Oracle:
    oracle = engine("duckdb")
    assert isinstance(oracle, Oracle)
    return oracle


def _program(case: Case, registry: Registry | None) -> tuple[Program, Schema]:
    modules = registry or all_modules()
    typed = check(case.plan, case.schemas, registry=modules)
    settings = Settings(horizon=case.horizon, limits=case.limits, registry=modules)
    return _oracle().program(typed, settings), typed.schema


def _load(step: Load, stream: CaseStream) -> str:
    """The events of a source as a table of constants."""
    heads = ", ".join(f"{name} {_sql_type(kind)}" for name, kind in step.columns)
    create = f"CREATE TEMP TABLE {step.table}({heads});"
    table = stream.history.expand()
    stored = [to_storage(table.column(n), kind).to_pylist() for n, (_, kind) in enumerate(rows_of(stream.schema))]
    if not table.num_rows:
        return create
    rows = ",\n  ".join(f"(0, {', '.join(map(_literal, row))})" for row in zip(*stored, strict=True))
    return f"{create}\nINSERT INTO {step.table} VALUES\n  {rows};"


def _sql_type(kind: Type) -> str:
    if kind.kind == "decimal":
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _SQL_TYPES[kind.kind]


_SQL_TYPES: Final = {
    "int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "date": "BIGINT",
    "timestamp": "BIGINT", "null": "BIGINT",
}  # fmt: skip
"""Times are ticks in the tables of a program."""


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, bool | int | Decimal):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
