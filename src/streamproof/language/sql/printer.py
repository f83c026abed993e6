"""Plans as SQL, where SQL has words for them. Law: the reader gives back what was printed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from streamproof.errors import PlanError
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import write_span
from streamproof.plan.expr import Col, Expr, transform
from streamproof.plan.nodes import Plan
from streamproof.plan.rules import Rules
from streamproof.plan.text import quote, to_text
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window


def dumps(plan: Plan) -> str:
    """The plan as one SELECT."""
    return WORDS[plan](plan)


def _from(plan: Plan, name: str = "t") -> str:
    """A stream in FROM: its name, or a query in parentheses."""
    if isinstance(plan, nodes.Source):
        return _source(plan)
    return f"({dumps(plan)}) AS {name}"


def _source(plan: nodes.Source) -> str:
    if plan.schema is not None or plan.unit is not None:
        raise PlanError("SQL has no words for the schema of a source", fix="write it as JSON, or leave the schema out")
    return quote(plan.name)


def _rows(plan: Plan) -> str:
    """FROM and WHERE."""
    if isinstance(plan, nodes.Where):
        return f"FROM {_from(plan.input)} WHERE {to_text(plan.expr)}"
    return f"FROM {_from(plan)}"


def _columns(named: nodes.Named) -> str:
    return ", ".join(_item(to_text(expr), name) for name, expr in named)


def _item(text: str, name: str) -> str:
    return text if text == quote(name) else f"{text} AS {quote(name)}"


def _select(plan: nodes.Select) -> str:
    return f"SELECT {_columns(plan.exprs)} {_rows(plan.input)}"


def _where(plan: nodes.Where) -> str:
    return f"SELECT * {_rows(plan)}"


def _union(plan: nodes.Union) -> str:
    return " UNION ALL ".join(dumps(part) for part in plan.ins)


def _join(words: str) -> Callable[[Any], str]:
    def rule(plan: nodes.Join) -> str:
        select = "*" if plan.select is None else _columns(tuple((n, _sided(e)) for n, e in plan.select))
        return f"SELECT {select} {_pair(plan.left, plan.right, words, plan.on)}"

    return rule


def _pair(left: Plan, right: Plan, words: str, on: Expr) -> str:
    sides = (_from(left, "a"), _from(right, "b"))
    first, second = (text if isinstance(part, nodes.Source) is False else f"{text} AS {name}"
                     for text, part, name in zip(sides, (left, right), "ab", strict=True))  # fmt: skip
    return f"FROM {first} {words} {second} ON {to_text(_sided(on))}"


def _sided(expr: Expr) -> Expr:
    """Columns of the sides l and r under the names a and b."""

    def rename(part: Expr) -> Expr:
        return Col(part.name, {"l": "a", "r": "b"}[part.side]) if isinstance(part, Col) and part.side else part  # type: ignore[arg-type]  # only for printing

    return transform(expr, rename)


def _anti_join(plan: nodes.AntiJoin) -> str:
    return f"SELECT * {_pair(plan.left, plan.right, 'ANTI JOIN', plan.on)}"


def window_text(window: Window) -> str:
    """A window as it stands in GROUP BY."""
    match window:
        case Tumbling(size, offset):
            return f"TUMBLING({_lengths(size, offset)})"
        case Hopping(size, hop, offset):
            return f"HOPPING({_lengths(size)}, {_lengths(hop, offset)})"
        case Snapshot():
            return "SNAPSHOT"
        case CountStart(n):
            return f"COUNT_START({n})"
        case CountEnd(n):
            return f"COUNT_END({n})"


def _lengths(size: Any, offset: Any = 0) -> str:
    parts = [write_span(size), *([] if offset == 0 else [write_span(offset)])]
    return ", ".join(f"'{part}'" if isinstance(part, str) else str(part) for part in parts)


def _aggregate(agg: Aggregate) -> str:
    fn, arg = agg.written
    return f"{fn}({', '.join(['*' if arg is None else to_text(arg), *map(str, agg.params)])})"


def _aggregation(plan: nodes.Aggregation, keys: tuple[str, ...] = (), source: Plan | None = None) -> str:
    if plan.output != "window":
        raise PlanError("SQL has no words for results at the end of windows", fix="write it as JSON")
    items = [*map(quote, keys), *(_item(_aggregate(agg), name) for name, agg in plan.aggs)]
    return _grouped(", ".join(items), plan, keys, source)


def _grouped(items: str, plan: nodes.WindowNode, keys: tuple[str, ...], source: Plan | None) -> str:
    groups = ", ".join([*map(quote, keys), window_text(plan.window)])
    return f"SELECT {items} {_rows(source if source is not None else plan.input)} GROUP BY {groups}"


def _uda(plan: nodes.Uda, keys: tuple[str, ...] = (), source: Plan | None = None) -> str:
    if (plan.clip, plan.output, plan.restriction) != ("none", "window", "none") or "@" in plan.fn:
        raise PlanError("SQL has no words for the settings of a module", fix="write it as JSON")
    params = [f"{quote(name)} => {_constant(value)}" for name, value in plan.params]
    call = f"{plan.fn}({', '.join([to_text(plan.arg), *params])})"
    return _grouped(", ".join([*map(quote, keys), f"{call} AS {quote(plan.as_)}"]), plan, keys, source)


def _constant(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _topk(plan: nodes.TopK, columns: str = "*", keys: tuple[str, ...] = (), source: Plan | None = None) -> str:
    if plan.output != "window":
        raise PlanError("SQL has no words for results at the end of windows", fix="write it as JSON")
    orders = ", ".join(f"{to_text(expr)} {direction.upper()}" for expr, direction in plan.by)
    rank = "" if plan.rank is None else f", rank() AS {quote(plan.rank)}"
    best = _grouped(f"{columns}{rank}", plan, keys, source)
    return f"SELECT TOP {plan.k} BY {orders} {best.removeprefix('SELECT ')}"


def _best_of_groups(plan: nodes.GroupApply, best: nodes.TopK, exprs: nodes.Named) -> str | None:
    """The best of each group, where their rank comes last, if they have one."""
    if best.rank is not None:
        if exprs[-1:] != ((best.rank, Col(best.rank)),):
            return None
        exprs = exprs[:-1]
    columns = [*map(quote, plan.key), *([_columns(exprs)] if exprs else [])]
    return _topk(best, ", ".join(columns), plan.key, plan.input)


def _group_apply(plan: nodes.GroupApply) -> str:
    branch = plan.apply
    if isinstance(branch, nodes.Aggregation) and branch.input == nodes.GroupInput():
        return _aggregation(branch, plan.key, plan.input)
    if isinstance(branch, nodes.Uda) and branch.input == nodes.GroupInput():
        return _uda(branch, plan.key, plan.input)
    if isinstance(branch, nodes.Select) and isinstance(branch.input, nodes.TopK):
        best = branch.input
        found = _best_of_groups(plan, best, branch.exprs) if best.input == nodes.GroupInput() else None
        if found is not None:
            return found
    raise PlanError("SQL has no words for this group_apply", fix="write it as JSON")


def _whole_source(plan: nodes.Source) -> str:
    return f"SELECT * FROM {_source(plan)}"


Words: TypeAlias = Callable[[Any], str]
_LIFETIMES = "SQL has no words for moving lifetimes"
WORDS: Rules[Words] = Rules(
    "SQL",
    {
        nodes.Source: _whole_source,
        nodes.Where: _where,
        nodes.Select: _select,
        nodes.Union: _union,
        nodes.Join: _join("JOIN"),
        nodes.LeftOuter: _join("LEFT JOIN"),
        nodes.FullOuter: _join("FULL JOIN"),
        nodes.AntiJoin: _anti_join,
        nodes.GroupApply: _group_apply,
        nodes.Aggregation: _aggregation,
        nodes.TopK: _topk,
        nodes.Uda: _uda,
    },
    dict.fromkeys(
        (nodes.Shift, nodes.Extend, nodes.AlterDuration, nodes.ToPoint, nodes.PointAtEnd, nodes.Chop), _LIFETIMES
    ),
)
