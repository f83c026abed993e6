"""Plans as fluent Python: text that evaluates to an equal stream.

>>> from streamproof.language import json
>>> print(dumps(json.loads('{"op": "where", "in": {"op": "source", "name": "S"}, "expr": "v>1"}')))
source("S").where("v > 1")

Long chains take one line per call. The names it uses are those of ``from streamproof import *``, and for parameters
of modules also ``Decimal``, ``date``, ``datetime`` and ``UTC``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from keyword import iskeyword
from typing import Any, Final, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import write_duration, write_span
from streamproof.plan.event_nodes import Drift, During, EventQuery, Pairing, Transition
from streamproof.plan.expr import TRUE, Col, Expr, Value
from streamproof.plan.nodes import Named, Plan
from streamproof.plan.rules import Rules
from streamproof.plan.text import to_text
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

suffix = ".py"


def dumps(plan: Plan) -> str:
    """The plan as one Python expression. Law: ``eval(dumps(plan)).plan == plan``, with the public names."""
    return render(_chain(plan, None))


def loads(text: str) -> Plan:
    """Refused: Python text is code, and reading a plan must not run any."""
    raise PlanError(
        "a plan in Python is code, and plan files are never run as code",
        fix="import it and name it as module:object, or write it as JSON or XML",
    )


def _chain(plan: Plan, group: str | None) -> CallChain:
    """The plan as a chain of calls; ``group`` is the variable that holds the group's events inside an apply."""
    match plan:
        case nodes.Source():
            return CallChain(MethodCall("source", tuple(_source(plan))))
        case nodes.Ref(name):
            return CallChain(MethodCall("ref", (Argument(quoted(name)),)))
        case nodes.GroupInput():
            return CallChain(MethodCall("group_input", ())) if group is None else CallChain(group)
        case nodes.Let():
            return _let(plan, group)
        case nodes.GroupApply():
            return _group_apply(plan, group)
        case EventQuery():
            return _event_query(plan, group)
    receiver = _chain(plan.inputs[0], group)
    others = tuple(_chain(other, group) for other in plan.inputs[1:])
    return receiver.then(*CALLS[plan](plan, others))


def _source(plan: nodes.Source) -> Iterator[Argument]:
    yield Argument(quoted(plan.name))
    if plan.schema is not None:
        yield Argument(_mapping({name: quoted(str(kind)) for name, kind in plan.schema}))
    if plan.unit is not None:
        yield Argument(quoted(plan.unit), "unit")


def _let(plan: nodes.Let, group: str | None) -> CallChain:
    names = [name for name, _ in plan.bind]
    if len(set(names)) < len(names):
        raise PlanError("a let binds one name twice", at=", ".join(names), fix="rename one of the bindings")
    bound = {name: _chain(part, group) for name, part in plan.bind}
    if all(map(_is_keyword_name, names)):
        arguments = tuple(Argument(part, name) for name, part in bound.items())
    else:
        arguments = (Argument(_mapping(bound), prefix="**"),)
    return CallChain(MethodCall("let", arguments), (MethodCall("in_", (Argument(_chain(plan.body, group)),)),))


def _group_apply(plan: nodes.GroupApply, group: str | None) -> CallChain:
    receiver = _chain(plan.input, group)
    keys = tuple(Argument(quoted(name)) for name in plan.key)
    branch = plan.apply
    if isinstance(branch, nodes.Aggregation | nodes.Uda | nodes.Udo) and branch.input == nodes.GroupInput():
        return receiver.then(MethodCall("group_by", keys), *CALLS[branch](branch, ()))
    applied = Argument(_chain(branch, "g"), "apply", prefix="lambda g: ")
    return receiver.then(MethodCall("group_apply", (*keys, applied)))


def _event_query(plan: EventQuery, group: str | None) -> CallChain:
    from streamproof.language.eql.printer import print_query  # noqa: PLC0415  # only these plans need it

    given = {name: _chain(part, group) for name, part in plan.bind if part != nodes.Source(name)}
    text = Argument(quoted(print_query(plan.query)))
    if all(map(_is_keyword_name, given)):
        return CallChain(MethodCall("eql", (text, *(Argument(part, name) for name, part in given.items()))))
    return CallChain(MethodCall("eql", (text, Argument(_mapping(given), prefix="**"))))


# --- one rule per node: the calls that make it of its first input ----------------------------------------------------

Others: TypeAlias = "tuple[CallChain, ...]"
Calls: TypeAlias = "Callable[[Any, Others], Iterable[MethodCall]]"


def _plain(method: str, *arguments: str) -> Calls:
    """A call whose arguments are the node's fields: lengths of time and expressions."""

    def rule(node: nodes.Node, others: Others) -> Iterator[MethodCall]:
        yield MethodCall(method, tuple(Argument(_field(getattr(node, name))) for name in arguments))

    return rule


def _field(value: Expr | Span) -> str:
    return _span(value) if isinstance(value, int | str | timedelta) else quoted(to_text(value))


def _span(value: Span) -> str:
    written = write_span(value)
    return quoted(written) if isinstance(written, str) else str(written)


def _select(node: nodes.Select, others: Others) -> Iterator[MethodCall]:
    if not all(_is_keyword_name(name) for name, _ in node.exprs):
        yield MethodCall("select", (Argument(_named(node.exprs)),))
        return
    kept = 0
    while kept < len(node.exprs) and node.exprs[kept][1] == Col(node.exprs[kept][0]):
        kept += 1
    keep = (Argument(quoted(name)) for name, _ in node.exprs[:kept])
    new = (Argument(quoted(to_text(expr)), name) for name, expr in node.exprs[kept:])
    yield MethodCall("select", (*keep, *new))


def _alter_duration(node: nodes.AlterDuration, others: Others) -> Iterator[MethodCall]:
    written = write_duration(node.dur)
    yield MethodCall("alter_duration", (Argument(quoted(written) if isinstance(written, str) else str(written)),))


def _chop(node: nodes.Chop, others: Others) -> Iterator[MethodCall]:
    yield MethodCall("chop", (Argument(_span(node.period)), *_given(offset=_span(node.offset), default="0")))


def _given(*, default: str | None = None, **settings: str | None) -> Iterator[Argument]:
    """Keyword arguments, without those that have their default."""
    for name, value in settings.items():
        if value is not None and value != default:
            yield Argument(value, name)


def _union(node: nodes.Union, others: Others) -> Iterator[MethodCall]:
    yield MethodCall("union", tuple(map(Argument, others)))


def _pair(method: str) -> Calls:
    def rule(node: Any, others: Others) -> Iterator[MethodCall]:
        on = [] if node.on == TRUE else [Argument(quoted(to_text(node.on)))]
        select = getattr(node, "select", None)
        chosen = [] if select is None else [Argument(_named(select), "select")]
        yield MethodCall(method, (Argument(others[0]), *on, *chosen))

    return rule


def _session(node: nodes.Session, others: Others) -> Iterator[MethodCall]:
    longest = None if node.max is None else _span(node.max)
    key = None if not node.key else quoted(node.key[0]) if len(node.key) == 1 else _tuple(map(quoted, node.key))
    yield MethodCall("session", (Argument(_span(node.timeout)), *_given(max=longest, key=key)))


def _advance_time(node: nodes.AdvanceTime, others: Others) -> Iterator[MethodCall]:
    step = None if node.every_duration is None else _span(node.every_duration)
    every = None if node.every is None else str(node.every)
    final = None if node.final else "False"
    given = _given(every=every, every_duration=step, final=final)
    late = _given(late=quoted(node.late), default=quoted("drop"))
    yield MethodCall("advance_time", (*given, *_given(delay=_span(node.delay), default="0"), *late))


# --- event-driven ---


def _key(key: tuple[str, ...]) -> str | None:
    return None if not key else quoted(key[0]) if len(key) == 1 else _tuple(map(quoted, key))


def _transition(node: Transition, others: Others) -> Iterator[MethodCall]:
    yield MethodCall("transition", (Argument(quoted(to_text(node.expr))), *_given(key=_key(node.key))))


def _drift(node: Drift, others: Others) -> Iterator[MethodCall]:
    way = _given(way=quoted(node.way), default=quoted("any"))
    step = Argument(quoted(to_text(node.step)), "step")
    yield MethodCall("drift", (Argument(quoted(to_text(node.expr))), step, *way, *_given(key=_key(node.key))))


def _pairing(node: Pairing, others: Others) -> Iterator[MethodCall]:
    policy = _given(policy=quoted(node.policy), default=quoted("fifo"))
    longest = None if node.max is None else _span(node.max)
    yield MethodCall("pairing", (Argument(others[0]), *_given(key=_key(node.key)), *policy, *_given(max=longest)))


def _during(node: During, others: Others) -> Iterator[MethodCall]:
    aggs = Argument(_mapping({name: _aggregate(agg) for name, agg in node.aggs}))
    spans = {name: _span(span) for name, span in (("reach", node.reach), ("hop", node.hop)) if span is not None}
    words = {name: quoted(word) for name, word in (("begin", node.begin), ("end", node.end)) if word is not None}
    flags = {name: "True" for name, flag in (("latest", node.latest), ("empty", node.empty)) if flag}
    trigger = _given(trigger=quoted(node.trigger), default=quoted("end"))
    keys = _given(key=_key(node.key), group=_key(node.group))
    yield MethodCall("observe", (Argument(others[0]), aggs, *trigger, *keys, *_given(**spans, **words, **flags)))


# --- windows ---


def _window(window: Window) -> MethodCall:
    match window:
        case Tumbling(size, offset):
            return MethodCall("tumbling", (Argument(_span(size)), *_given(offset=_span(offset), default="0")))
        case Hopping(size, hop, offset):
            sizes = (Argument(_span(size)), Argument(_span(hop), "hop"))
            return MethodCall("hopping", (*sizes, *_given(offset=_span(offset), default="0")))
        case Snapshot():
            return MethodCall("snapshot", ())
        case CountStart(n) | CountEnd(n):
            return MethodCall(window.kind, (Argument(str(n)),))


def _aggregation(node: nodes.Aggregation, others: Others) -> Iterator[MethodCall]:
    yield _window(node.window)
    aggs = {name: _aggregate(agg) for name, agg in node.aggs}
    if all(_is_keyword_name(name) and name != "output" for name in aggs):
        columns = tuple(Argument(text, name) for name, text in aggs.items())
    else:
        columns = (Argument(_mapping(aggs)),)
    yield MethodCall("aggregate", (*columns, *_output(node.output)))


def _output(output: str) -> Iterator[Argument]:
    return _given(output=quoted(output), default=quoted("window"))


def _aggregate(agg: Aggregate) -> str:
    fn, arg = agg.written
    read = [] if arg is None else [quoted(to_text(arg))]
    return f"{fn}({', '.join([*read, *map(value, agg.params)])})"


def _topk(node: nodes.TopK, others: Others) -> Iterator[MethodCall]:
    yield _window(node.window)
    orders = [f"{direction}({quoted(to_text(expr))})" for expr, direction in node.by]
    by = orders[0] if len(orders) == 1 else f"[{', '.join(orders)}]"
    rank = None if node.rank is None else quoted(node.rank)
    yield MethodCall("top", (Argument(str(node.k)), Argument(by, "by"), *_given(rank=rank), *_output(node.output)))


def _settings(node: nodes.Uda | nodes.Udo) -> Iterator[Argument]:
    if node.params:
        yield Argument(_mapping({name: value(given) for name, given in node.params}), "params")
    yield from _given(clip=quoted(node.clip), restriction=quoted(node.restriction), default=quoted("none"))


def _uda(node: nodes.Uda, others: Others) -> Iterator[MethodCall]:
    yield _window(node.window)
    as_ = _given(as_=quoted(node.as_), default=quoted(node.fn.partition("@")[0]))
    seen = (Argument(quoted(node.fn)), Argument(quoted(to_text(node.arg))))
    yield MethodCall("uda", (*seen, *as_, *_settings(node), *_output(node.output)))


def _udo(node: nodes.Udo, others: Others) -> Iterator[MethodCall]:
    yield _window(node.window)
    seen = [] if node.map is None else [Argument(_named(node.map), "map")]
    stamp = _given(stamp=quoted(node.stamp), default=quoted("align"))
    yield MethodCall("udo", (Argument(quoted(node.fn)), *seen, *_settings(node), *stamp))


CALLS: Rules[Calls] = Rules(
    "the Python printer",
    {
        nodes.Where: _plain("where", "expr"),
        nodes.Select: _select,
        nodes.Shift: _plain("shift", "by"),
        nodes.Extend: _plain("extend", "by"),
        nodes.AlterDuration: _alter_duration,
        nodes.ToPoint: _plain("to_point"),
        nodes.PointAtEnd: _plain("point_at_end"),
        nodes.Chop: _chop,
        nodes.Stitch: _plain("stitch"),
        nodes.Coalesce: _plain("coalesce"),
        nodes.Distinct: _plain("distinct"),
        nodes.Union: _union,
        nodes.Join: _pair("join"),
        nodes.LeftOuter: _pair("left_outer"),
        nodes.FullOuter: _pair("full_outer"),
        nodes.FollowedBy: _pair("followed_by"),
        nodes.AntiJoin: _pair("without"),
        nodes.Clip: _pair("clip"),
        nodes.Session: _session,
        Transition: _transition,
        Drift: _drift,
        Pairing: _pairing,
        During: _during,
        nodes.Aggregation: _aggregation,
        nodes.TopK: _topk,
        nodes.Uda: _uda,
        nodes.Udo: _udo,
        nodes.AdvanceTime: _advance_time,
    },
)


# --- literals ---------------------------------------------------------------------------------------------------------


def quoted(text: str) -> str:
    """A text as Python, in double quotes where that needs no escapes.

    >>> print(quoted("v > 1"), quoted('say "hi"'))
    "v > 1" 'say "hi"'
    """
    shown = repr(text)
    return f'"{shown[1:-1]}"' if shown.startswith("'") and '"' not in shown else shown


def value(given: Value) -> str:
    """A parameter as Python."""
    match given:
        case str():
            return quoted(given)
        case float() if not math.isfinite(given):
            return f'float("{given}")'
        case datetime():
            moment = given.astimezone(UTC)
            return repr(moment).replace("datetime.datetime", "datetime").replace("datetime.timezone.utc", "UTC")
        case date():
            return f"date({given.year}, {given.month}, {given.day})"
        case Decimal():
            return f'Decimal("{given}")'
    return repr(given)


def _is_keyword_name(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name) and name.isascii()  # Python folds other letters into one form


def _tuple(parts: Iterable[str]) -> str:
    return f"({', '.join(parts)})"


def _named(exprs: Named) -> str:
    return _mapping({name: quoted(to_text(expr)) for name, expr in exprs})


def _mapping(parts: Mapping[str, str | CallChain]) -> str:
    shown = (f"{quoted(name)}: {part if isinstance(part, str) else render(part)}" for name, part in parts.items())
    return "{" + ", ".join(shown) + "}"


WIDTH: Final = 100
_STEP: Final = "    "


@dataclass(frozen=True, slots=True)
class CallChain:
    """Something and the calls made on it: ``head.call().call()``."""

    head: MethodCall | str
    calls: tuple[MethodCall, ...] = ()

    def then(self, *calls: MethodCall) -> CallChain:
        """The chain with more calls at its end."""
        return CallChain(self.head, (*self.calls, *calls))


@dataclass(frozen=True, slots=True)
class MethodCall:
    """A call by name."""

    name: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument, by keyword if it has one; ``prefix`` stands before the value: ``**``, ``lambda g: ``."""

    value: CallChain | str
    keyword: str | None = None
    prefix: str = ""

    @property
    def start(self) -> str:
        """What stands before the value."""
        return (f"{self.keyword}=" if self.keyword else "") + self.prefix


def render(chain: CallChain, *, indent: str = "", used: int = 0, width: int = WIDTH) -> str:
    """The text of a chain; ``indent`` is that of its line, of which ``used`` characters are taken already."""
    flat = _flat(chain)
    if len(indent) + used + len(flat) <= width:
        return flat
    if not chain.calls:
        return flat if isinstance(chain.head, str) else _broken(chain.head, "", indent, width)
    inner = indent + _STEP
    head = chain.head if isinstance(chain.head, str) else _fitted(chain.head, "", inner, width)
    lines = [f"{inner}{head}", *(f"{inner}{_fitted(call, '.', inner, width)}" for call in chain.calls)]
    return "\n".join(["(", *lines, f"{indent})"])


def _flat(chain: CallChain) -> str:
    head = chain.head if isinstance(chain.head, str) else _flat_call(chain.head)
    return head + "".join(f".{_flat_call(call)}" for call in chain.calls)


def _flat_call(call: MethodCall) -> str:
    return f"{call.name}({', '.join(map(_flat_argument, call.arguments))})"


def _flat_argument(argument: Argument) -> str:
    return argument.start + (argument.value if isinstance(argument.value, str) else _flat(argument.value))


def _fitted(call: MethodCall, dot: str, indent: str, width: int) -> str:
    flat = dot + _flat_call(call)
    return flat if len(indent) + len(flat) <= width or not call.arguments else _broken(call, dot, indent, width)


def _broken(call: MethodCall, dot: str, indent: str, width: int) -> str:
    """The call with one argument per line."""
    inner = indent + _STEP
    lines = [f"{inner}{_argument(argument, inner, width)}," for argument in call.arguments]
    return "\n".join([f"{dot}{call.name}(", *lines, f"{indent})"])


def _argument(argument: Argument, indent: str, width: int) -> str:
    start = argument.start
    if isinstance(argument.value, str):
        return start + argument.value
    return start + render(argument.value, indent=indent, used=len(start) + 1, width=width)
