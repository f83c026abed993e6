"""Plans as XML: the notation's tree in elements.

An element is a node, its attributes are the scalar fields, its children are the inputs and the repeated fields.

>>> plan = loads('<plan version="1"><where expr="v &gt; 1"><source name="S"/></where></plan>')
>>> print(dumps(plan))
<plan version="1">
  <where expr="v &gt; 1">
    <source name="S" />
  </where>
</plan>

The one input of a node is simply its child; where a node has several, ``left``, ``right``, ``by`` and ``apply`` say
which is which. Named expressions are ``<column name="" expr=""/>``, aggregates ``<aggregate name="" fn="" expr=""/>``,
parameters ``<param name="" type="" value=""/>``.
"""

from __future__ import annotations

import re
from typing import Any, Final
from xml.etree.ElementTree import Element, ParseError, SubElement, indent, tostring

import defusedxml
from defusedxml.ElementTree import fromstring

from streamproof.errors import PlanError, did_you_mean
from streamproof.language.notation import COUNTS, MAX_DEPTH, OPS, VERSION, Data, check_size, from_document, to_document
from streamproof.plan.nodes import Plan

suffix = ".xml"

_ROLES: Final = ("left", "right", "apply")
_NUMBERS: Final = (*COUNTS, "n")  # those of nodes, and that of count windows
_FLAGS: Final = {"true": True, "false": False}
_WHOLE: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_NOT_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def loads(text: str) -> Plan:
    """The plan in an XML text. DTDs, entities and external references are refused."""
    check_size(text)
    try:
        root = fromstring(text, forbid_dtd=True)
    except defusedxml.DefusedXmlException as error:
        raise PlanError(
            f"plan files must not declare or use entities: {type(error).__name__}", fix="remove the DOCTYPE"
        ) from None
    except ParseError as error:
        line, column = error.position
        raise PlanError(f"not XML: {error}", at=f"line {line}, column {column}") from None
    if root.tag != "plan":
        return from_document(_read_node(root, 0))
    for key in root.attrib:
        if key != "version":
            raise PlanError(f'<plan> has no attribute "{key}"', fix=did_you_mean(key, ["version"]))
    version = root.get("version", str(VERSION))
    if version != str(VERSION):
        return from_document({"version": version, "plan": None})  # refused there, with the advice
    return from_document(_read_node(_only_child(root), 0))


def dumps(plan: Plan) -> str:
    """A plan as XML text, with its version. Law: ``loads(dumps(plan)) == plan``."""
    document = to_document(plan)
    root = Element("plan", version=str(document["version"]))
    _write_node(root, document["plan"])
    indent(root)
    return tostring(root, encoding="unicode")


# --- reading ----------------------------------------------------------------------------------------------------------


def _read_node(element: Element, depth: int) -> Data:
    """The notation's data of a node; what it means, and whether it may, is for the notation to say."""
    if depth > MAX_DEPTH:
        raise PlanError(f"the plan is nested more than {MAX_DEPTH} levels deep", name="limit_exceeded")
    _without_text(element)
    data: Data = {**{key: _scalar(key, text) for key, text in element.attrib.items()}, "op": element.tag}
    if element.tag not in OPS:
        raise PlanError(f"unknown op {element.tag!r}", at=f"<{element.tag}>", fix=did_you_mean(element.tag, OPS))
    for name, empty in _REPEATED.get(element.tag, {}).items():
        data[name] = type(empty)()
    for child in element:
        _read_child(element.tag, data, child, depth)
    return data


def _read_child(op: str, data: Data, child: Element, depth: int) -> None:
    tag = child.tag
    if tag in _ROLES or (tag == "by" and op == "clip"):
        _set(data, tag, _read_node(_only_child(child), depth + 1), op)
    elif tag == "bind":
        _add_named(data, "bind", child, _read_node(_only_child(child), depth + 1))
    elif tag == "by" and op == "topk":
        data["by"].append([_needed(child, "expr"), child.get("direction", "asc")])
    elif tag in ("key", "group"):
        data.setdefault(tag, []).append(_needed(child, "name"))
    elif tag == "window":
        _set(data, "window", {key: _scalar(key, text) for key, text in child.attrib.items()}, op)
    elif tag == "column":
        _add_named(data, "exprs", child, _needed(child, "expr"))
    elif tag == "aggregate":
        _add_named(data, "aggs", child, _read_aggregate(child))
    elif tag == "param":
        _add_named(data, "params", child, _read_param(child))
    elif tag == "schema" or op in _WITH_COLUMNS.get(tag, ()):
        _set(data, tag, _read_columns(child, "type" if tag == "schema" else "expr"), op)
    elif op == "union":
        data["ins"].append(_read_node(child, depth + 1))
    else:
        _set(data, "in", _read_node(child, depth + 1), op)


_JOINS: Final = ("join", "left_outer", "full_outer", "followed_by")
_WITH_COLUMNS: Final = {"select": _JOINS, "map": ("udo",)}
_REPEATED: Final[dict[str, dict[str, Any]]] = {
    "select": {"exprs": {}},
    "union": {"ins": []},
    "agg": {"aggs": {}},
    "during": {"aggs": {}},
    "eql": {"bind": {}},
    "topk": {"by": []},
    "let": {"bind": {}},
    "group_apply": {"key": []},
}


def _set(data: Data, key: str, value: Any, op: str) -> None:
    if key in data:
        what = "one input" if key == "in" else f'one "{key}"'
        raise PlanError(f"{op} takes {what}, got another", at=f"<{op}>", fix="remove one, or unite them with <union>")
    data[key] = value


def _add_named(data: Data, key: str, element: Element, value: Any) -> None:
    _add(data.setdefault(key, {}), element, value)


def _add(named: dict[str, Any], element: Element, value: Any) -> None:
    name = _needed(element, "name")
    if name in named:
        raise PlanError(
            f'two elements <{element.tag}> are called "{name}"', fix="rename one of them", name="duplicate_column"
        )
    named[name] = value


def _needed(element: Element, attribute: str) -> str:
    value = element.get(attribute)
    if value is None:
        raise PlanError(f'<{element.tag}> needs the attribute "{attribute}"', fix=f'write {attribute}="…"')
    return value


def _only_child(element: Element) -> Element:
    _without_text(element)
    if len(element) != 1:
        raise PlanError(f"<{element.tag}> needs exactly one node, got {len(element)}", fix="write one node inside")
    return element[0]


def _without_text(element: Element) -> None:
    for text in (element.text, *(child.tail for child in element)):
        if text and text.strip():
            raise PlanError(
                f"text stands between the elements: {text.strip()[:40]!r}",
                at=f"<{element.tag}>",
                fix="values are attributes",
            )


def _read_columns(element: Element, attribute: str) -> dict[str, str]:
    _without_text(element)
    found: dict[str, str] = {}
    for column in element:
        if column.tag != "column":
            raise PlanError(f"<{element.tag}> holds <column> elements, not <{column.tag}>", at=f"<{element.tag}>")
        _add(found, column, _needed(column, attribute))
    return found


def _read_aggregate(element: Element) -> list[Any]:
    return [_needed(element, "fn"), element.get("expr"), *map(_read_param, element)]


def _read_param(element: Element) -> Any:
    """A typed constant, as the notation's data."""
    kind, text = element.get("type", "string"), element.get("value", "")
    readers = {"int64": int, "float64": float, "string": str, "bool": _FLAGS.__getitem__, "null": lambda _: None}
    if kind not in readers:
        return {"type": kind, "value": text}
    try:
        return readers[kind](text)  # type: ignore[operator]  # a table of readers of text
    except (ValueError, KeyError):
        raise PlanError(
            f"{text[:40]!r} is not of the type {kind}", at=f"<{element.tag}>", name="type_mismatch"
        ) from None


def _scalar(key: str, text: str) -> Any:
    """An attribute as the notation's scalar; what is no number stays text, for the notation to refuse by name."""
    if key in _NUMBERS:
        return int(text) if _WHOLE.fullmatch(text) else text
    if key == "dur" and _WHOLE.fullmatch(text):
        return int(text)
    return _FLAGS.get(text, text) if key in ("final", "latest", "empty") else text


# --- writing ----------------------------------------------------------------------------------------------------------


def _write_node(parent: Element, data: Data) -> None:
    element = SubElement(parent, data["op"])
    for key, value in data.items():
        if key != "op":
            _write_field(element, key, value)


def _write_field(element: Element, key: str, value: Any) -> None:
    match key, value:
        case "in", _:
            _write_node(element, value)
        case "ins", _:
            for part in value:
                _write_node(element, part)
        case ("left" | "right" | "apply", _) | ("by", dict()):
            _write_node(SubElement(element, key), value)
        case "bind", _:
            for name, part in value.items():
                _write_node(SubElement(element, "bind", name=_xml(name)), part)
        case _, str() | int() | float():
            element.set(key, _attribute(key, value))
        case _:
            _write_repeated(element, key, value)


def _write_repeated(element: Element, key: str, value: Any) -> None:
    match key:
        case "exprs":
            _write_columns(element, value, "expr")
        case "select" | "map" | "schema":
            _write_columns(SubElement(element, key), value, "type" if key == "schema" else "expr")
        case "window":
            SubElement(element, "window", {name: _attribute(name, part) for name, part in value.items()})
        case "aggs":
            for name, parts in value.items():
                _write_aggregate(element, name, *parts)
        case _:
            for attributes in _small_elements(key, value):
                SubElement(element, key.removesuffix("s"), attributes)


def _small_elements(key: str, value: Any) -> list[dict[str, str]]:
    """The attributes of each ``<key>``, ``<by>`` or ``<param>``."""
    if key in ("key", "group"):
        return [{"name": _xml(name)} for name in value]
    if key == "by":
        return [{"expr": _xml(expr), "direction": direction} for expr, direction in value]
    return [{"name": _xml(name), **_constant(part)} for name, part in value.items()]


def _write_aggregate(element: Element, name: str, fn: str, expr: str | None, *params: Any) -> None:
    aggregate = SubElement(element, "aggregate", {"name": _xml(name), "fn": fn})
    if expr is not None:
        aggregate.set("expr", _xml(expr))
    for part in params:
        SubElement(aggregate, "param", _constant(part))


def _write_columns(element: Element, columns: dict[str, str], attribute: str) -> None:
    for name, text in columns.items():
        SubElement(element, "column", {"name": _xml(name), attribute: _xml(text)})


def _attribute(key: str, value: str | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = _xml(str(value))
    # a constant expression, which must not read back as a number of ticks
    return f"({text})" if key == "dur" and isinstance(value, str) and re.fullmatch(r"[+-]?\d+", text) else text


def _constant(value: Any) -> dict[str, str]:
    """The attributes of a typed constant."""
    match value:
        case None:
            return {"type": "null"}
        case bool():
            return {"type": "bool", "value": str(value).lower()}
        case int():
            return {"type": "int64", "value": str(value)}
        case float():
            return {"type": "float64", "value": repr(value)}
        case {"type": kind, "value": text}:
            return {"type": str(kind), "value": str(text)}
    return {"type": "string", "value": _xml(value)}


def _xml(text: str) -> str:
    """The text itself, if XML can hold it: most control characters have no spelling there."""
    found = _NOT_XML.search(text)
    if found:
        raise PlanError(
            f"XML cannot hold the character U+{ord(found.group()):04X}",
            at=repr(text)[:100],
            fix="write the plan as JSON",
        )
    return text
