"""From SQL to plans. What SQL has and plans have not is refused with its place and a way out.

>>> loads("SELECT a.k, b.v FROM A a JOIN B b ON a.k = b.k").op
'join'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from streamproof.errors import PlanError, StreamproofError, did_you_mean
from streamproof.language.notation import check_size
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.driven.places import at_place, refuse, word_offset
from streamproof.plan.durations import read_span
from streamproof.plan.expr import TRUE, Call, Col, Expr, columns_of
from streamproof.plan.nodes import Direction, Named, Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

WINDOWS = ("tumbling", "hopping", "snapshot", "count_start", "count_end")
_JOINS: dict[str, type[nodes.Join]] = {"": nodes.Join, "LEFT": nodes.LeftOuter, "FULL": nodes.FullOuter}
_REFUSED = {
    "having": "HAVING is not supported: put the query in FROM (…) and filter it with WHERE",
    "order": "ORDER BY is not supported: results are ordered by time; for the best of each window use TOP n BY",
    "limit": "LIMIT is not supported: streams have no end; for the best of each window use TOP n BY",
    "distinct": "DISTINCT is not supported here: group by the columns and SNAPSHOT",
    "with_": "WITH is not supported: put the query in FROM (…)",
    "qualify": "QUALIFY is not supported: use TOP n BY",
    "offset": "OFFSET is not supported",
}


def loads(text: str) -> Plan:
    """The plan of the one statement in a text."""
    found = loads_all(text)
    if len(found) > 1:
        raise PlanError(f"there are {len(found)} queries here", fix=f"choose one: FILE.sql#1 to FILE.sql#{len(found)}")
    return next(iter(found.values()))


def loads_all(text: str) -> dict[str, Plan]:
    """The plans of all statements, by their number."""
    check_size(text)
    prepared = _prepared(text)
    try:
        statements = [tree for tree in sqlglot.parse(prepared, dialect="duckdb") if tree is not None]
    except sqlglot.errors.SqlglotError as error:
        raise _unread(error, text, prepared) from None
    except RecursionError:
        raise PlanError("the query is nested too deeply", fix="split it", name="limit_exceeded") from None
    if not statements:
        raise PlanError("there is no query in this text", fix="write e.g. SELECT * FROM S WHERE v > 1")
    reader = _Reader(text)
    return {str(n): reader.plan(tree) for n, tree in enumerate(statements, start=1)}


_UNITS = (
    "nanoseconds?|microseconds?|milliseconds?|seconds?|minutes?|hours?|days?|weeks?|secs?|mins?|hrs?|[nuµm]?s|[mhdw]"
)
_LENGTH = re.compile(rf"(?i)\b(\d+(?:\.\d+)?\s*(?:{_UNITS})\b(?:\s*\d+(?:\.\d+)?\s*(?:{_UNITS})\b)*)")
_WINDOW = re.compile(r"(?i)\b([A-Z_]+)\s*\((\s*\d[^()'\"]*)\)")  # mistyped ones too, which are refused by name
_TOP = re.compile(
    r"(?is)\bSELECT\s+TOP\s+(\d+)\s+BY\s+((?:(?!\bFROM\b).)+?\s+(?:ASC|DESC)(?:\s*,\s*(?:(?!\bFROM\b).)+?\s+(?:ASC|DESC))*)"
    r"(?!\s*,)(?=\s)"
)


def _prepared(text: str) -> str:
    """The text with our own words in a form that SQL parsers take: lengths of time as text, TOP as a function."""
    quoted = _WINDOW.sub(lambda m: f"{m.group(1)}({_LENGTH.sub(_quoted, m.group(2))})", text)
    return _TOP.sub(lambda m: f"SELECT __top__({m.group(1)}, {_orders(m.group(2))}),", quoted)


def _quoted(found: re.Match[str]) -> str:
    return f"'{found.group(1)}'"


def _orders(text: str) -> str:
    return re.sub(r"(?i)\s+(ASC|DESC)\b", lambda m: f", '{m.group(1).lower()}'", text)


def _unread(error: sqlglot.errors.SqlglotError, text: str, prepared: str) -> StreamproofError:
    details = (getattr(error, "errors", None) or [{}])[0]
    near = details.get("highlight") or ""
    line, column = details.get("line"), details.get("col")
    offset = 0
    if line and column:
        starts = [0, *(m.end() for m in re.finditer("\n", text))]
        offset = starts[min(line, len(starts)) - 1] + max(0, column - len(near))
    offset = word_offset(text, near, max(0, offset - 40)) or offset if near.isidentifier() else offset
    what = f"cannot read the SQL near {near!r}" if near else f"cannot read the SQL: {str(error).splitlines()[0]}"
    return refuse(
        what, text, min(offset, len(text)), fix="write e.g. SELECT k, count(*) FROM S GROUP BY k, TUMBLING(10 s)"
    )


@dataclass(frozen=True, slots=True)
class _From:
    """A plan with the names by which a query may read its columns."""

    plan: Plan
    names: tuple[str, ...]  # of the table, or of both sides of a join
    join: tuple[type[nodes.Join], Plan, Plan, Expr] | None = None  # not made yet: what it selects is still open


@dataclass(frozen=True, slots=True)
class _Reader:
    text: str

    def refuse(self, what: str, fix: str, near: str = "") -> StreamproofError:
        return refuse(what, self.text, word_offset(self.text, near, 0) if near else 0, fix=fix)

    def plan(self, tree: exp.Expr) -> Plan:
        if isinstance(tree, exp.Subquery):
            return self.plan(tree.this)
        if isinstance(tree, exp.Union):
            if tree.args.get("distinct"):
                raise self.refuse("UNION would remove duplicates", "write UNION ALL", "UNION")
            return nodes.Union((*self._united(tree.left), *self._united(tree.right)))
        if not isinstance(tree, exp.Select):
            raise self.refuse(f"{tree.key.upper()} is no query", "write SELECT … FROM …")
        return self._select(tree)

    def _united(self, tree: exp.Expr) -> tuple[Plan, ...]:
        plan = self.plan(tree)
        return plan.ins if isinstance(tree, exp.Union) and isinstance(plan, nodes.Union) else (plan,)

    def _select(self, tree: exp.Select) -> Plan:
        for name, what in _REFUSED.items():
            if tree.args.get(name) is not None:
                clause, _, fix = what.partition(": ")
                raise self.refuse(clause, fix or "leave it out", name.strip("_").upper())
        source = self._from(tree)
        source = self._where(source, tree.args.get("where"))
        items = list(tree.expressions)
        top = self._top(items)
        keys, window = self._groups(tree.args.get("group"), source)
        if window is None:
            return self._plain(source, items, top)
        return self._windowed(source, items, keys, window, top)

    # --- where rows come from -----------------------------------------------------------------------------------------

    def _from(self, tree: exp.Select) -> _From:
        found = tree.args.get("from_") or tree.args.get("from")
        if found is None:
            raise self.refuse("the query has no FROM", "name a stream: SELECT … FROM S", "SELECT")
        source = self._table(found.this)
        for join in tree.args.get("joins") or ():
            source = self._joined(source, join)
        return source

    def _table(self, tree: exp.Expr) -> _From:
        if isinstance(tree, exp.Subquery):
            return _From(self.plan(tree.this), (tree.alias or "",))
        if not isinstance(tree, exp.Table) or tree.args.get("db"):
            raise self.refuse("FROM takes a stream or a query in parentheses", "write FROM S, or FROM (SELECT …) AS t")
        return _From(nodes.Source(tree.name), (tree.alias or tree.name,))

    def _joined(self, left: _From, join: exp.Join) -> _From:
        if left.join is not None:
            raise self.refuse("one JOIN to a query", "join the result of the first in FROM (SELECT …) AS t", "JOIN")
        right = self._table(join.this)
        kind, side = (join.args.get(name) or "" for name in ("kind", "side"))
        on = join.args.get("on")
        if on is None:
            raise self.refuse("a JOIN needs ON", "write JOIN B b ON a.k = b.k; ON true joins all that overlap", "JOIN")
        condition = self._expression(on, _From(left.plan, (*left.names, *right.names), (nodes.Join, *_NONE)))
        if "ANTI" in (kind, side):
            return _From(nodes.AntiJoin(left.plan, right.plan, condition), left.names)
        if side not in _JOINS or kind not in ("", "INNER", "OUTER"):
            fix = "use JOIN, LEFT JOIN, FULL JOIN or ANTI JOIN"
            raise self.refuse(f"{side or kind} JOIN is not supported", fix, side or kind)
        return _From(left.plan, (*left.names, *right.names), (_JOINS[side], left.plan, right.plan, condition))

    def _where(self, source: _From, where: exp.Expr | None) -> _From:
        if where is None:
            return source
        condition = self._expression(where.this, source)
        if source.join is None:
            return _From(nodes.Where(source.plan, condition), source.names)
        kind, left, right, on = source.join
        if kind is nodes.Join:
            both = condition if on == TRUE else Call("and", (on, condition))
            return _From(source.plan, source.names, (kind, left, right, both))
        fix = "filter inside: FROM (SELECT * FROM A WHERE …) AS a LEFT JOIN …"
        raise self.refuse("WHERE after an outer join is ambiguous about nulls", fix, "WHERE")

    # --- what is selected ---------------------------------------------------------------------------------------------

    def _plain(self, source: _From, items: list[exp.Expr], top: Any) -> Plan:
        if top is not None:
            raise self.refuse("TOP needs a window", "add GROUP BY SNAPSHOT, or TUMBLING(10 s)", "TOP")
        for item in items:
            call = _call_of(item)
            if call is not None and call[0] in AGGREGATES:
                fix = "add a window: GROUP BY TUMBLING(10 s), HOPPING(60 s, 10 s), SNAPSHOT, COUNT_START(5)"
                raise self.refuse(f"{call[0]} needs to know of which events", fix, call[0])
        if len(items) == 1 and isinstance(items[0], exp.Star):
            return self._made(source, None)
        named = self._named(items, source)
        if source.join is not None:
            return self._made(source, named)
        return nodes.Select(source.plan, named)

    def _made(self, source: _From, select: Named | None) -> Plan:
        if source.join is None:
            return source.plan
        kind, left, right, on = source.join
        return kind(left, right, on, select)

    def _named(self, items: list[exp.Expr], source: _From) -> Named:
        names = self._names(items, source)
        named = tuple((name, self._expression(item.unalias(), source)) for name, item in zip(names, items, strict=True))
        for name in names:
            if names.count(name) > 1:
                fix = f"name one of them: … AS {name}_2"
                raise self.refuse(f'two columns are called "{name}"', fix, name)
        return named

    def _names(self, items: list[exp.Expr], source: _From) -> list[str]:
        """The names of columns; ``a.v, b.v`` of a join are v and b_v."""
        names: list[str] = []
        for item in items:
            name = self._name(item)
            if name in names and source.join is not None and isinstance(item, exp.Column) and item.table:
                name = f"{item.table}_{name}"
            names.append(name)
        return names

    def _name(self, item: exp.Expr) -> str:
        if isinstance(item, exp.Star):
            raise self.refuse("* stands alone", "list the columns, or select * only", "SELECT")
        call = _call_of(item)
        if item.alias or isinstance(item, exp.Column):
            return item.alias_or_name
        if call is not None:
            column = call[1][0] if call[1] else None
            return f"{call[0]}_{column.name}" if isinstance(column, exp.Column) else call[0]
        raise self.refuse(f"{item.sql(dialect='duckdb')} has no name", "name it: … AS x")

    # --- windows ------------------------------------------------------------------------------------------------------

    def _groups(self, group: exp.Expr | None, source: _From) -> tuple[list[str], Window | None]:
        keys: list[str] = []
        window: Window | None = None
        for part in group.expressions if group is not None else ():
            found = self._window(part)
            if found is not None and window is not None:
                raise self.refuse("a query has one window", "remove one of them", part.sql())
            if found is not None:
                window = found
            elif isinstance(part, exp.Column):
                keys.append(self._expression(part, source).name)  # type: ignore[union-attr]  # it is a column
            else:
                raise self.refuse("GROUP BY takes columns and a window", "select the expression in FROM (…) first")
        if group is not None and window is None:
            fix = "add one: GROUP BY …, TUMBLING(10 s), HOPPING(60 s, 10 s), SNAPSHOT, COUNT_START(5)"
            raise self.refuse("GROUP BY needs a window", fix, "GROUP")
        return keys, window

    def _window(self, part: exp.Expr) -> Window | None:
        name, args = (part.name.lower(), []) if isinstance(part, exp.Column) and not part.table else ("", [])
        if isinstance(part, exp.Anonymous):
            name, args = str(part.this).lower(), part.expressions
            if name not in WINDOWS:
                raise self.refuse(f'unknown window "{part.this}"', did_you_mean(name, WINDOWS), str(part.this))
        if name not in WINDOWS:
            return None
        values = [self._length(arg) for arg in args]
        wanted = {"tumbling": (1, 2), "hopping": (2, 3), "snapshot": (0, 0), "count_start": (1, 1), "count_end": (1, 1)}
        low, high = wanted[name]
        if not low <= len(values) <= high:
            shown = "TUMBLING(size), HOPPING(size, hop), SNAPSHOT, COUNT_START(n), COUNT_END(n)"
            raise self.refuse(f"{name.upper()} takes {low} values, got {len(values)}", f"windows are {shown}", name)
        made: dict[str, Callable[..., Window]] = {
            "tumbling": Tumbling, "hopping": Hopping, "snapshot": Snapshot, "count_start": CountStart,
            "count_end": CountEnd,
        }  # fmt: skip
        try:
            return made[name](*values)
        except StreamproofError as error:
            raise at_place(error, self.text, word_offset(self.text, name.upper(), 0)) from None

    def _length(self, arg: exp.Expr) -> int | str:
        if not isinstance(arg, exp.Literal | exp.Neg):
            raise self.refuse("a window takes lengths of time", "write TUMBLING(10 s) or TUMBLING(10)", arg.sql())
        return read_span(arg.this if isinstance(arg, exp.Literal) and arg.is_string else int(arg.sql()))

    def _windowed(self, source: _From, items: list[Any], keys: list[str], window: Window, top: Any) -> Plan:
        if source.join is not None:
            source = self._read_join(source, items, keys, top)
        plan = source.plan
        if top is not None:
            return self._ranked(source, items, keys, window, top)
        aggs: list[tuple[str, Aggregate]] = []
        modules: list[tuple[str, nodes.Uda]] = []
        order: list[tuple[str, Expr]] = []
        inner: Plan = nodes.GroupInput() if keys else plan
        for item in items:
            if isinstance(item.unalias(), exp.Column):
                column = self._expression(item.unalias(), source)
                assert isinstance(column, Col)
                if column.name not in keys:
                    fix = f"group by it, or aggregate it: last({column.name})"
                    raise self.refuse(f'"{column.name}" is neither grouped by nor aggregated', fix, column.name)
                order.append((self._name(item), column))
                continue
            name = self._name(item)
            made = self._aggregate(item.unalias(), source, inner, window, name)
            if isinstance(made, nodes.Uda):
                modules.append((name, made))
            else:
                aggs.append((name, made))
            order.append((name, Col(name)))
        plan = self._result((plan, inner), keys, window, aggs, modules)
        natural = [(key, Col(key)) for key in keys] + [(name, Col(name)) for name, _ in (*aggs, *modules)]
        return plan if order == natural else nodes.Select(plan, tuple(order))

    def _result(self, plans: tuple[Plan, Plan], keys: list[str], window: Window, aggs: Any, modules: Any) -> Plan:
        plan, inner = plans
        if modules and (aggs or len(modules) > 1):
            raise self.refuse("a module stands alone in its query", "ask for the others in another query", "SELECT")
        if not modules and not aggs:
            raise self.refuse("a window needs an aggregate", "add e.g. count(*)", "SELECT")
        branch: Plan = modules[0][1] if modules else nodes.Aggregation(inner, window, tuple(aggs))
        return nodes.GroupApply(plan, tuple(keys), branch) if keys else branch

    def _read_join(self, source: _From, items: list[Any], keys: list[str], top: Any) -> _From:
        """The join with the columns that the windows read, under their own names."""
        columns: dict[str, Expr] = {}
        for tree in [*items, *((top[1],) if top else ())]:
            for column in tree.find_all(exp.Column) if isinstance(tree, exp.Expr) else ():
                read = self._expression(column, source)
                assert isinstance(read, Col)
                if columns.setdefault(read.name, read) != read:
                    fix = "rename one of them in FROM (SELECT …) first"
                    raise self.refuse(f'both sides have a column "{read.name}"', fix, read.name)
        assert source.join is not None
        kind, left, right, on = source.join
        select: Named = tuple((name, column) for name, column in columns.items())
        return _From(kind(left, right, on, select), source.names)

    def _aggregate(self, tree: Any, source: _From, inner: Plan, window: Window, name: str) -> Aggregate | nodes.Uda:
        call = _call_of(tree)
        if call is None:
            fix = "compute it in FROM (…) first, or around the result"
            raise self.refuse(f"{tree.sql(dialect='duckdb')} is no aggregate", fix)
        fn, args = call
        if fn in AGGREGATES:
            star = not args or isinstance(args[0], exp.Star)
            arg = None if star else self._expression(args[0], source)
            return Aggregate(fn, arg, tuple(_constant(part) for part in args[1:]))
        params = {part.this.name: _constant(part.expression) for part in args[1:] if isinstance(part, _NAMED)}
        if len(params) < len(args) - 1 or not args:
            raise self.refuse(f"{fn} takes an expression and named parameters", f"write {fn}(v, p => 2)", fn)
        return nodes.Uda(inner, window, fn, self._expression(args[0], source), name, tuple(params.items()))

    def _top(self, items: list[Any]) -> Any:
        """What TOP n BY says, taken off the list of items."""
        if items and isinstance(items[0], exp.Anonymous) and items[0].this == "__top__":
            first = items.pop(0)
            count, *orders = first.expressions
            return int(count.this), first, list(zip(orders[::2], orders[1::2], strict=True))
        return None

    def _ranked(self, source: _From, items: list[Any], keys: list[str], window: Window, top: Any) -> Plan:
        k, _, orders = top
        by: tuple[tuple[Expr, Direction], ...] = tuple(
            (self._expression(expr, source), word.this) for expr, word in orders
        )
        rank = next((self._name(item) for item in items if isinstance(item.unalias(), exp.Rank)), None)
        plain = [item for item in items if not isinstance(item.unalias(), exp.Rank)]
        inner: Plan = nodes.GroupInput() if keys else source.plan
        best: Plan = nodes.TopK(inner, window, k, by, rank)
        if len(plain) == 1 and isinstance(plain[0], exp.Star):
            if keys:
                raise self.refuse("with groups, list the columns", "SELECT TOP 3 BY v DESC k, v …", "TOP")
            return best
        named = self._named(plain, source)
        extra: Named = () if rank is None else ((rank, Col(rank)),)
        if not keys:
            return nodes.Select(best, (*named, *extra))
        inside = tuple((name, expr) for name, expr in named if not (isinstance(expr, Col) and expr.name in keys))
        grouped = nodes.GroupApply(source.plan, tuple(keys), nodes.Select(best, (*inside, *extra)))
        wanted = tuple((name, expr if (name, expr) not in inside else Col(name)) for name, expr in (*named, *extra))
        given = [*keys, *(name for name, _ in (*inside, *extra))]
        return grouped if [name for name, _ in wanted] == given else nodes.Select(grouped, wanted)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _expression(self, tree: exp.Expr, source: _From) -> Expr:
        """An expression; names of tables become sides, or are left out where there is one table."""
        copy = tree.copy()
        for column in list(copy.find_all(exp.Column)):
            self._resolve(column, source)
        try:
            return parse(copy.sql(dialect="duckdb"))
        except StreamproofError as error:
            raise at_place(PlanError(error.what, fix=error.fix, name=error.name), self.text, 0) from None

    def _resolve(self, column: exp.Column, source: _From) -> None:
        table = column.table
        if table and table not in source.names:
            what = f'there is no stream "{table}" in this query'
            raise self.refuse(what, did_you_mean(table, source.names), table)
        if source.join is None:
            column.set("table", None)
            return
        if not table:
            fix = " or ".join(f"{name}.{column.name}" for name in source.names)
            raise self.refuse(f'the column "{column.name}" needs a side', f"write {fix}", column.name)
        column.set("table", exp.to_identifier("l" if table == source.names[0] else "r"))


_NONE: tuple[Plan, Plan, Expr] = (nodes.Source(""), nodes.Source(""), TRUE)
_NAMED = (exp.PropertyEQ, exp.Kwarg)
_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg", exp.Min: "min", exp.Max: "max", exp.First: "first",
    exp.Last: "last", exp.Median: "median", exp.Stddev: "stdev_samp", exp.StddevSamp: "stdev_samp",
    exp.StddevPop: "stdev_pop", exp.Variance: "var_samp", exp.VariancePop: "var_pop",
}  # fmt: skip


def _call_of(item: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a function that stands alone."""
    tree = item.unalias()
    if isinstance(tree, exp.Anonymous):
        return str(tree.this).lower(), list(tree.expressions)
    if isinstance(tree, exp.Count) and isinstance(tree.this, exp.Distinct):
        return "count_distinct", list(tree.this.expressions)
    name = _FUNCTIONS.get(type(tree))
    return None if name is None else (name, list(_arguments(tree)))


def _arguments(tree: exp.Expr) -> Iterator[exp.Expr]:
    if tree.this is not None:
        yield tree.this
    yield from tree.expressions


def _constant(tree: exp.Expr) -> Any:
    found = parse(tree.sql(dialect="duckdb"))
    if columns_of(found) or not hasattr(found, "value"):
        raise PlanError(f"{tree.sql()} is not a constant", fix="give a number or text")
    return found.value
