"""The notation of plan files as plain data: dicts, lists and scalars. JSON and XML are two spellings of it.

>>> to_data(from_data({"op": "where", "in": {"op": "source", "name": "S"}, "expr": "v>1"}))
{'op': 'where', 'in': {'op': 'source', 'name': 'S'}, 'expr': 'v > 1'}
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

from streamproof.errors import PlanError, StreamproofError, did_you_mean, each, together
from streamproof.events.notation import exact_moment, exact_number
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import read_duration, read_span, write_duration, write_span
from streamproof.plan.event_nodes import NODES
from streamproof.plan.expr import Expr, Value
from streamproof.plan.nodes import Node, Plan
from streamproof.plan.parse import parse_or_literal
from streamproof.plan.text import to_text
from streamproof.plan.windows import WINDOWS, Window

VERSION: Final = 1
MAX_DEPTH: Final = 200
MAX_SIZE: Final = 2_000_000  # characters of a plan file
_DOCUMENT: Final = ("version", "plan")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")  # of two that make one only together: no file can hold it
Data: TypeAlias = "dict[str, Any]"

OPS: Final[dict[str, type[Node]]] = {node.op: node for node in NODES} | {"anti_join": nodes.AntiJoin}


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of field is read and written."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def check_size(text: str, limit: int = MAX_SIZE) -> None:
    """Refuse a plan file that is too large to be one, or no text, before anything reads it."""
    if len(text) > limit:
        raise PlanError(
            f"the plan file has {len(text)} characters, the limit is {limit}",
            fix="split the plan, or check that this is a plan file",
            name="limit_exceeded",
        )
    half = _HALF_CHARACTER.search(text)
    if half:
        raise PlanError(f"half a character at {half.start()}: the text is not Unicode", fix="save it as UTF-8")


def from_document(document: object) -> Plan:
    """A plan from a whole file: a bare node, or ``{"version": 1, "plan": node}``."""
    if isinstance(document, Mapping) and "op" not in document:
        if "plan" not in document:
            raise PlanError('a plan file holds a node with "op", or {"version": 1, "plan": …}', at="plan")
        for key in document:
            if key not in _DOCUMENT:
                raise PlanError(f'a plan file has no field "{key}"', at="plan", fix=did_you_mean(str(key), _DOCUMENT))
        version = document.get("version", VERSION)
        if version != VERSION or isinstance(version, bool):
            raise PlanError(
                f"the plan file has version {version!r}, this program reads version {VERSION}",
                fix="update streamproof, or write the plan again in the old notation",
            )
        document = document["plan"]
    return from_data(document)


def to_document(plan: Plan) -> Data:
    """A plan as a whole file, with its version."""
    return {"version": VERSION, "plan": to_data(plan)}


def from_data(data: object, path: str = "plan", depth: int = 0) -> Plan:
    """The node that plain data describes; errors name the place in the file."""
    if depth > MAX_DEPTH:
        raise PlanError(f"the plan is nested more than {MAX_DEPTH} levels deep", at=path, name="limit_exceeded")
    if not isinstance(data, Mapping):
        raise PlanError(f"a node must be an object, got {type(data).__name__}", at=path, fix='write {"op": …}')
    op = data.get("op")
    if not isinstance(op, str) or op not in OPS:
        raise PlanError(f"unknown op {op!r}", at=path, fix=did_you_mean(str(op), OPS))
    kind = OPS[op]
    values = _read_fields(kind, data, path, depth)
    try:
        return kind(**values)
    except StreamproofError as error:
        raise error.located(f"{path}: {op}") from None


def _read_fields(kind: type[Node], data: Mapping[str, Any], path: str, depth: int) -> dict[str, Any]:
    """Few calls within each other, because plans may be nested deeply."""
    known = {_key(field.name): field for field in fields(kind)}
    errors: list[StreamproofError] = [
        PlanError(f'{kind.op} has no field "{key}"', at=path, fix=did_you_mean(str(key), known))
        for key in data
        if key not in known and key != "op"
    ]
    values = {}
    for key, field in known.items():
        if key in data:
            try:
                values[field.name] = _read_field(kind, field, data[key], f"{path}.{key}", depth)
            except StreamproofError as error:
                errors.append(error)
        elif field.default is MISSING:
            fix = f"its fields are: {', '.join(known)}"
            errors.append(PlanError(f'{kind.op} needs the field "{key}"', at=path, fix=fix))
    if errors:
        raise together(errors)
    return values


def _read_field(kind: type[Node], field: Field[Any], value: Any, path: str, depth: int) -> Any:
    if field.name in kind.input_fields or field.name == "body":
        return from_data(value, path, depth + 1)
    if field.name == "ins":
        parts = enumerate(_list(value, path))
        return tuple(each(parts, lambda part: from_data(part[1], f"{path}[{part[0]}]", depth + 1)))
    if field.name == "bind":
        pairs = _object(value, path).items()
        return tuple(each(pairs, lambda pair: (pair[0], from_data(pair[1], f"{path}.{pair[0]}", depth + 1))))
    codec = _codec(kind, field.name)
    if value is None and field.default is None:
        return None
    try:
        return codec.read(value)
    except StreamproofError as error:
        raise error.within(path, ": ") from None
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise PlanError(f"cannot read {repr(value)[:80]} here: {error}", at=path) from None


def to_data(plan: Plan) -> Data:
    """The plain data of a plan; fields that hold their default are left out."""
    if OPS.get(plan.op) is not type(plan):
        raise PlanError(f"the notation has no operator {plan.op}", fix=f"known: {', '.join(OPS)}")
    data: Data = {"op": plan.op}
    for field in fields(plan):
        value = getattr(plan, field.name)
        if field.default is not MISSING and value == field.default and field.name != "on":
            continue
        data[_key(field.name)] = _write_field(plan, field.name, value)
    return data


def _write_field(plan: Plan, name: str, value: Any) -> Any:
    if name in plan.input_fields or name == "body":
        return to_data(value)
    if name == "ins":
        return [to_data(part) for part in value]
    if name == "bind":
        return {known: to_data(part) for known, part in value}
    return _codec(type(plan), name).write(value)


def _codec(kind: type[Node], name: str) -> Codec:
    """The codec of a field; ``by`` is a length of time in shift and extend, and a ranking in topk."""
    if name == "by" and kind is not nodes.TopK:
        return _SPAN
    if name not in CODECS:
        raise PlanError(f'{kind.__name__} cannot be noted: its field "{name}" has no codec', fix="add it to CODECS")
    return CODECS[name]


def _key(field: str) -> str:
    """The notation's name of a field: Python's words for ``in`` and ``as`` differ."""
    return {"input": "in", "body": "in", "as_": "as"}.get(field, field)


def _list(value: Any, path: str | None = None) -> list[Any]:
    if not isinstance(value, list):
        raise PlanError(f"expected a list, got {value!r}", at=path)
    return value


def _object(value: Any, path: str | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise PlanError(f"expected an object, got {value!r}", at=path)
    return value


# --- codecs by field --------------------------------------------------------------------------------------------------


def _read_expr(value: Any) -> Expr:
    if value is None or isinstance(value, dict | list):
        raise PlanError(f"{value!r} is not an expression", fix='write text, e.g. "v > 1"')
    return parse_or_literal(value)


def _read_named(value: Any) -> tuple[tuple[str, Expr], ...]:
    return tuple(each(_object(value).items(), lambda pair: (pair[0], _read_expr(pair[1]))))


def _write_named(value: Any) -> dict[str, str]:
    return {name: to_text(expr) for name, expr in value}


def _read_window(value: Any) -> Window:
    data = dict(_object(value))
    word = data.pop("type", None)
    if word not in WINDOWS:
        raise PlanError(f"unknown window type {word!r}", fix=did_you_mean(str(word), WINDOWS))
    kind = WINDOWS[word]
    known = [field.name for field in fields(kind)]
    for key in data:
        if key not in known:
            raise PlanError(f'a {word} window has no field "{key}"', fix=did_you_mean(key, known))
    missing = [f.name for f in fields(kind) if f.default is MISSING and f.name not in data]
    if missing:
        raise PlanError(f'a {word} window needs "{missing[0]}"', fix=f"its fields are: {', '.join(known)}")
    values: Data = {key: _read_count(part) if key == "n" else read_span(part) for key, part in data.items()}
    return kind(**values)


def _write_window(window: Any) -> Data:
    data: Data = {"type": window.kind}
    for field in fields(window):
        value = getattr(window, field.name)
        if value != field.default:
            data[field.name] = write_span(value)
    return data


def _read_aggs(value: Any) -> tuple[tuple[str, Aggregate], ...]:
    return tuple(each(_object(value).items(), lambda pair: (pair[0], _read_aggregate(pair[1]))))


def _read_aggregate(parts: Any) -> Aggregate:
    if isinstance(parts, str):
        parts = [parts]
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise PlanError(f"cannot read the aggregate {parts!r}", fix='write [function, expression], e.g. ["sum", "v"]')
    fn, arg, *params = [*parts, None] if len(parts) == 1 else parts
    return Aggregate(fn, None if arg is None else _read_expr(arg), tuple(params))


def _write_aggs(aggs: Any) -> Data:
    return {name: _write_aggregate(agg) for name, agg in aggs}


def _write_aggregate(agg: Aggregate) -> list[Any]:
    fn, arg = agg.noted
    return [fn, None if arg is None else to_text(arg), *agg.params]


def _read_by(value: Any) -> tuple[tuple[Expr, str], ...]:
    pairs = [[part, "asc"] if isinstance(part, str) else part for part in _list(value)]
    return tuple((_read_expr(expr), str(direction).lower()) for expr, direction in pairs)


def _write_by(value: Any) -> list[list[str]]:
    return [[to_text(expr), direction] for expr, direction in value]


def _read_names(value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else _list(value)
    return tuple(_read_word(name) for name in names)


def _read_word(value: Any) -> str:
    if not isinstance(value, str):
        raise PlanError(f"expected text, got {value!r}")
    return value


def _read_count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"expected a whole number, got {value!r}")
    return value


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise PlanError(f"expected true or false, got {value!r}")
    return value


def _read_params(value: Any) -> tuple[tuple[str, Value], ...]:
    return tuple((name, read_value(part)) for name, part in _object(value).items())


def _write_params(params: Any) -> Data:
    return {name: write_value(part) for name, part in params}


def read_value(value: Any) -> Value:
    """A constant: a JSON scalar, or ``{"type": …, "value": text}`` for what JSON has no spelling of.

    >>> read_value(1), read_value({"type": "date", "value": "2024-05-01"})
    (1, datetime.date(2024, 5, 1))
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not isinstance(value, Mapping) or set(value) != {"type", "value"} or value["type"] not in _VALUES:
        raise PlanError(
            f"{value!r} is not a constant", fix='write a scalar, or e.g. {"type": "date", "value": "2024-05-01"}'
        )
    try:
        return _VALUES[value["type"]](value["value"])
    except (ValueError, TypeError, ArithmeticError):
        raise PlanError(f"{value['value']!r} is not a {value['type']}", name="type_mismatch") from None


def write_value(value: Value) -> Any:
    """The inverse of `read_value`."""
    match value:
        case Decimal():
            return {"type": "decimal", "value": str(value)}
        case datetime():
            return {"type": "timestamp", "value": value.isoformat()}
        case date():
            return {"type": "date", "value": value.isoformat()}
        case float() if not math.isfinite(value):
            return {"type": "float64", "value": str(value)}
    return value


def _float(text: str) -> float:
    number = float(text if text in ("inf", "-inf", "nan") else exact_number(text))
    if math.isinf(number) and "inf" not in text:
        raise ValueError(f"too large: {text}")
    return number


_VALUES: Final[dict[str, Callable[[str], Value]]] = {
    "decimal": exact_number,
    "timestamp": exact_moment,
    "date": date.fromisoformat,
    "float64": _float,
}


def _read_schema(columns: Any) -> Schema:
    if isinstance(columns, list):
        columns = [(c["name"], c["type"]) if isinstance(c, Mapping) else tuple(c) for c in columns]
    return Schema.of(columns)


def _write_schema(schema: Any) -> Data:
    return {name: str(kind) for name, kind in schema}


def _read_query(text: Any) -> Any:
    from streamproof.language.eql.parser import parse_query  # noqa: PLC0415  # only these plans need the grammar

    return parse_query(_read_word(text))


def _write_query(query: Any) -> str:
    from streamproof.language.eql.printer import print_query  # noqa: PLC0415

    return print_query(query)


_EXPR: Final = Codec(_read_expr, to_text)
_SPAN: Final = Codec(read_span, write_span)
_NAMED: Final = Codec(_read_named, _write_named)
_WORD: Final = Codec(_read_word, str)
_COUNT: Final = Codec(_read_count, int)
_NAMES: Final = Codec(_read_names, list)

CODECS: Final[dict[str, Codec]] = {
    "name": _WORD, "fn": _WORD, "as_": _WORD, "rank": _WORD, "output": _WORD, "clip": _WORD, "stamp": _WORD,
    "restriction": _WORD, "late": _WORD, "expr": _EXPR, "on": _EXPR, "arg": _EXPR, "exprs": _NAMED, "select": _NAMED,
    "map": _NAMED, "by": Codec(_read_by, _write_by), "timeout": _SPAN, "max": _SPAN, "period": _SPAN, "offset": _SPAN,
    "every_duration": _SPAN, "delay": _SPAN, "every": _COUNT, "k": _COUNT, "key": _NAMES,
    "final": Codec(_read_flag, bool), "params": Codec(_read_params, _write_params),
    "window": Codec(_read_window, _write_window), "aggs": Codec(_read_aggs, _write_aggs),
    "dur": Codec(read_duration, write_duration),
    "schema": Codec(_read_schema, _write_schema), "unit": _WORD,
    "step": _EXPR, "way": _WORD, "policy": _WORD, "trigger": _WORD, "group": _NAMES, "reach": _SPAN, "hop": _SPAN,
    "begin": _WORD, "end": _WORD, "latest": Codec(_read_flag, bool), "empty": Codec(_read_flag, bool),
    "query": Codec(_read_query, _write_query),
}  # fmt: skip
COUNTS: Final = tuple(name for name, codec in CODECS.items() if codec is _COUNT)
"""The fields that are whole numbers."""
