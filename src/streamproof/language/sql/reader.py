"""From SQL to plans. What SQL has and plans have not is refused with its place and a way out.

>>> loads("SELECT a.k, b.v FROM A a JOIN B b ON a.k = b.k").op
'join'
>>> loads("SELECT * EXCLUDE (k) FROM S")
Traceback (most recent call last):
    ...
streamproof.errors.PlanError: EXCLUDE is not supported here
  at: line 1, column 19
    SELECT * EXCLUDE (k) FROM S
                      ^
  fix: list the columns that you want

Law: each node of the tree says which of its arguments are read (`consumed`); any other that is set is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeVar

from sqlglot import TokenType, exp

from streamproof.errors import Gathering, PlanError, StreamproofError, did_you_mean, each
from streamproof.events.time import duration
from streamproof.language.notation import check_size
from streamproof.language.sql.keywords import Statement, statements_of
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.durations import read_span
from streamproof.plan.expr import TRUE, Call, Col, Expr, Lit
from streamproof.plan.grammar import DIALECT, Grammar, Unread, check_kept, consumed, place, statements
from streamproof.plan.nodes import Direction, Named, Plan
from streamproof.plan.parse import WORDS, admit, name_of, parts_of, word_of
from streamproof.plan.source_location import pointed
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

Made = TypeVar("Made")
MAX_SIZE = 200_000  # characters of a text
WINDOWS = ("tumbling", "hopping", "snapshot", "count_start", "count_end")
EXAMPLE = "write e.g. SELECT k, count(*) FROM S GROUP BY k, TUMBLING(10 s)"
_JOINS: dict[tuple[str, str], type[nodes.Join | nodes.AntiJoin]] = {
    ("", ""): nodes.Join, ("", "INNER"): nodes.Join, ("LEFT", ""): nodes.LeftOuter, ("LEFT", "OUTER"): nodes.LeftOuter,
    ("FULL", ""): nodes.FullOuter, ("FULL", "OUTER"): nodes.FullOuter, ("", "ANTI"): nodes.AntiJoin,
    ("LEFT", "ANTI"): nodes.AntiJoin,
}  # fmt: skip
# what begins a statement that sqlglot would take for a command, and say so aloud
_COMMANDS = {*Grammar.STATEMENT_PARSERS, *DIALECT.tokenizer_class.COMMANDS} - {TokenType.SEMICOLON, TokenType.FROM}


def loads(text: str) -> Plan:
    """The plan of the one statement in a text."""
    found = loads_all(text)
    if len(found) > 1:
        raise PlanError(f"there are {len(found)} queries here", fix=f"choose one: FILE.sql#1 to FILE.sql#{len(found)}")
    return next(iter(found.values()))


def loads_all(text: str) -> dict[str, Plan]:
    """The plans of all statements, by their number."""
    check_size(text, MAX_SIZE)
    try:
        plans = [plan for made in each(statements_of(text), lambda part: _plans(part, text)) for plan in made]
    except Unread as error:
        raise error.placed(lambda offset: pointed(text, offset or 0)) from None
    except RecursionError:
        raise PlanError("the query is nested too deeply", fix="split it", name="limit_exceeded") from None
    if not plans:
        raise PlanError("there is no query in this text", fix="write e.g. SELECT * FROM S WHERE v > 1")
    return {str(n): plan for n, plan in enumerate(plans, start=1)}


def _plans(statement: Statement, text: str) -> list[Plan]:
    try:
        return _read(statement, text)
    except Unread as error:
        for part in (error, *error.others):
            if isinstance(part, Unread) and part.offset is None:
                part.offset = statement.offset(*re.findall(r"[A-Z]{2,}", part.what), "SELECT")
        raise


def _read(statement: Statement, text: str) -> list[Plan]:
    first = statement.tokens[0]
    if first.token_type in _COMMANDS:
        raise Unread(f"{first.text.upper()} is no query", fix="write SELECT … FROM …", offset=first.start)
    try:
        trees = statements(statement.tokens, text)
    except Unread as error:
        raise Unread(error.what, fix=EXAMPLE, offset=error.offset, name=error.name) from None
    with Gathering() as steps:
        plans = each(trees, _SqlReader(statement.tops, steps).plan)
    for tree in trees:
        check_kept(statement.tokens, tree)
    return plans


@dataclass(frozen=True, slots=True)
class _From:
    """A plan with the names by which a query may read its columns."""

    plan: Plan
    names: tuple[str, ...]  # of the table, or of both sides of a join
    join: tuple[type[nodes.Join], Plan, Plan, Expr] | None = None  # not made yet: what it selects is still open


@dataclass(frozen=True, slots=True)
class _SqlReader:
    tops: frozenset[int]  # where TOP n BY stands
    steps: Gathering  # what is refused without keeping the rest from being read

    def plan(self, tree: exp.Expr) -> Plan:
        if isinstance(tree, exp.Subquery):
            consumed(tree, "this")
            return self.plan(tree.this)
        if isinstance(tree, exp.Union):
            return nodes.Union(tuple(part for parts in each(_queries(tree), self._united) for part in parts))
        if not isinstance(tree, exp.Select):
            raise Unread(f"{tree.key.upper()} is no query", fix="write SELECT … FROM …", offset=place(tree))
        self.steps.tried(lambda: consumed(tree, "expressions", "from_", "joins", "where", "group"))
        return self._select(tree)

    def _united(self, tree: exp.Expr) -> tuple[Plan, ...]:
        plan = self.plan(tree)
        inner = tree
        while isinstance(inner, exp.Subquery):
            inner = inner.this
        return plan.ins if isinstance(inner, exp.Union) and isinstance(plan, nodes.Union) else (plan,)

    def _select(self, tree: exp.Select) -> Plan:
        source = self._from(tree)
        source = self.steps.tried(lambda: self._where(source, tree.args.get("where"))) or source
        items = list(tree.expressions)
        top = self._top(items)
        keys, window = self._groups(tree.args.get("group"), source)
        if window is None:
            return self._plain(source, items, top)
        return self._windowed(source, items, keys, window, top)

    # --- where rows come from -----------------------------------------------------------------------------------------

    def _from(self, tree: exp.Select) -> _From:
        found = tree.args.get("from_")
        if found is None:
            raise Unread("the query has no FROM", fix="name a stream: SELECT … FROM S", offset=place(tree))
        consumed(found, "this")
        source = self._table(found.this)
        for join in tree.args.get("joins") or ():
            source = self._joined(source, join)
        return source

    def _table(self, tree: exp.Expr) -> _From:
        if isinstance(tree, exp.Subquery):
            consumed(tree, "this", "alias")
            inner = tree.this
            if isinstance(inner, exp.Table) and not tree.alias:  # a stream in parentheses
                return self._table(inner)
            return _From(self.plan(inner), (_alias(tree),))
        fix = "write FROM S, or FROM (SELECT …) AS t"
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise Unread("FROM takes a stream or a query in parentheses", fix=fix, offset=place(tree))
        self.steps.tried(lambda: consumed(tree, "this", "alias"))
        name = name_of(tree.this)
        return _From(nodes.Source(name), (_alias(tree) or name,))

    def _joined(self, left: _From, join: exp.Join) -> _From:
        if left.join is not None:
            fix = "join the result of the first in FROM (SELECT …) AS t"
            raise Unread("one JOIN to a query", fix=fix, offset=place(join))
        consumed(join, "this", "on", "side", "kind")
        right = self._table(join.this)
        side, kind = (str(join.args.get(name) or "").upper() for name in ("side", "kind"))
        made = _JOINS.get((side, kind))
        if made is None:
            fix = "use JOIN, LEFT JOIN, FULL JOIN or ANTI JOIN"
            raise Unread(f"{side} {kind}".strip() + " JOIN is not supported", fix=fix, offset=place(join))
        on = join.args.get("on")
        if on is None:
            fix = "write JOIN B b ON a.k = b.k; ON true joins all that overlap"
            raise Unread("a JOIN needs ON", fix=fix, offset=place(join))
        both = (*left.names, *right.names)
        if left.names[0] == right.names[0] != "":
            fix = f"name them: FROM {both[0]} a JOIN {both[1]} b ON a.k = b.k"
            raise Unread(f'both sides are called "{both[0]}"', fix=fix, offset=place(join))
        condition = self._expression(on, _From(left.plan, both, (nodes.Join, left.plan, right.plan, TRUE)))
        if issubclass(made, nodes.AntiJoin):
            return _From(nodes.AntiJoin(left.plan, right.plan, condition), left.names)
        return _From(left.plan, both, (made, left.plan, right.plan, condition))

    def _where(self, source: _From, where: exp.Expr | None) -> _From:
        if where is None:
            return source
        consumed(where, "this")
        condition = self._expression(where.this, source)
        if source.join is None:
            return _From(nodes.Where(source.plan, condition), source.names)
        kind, left, right, on = source.join
        if kind is nodes.Join:
            both = condition if on == TRUE else Call("and", (on, condition))
            return _From(source.plan, source.names, (kind, left, right, both))
        fix = "filter inside: FROM (SELECT * FROM A WHERE …) AS a LEFT JOIN …"
        raise Unread("WHERE after an outer join is ambiguous about nulls", fix=fix)

    # --- what is selected ---------------------------------------------------------------------------------------------

    def _plain(self, source: _From, items: list[exp.Expr], top: _Top | None) -> Plan:
        if top is not None:
            raise Unread("TOP needs a window", fix="add GROUP BY SNAPSHOT, or TUMBLING(10 s)", offset=place(top.tree))
        each(items, _refuse_aggregate)
        if _is_star(items):
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
        names = self.steps.tried(lambda: self._names(items, source)) or [""] * len(items)
        exprs = each(items, lambda item: self._expression(_inside(item), source))
        return tuple(zip(names, exprs, strict=True))

    def _names(self, items: list[exp.Expr], source: _From) -> list[str]:
        """The names of columns; ``a.v, b.v`` of a join are v and b_v."""
        names: list[str] = []
        for item, own in zip(items, each(items, _name), strict=True):
            name = own
            if name in names and source.join is not None and isinstance(item, exp.Column) and item.table:
                name = f"{item.table}_{name}"
            if name in names:
                fix = f"name one of them: … AS {name}_2"
                raise Unread(f'two columns are called "{name}"', fix=fix, offset=place(item))
            names.append(name)
        return names

    # --- windows ------------------------------------------------------------------------------------------------------

    def _groups(self, group: exp.Expr | None, source: _From) -> tuple[dict[str, exp.Expr], Window | None]:
        """The keys, each with its tree, and the window."""
        if group is None:
            return {}, None
        consumed(group, "expressions")
        keys: dict[str, exp.Expr] = {}
        window: Window | None = None

        def read(part: exp.Expr) -> None:
            nonlocal window
            found = _window(part)
            if found is not None and window is not None:
                raise Unread("a query has one window", fix="remove one of them", offset=place(part))
            if found is not None:
                window = found
            elif isinstance(part, exp.Column):
                name = self._column(part, source).name
                if name in keys:
                    raise Unread(f'"{name}" is grouped by twice', fix="leave one of them out", offset=place(part))
                keys[name] = part
            else:
                fix = "select the expression in FROM (…) first"
                raise Unread("GROUP BY takes columns and a window", fix=fix, offset=place(part, group))

        each(group.expressions, read)
        if window is None:
            fix = "add one: GROUP BY …, TUMBLING(10 s), HOPPING(60 s, 10 s), SNAPSHOT, COUNT_START(5)"
            raise Unread("GROUP BY needs a window", fix=fix)
        return keys, window

    def _windowed(
        self, source: _From, items: list[exp.Expr], groups: dict[str, exp.Expr], window: Window, top: _Top | None
    ) -> Plan:
        if source.join is not None:
            source = self._read_join(source, [*items, *groups.values(), *([top.tree] if top else [])])
        keys = tuple(groups)
        if top is not None:
            return self._ranked(source, items, keys, window, top)
        aggs: list[tuple[str, Aggregate]] = []
        modules: list[tuple[str, nodes.Uda]] = []
        order: list[tuple[str, Expr]] = []
        inner: Plan = nodes.GroupInput() if keys else source.plan

        def read(item: exp.Expr) -> None:
            name, tree = _name(item), _inside(item)
            if isinstance(tree, exp.Column):
                column = self._column(tree, source)
                if column.name not in keys:
                    fix = f"group by it, or aggregate it: last({column.name})"
                    what = f'"{column.name}" is neither grouped by nor aggregated'
                    raise Unread(what, fix=fix, offset=place(tree))
                order.append((name, column))
                return
            made = self._aggregate(tree, source, inner, window, name)
            if isinstance(made, nodes.Uda):
                modules.append((name, made))
            else:
                aggs.append((name, made))
            order.append((name, Col(name)))

        self.steps.tried(lambda: self._names(items, source))
        each(items, read)
        plan = _result((source.plan, inner), keys, window, aggs, modules)
        natural = [(key, Col(key)) for key in keys] + [(name, Col(name)) for name, _ in (*aggs, *modules)]
        return plan if order == natural else nodes.Select(plan, tuple(order))

    def _read_join(self, source: _From, trees: list[exp.Expr]) -> _From:
        """The join with the columns that the windows read, under their own names."""
        columns: dict[str, Expr] = {}
        for tree in trees:
            if _window_name(tree) is not None:
                continue
            for column in tree.find_all(exp.Column):
                read = self._column(column, source)
                if columns.setdefault(read.name, read) != read:
                    fix = "rename one of them in FROM (SELECT …) first"
                    raise Unread(f'both sides have a column "{read.name}"', fix=fix, offset=place(column))
        assert source.join is not None
        kind, left, right, on = source.join
        select: Named = tuple((name, column) for name, column in columns.items())
        return _From(kind(left, right, on, select), source.names)

    def _aggregate(
        self, tree: exp.Expr, source: _From, inner: Plan, window: Window, name: str
    ) -> Aggregate | nodes.Uda:
        call = _call_of(tree)
        if type(tree).__name__ in WORDS:
            admit(tree)
        if call is None or call.kind == "rank":
            fix = "compute it in FROM (…) first, or around the result"
            raise Unread("this is neither a column nor an aggregate", fix=fix, offset=place(tree))
        first, *rest = call.args or [None]
        if call.kind == "aggregate":
            star = isinstance(first, exp.Star)
            if star:
                consumed(first)
            arg = None if star or first is None else self._expression(first, source)
            fn = "count_values" if call.fn == "count" and arg is not None else call.fn
            return _placed(lambda: Aggregate(fn, arg, tuple(map(_constant, rest))), tree)
        params: dict[str, Any] = {}
        for part in rest:
            named = isinstance(part, exp.PropertyEQ | exp.Kwarg)
            if named:
                consumed(part, "this", "expression")
            param = word_of(part.this) if named else ""
            if not named or param in params:
                fix = f"write {call.fn}(v, p => 2), each parameter once"
                raise Unread(f"{call.fn} takes an expression and named parameters", fix=fix, offset=place(part, tree))
            params[param] = _constant(part.expression)
        if first is None or isinstance(first, exp.PropertyEQ | exp.Kwarg):
            fix = f"write {call.fn}(v, p => 2)"
            raise Unread(f"{call.fn} takes an expression and named parameters", fix=fix, offset=place(tree))
        arg = self._expression(first, source)
        return _placed(lambda: nodes.Uda(inner, window, call.fn, arg, name, tuple(params.items())), tree)

    def _top(self, items: list[exp.Expr]) -> _Top | None:
        """What TOP n BY says, taken off the list of items."""
        first = items[0] if items else None
        if not isinstance(first, exp.Anonymous) or first.meta.get("start") not in self.tops:
            return None
        items.pop(0)
        if not items:
            raise Unread("TOP needs columns", fix="write SELECT TOP 3 BY v DESC * FROM S …", offset=place(first))
        consumed(first, "this", "expressions")
        count, *orders = first.expressions
        if len(orders) % 2:
            fix = "write e.g. SELECT TOP 3 BY v DESC, k ASC k, v FROM S"
            raise Unread("TOP n BY takes ASC or DESC after each expression", fix=fix, offset=place(first))
        return _Top(int(count.this), first, list(zip(orders[::2], orders[1::2], strict=True)))

    def _ranked(self, source: _From, items: list[exp.Expr], keys: tuple[str, ...], window: Window, top: _Top) -> Plan:
        by: tuple[tuple[Expr, Direction], ...] = tuple(
            (self._expression(expr, source), word.this) for expr, word in top.orders
        )
        ranks = [item for item in items if (call := _call_of(item)) is not None and call.kind == "rank"]
        if len(ranks) > 1:
            raise Unread("rank() stands once in a query", fix="leave one of them out", offset=place(ranks[1]))
        rank = _name(ranks[0]) if ranks else None
        plain = [item for item in items if item not in ranks]
        inner: Plan = nodes.GroupInput() if keys else source.plan
        best: Plan = _placed(lambda: nodes.TopK(inner, window, top.k, by, rank), top.tree)
        if _is_star(plain):
            if keys:
                fix = "SELECT TOP 3 BY v DESC k, v …"
                raise Unread("with groups, list the columns", fix=fix, offset=place(top.tree))
            return best
        self._names(items, source)
        named = self._named(plain, source)
        extra: Named = () if rank is None else ((rank, Col(rank)),)
        if not keys:
            return nodes.Select(best, (*named, *extra))
        inside = tuple((name, expr) for name, expr in named if not (isinstance(expr, Col) and expr.name in keys))
        grouped = nodes.GroupApply(source.plan, keys, nodes.Select(best, (*inside, *extra)))
        wanted = tuple((name, expr if (name, expr) not in inside else Col(name)) for name, expr in (*named, *extra))
        given = [*keys, *(name for name, _ in (*inside, *extra))]
        return grouped if [name for name, _ in wanted] == given else nodes.Select(grouped, wanted)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _expression(self, tree: exp.Expr, source: _From) -> Expr:
        """An expression; names of tables become sides, or are left out where there is one table."""
        return admit(tree, lambda column: self._column(column, source))

    def _column(self, column: exp.Column, source: _From) -> Col:
        table, name = parts_of(column)
        if table and table not in source.names:
            what, fix = f'there is no stream "{table}" in this query', did_you_mean(table, filter(None, source.names))
            raise Unread(what, fix=fix, offset=place(column))
        if source.join is None:
            return Col(name)
        if not table:
            fix = "write " + " or ".join(f"{side}.{name}" for side in source.names if side)
            raise Unread(f'the column "{name}" needs a side', fix=fix, offset=place(column))
        return Col(name, "l" if table == source.names[0] else "r")


@dataclass(frozen=True, slots=True)
class _Top:
    """``TOP k BY`` some expressions, each with its direction."""

    k: int
    tree: exp.Expr
    orders: list[tuple[exp.Expr, Any]]


@dataclass(frozen=True, slots=True)
class _SqlCall:
    """A function that stands alone."""

    fn: str
    args: list[Any]
    kind: Literal["aggregate", "module", "rank"] = "module"


def _refuse_aggregate(item: exp.Expr) -> None:
    call = _call_of(item)
    if call is not None and call.kind != "module":
        fix = "add a window: GROUP BY TUMBLING(10 s), HOPPING(60 s, 10 s), SNAPSHOT, COUNT_START(5)"
        raise Unread(f"{call.fn} needs to know of which events", fix=fix, offset=place(item))


def _queries(tree: exp.Expr) -> list[exp.Expr]:
    """The queries of UNIONs, which lean to the left and may be many."""
    found: list[exp.Expr] = []
    while isinstance(tree, exp.Union):
        if tree.args.get("distinct"):
            fix = "write UNION ALL"
            raise Unread("UNION would remove duplicates", fix=fix)
        consumed(tree, "this", "expression", distinct=False)
        found.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(found)]


def _alias(tree: exp.Expr) -> str:
    alias = tree.args.get("alias")
    if alias is None:
        return ""
    if not isinstance(alias, exp.TableAlias):
        raise Unread("a name is expected", fix="write FROM S AS t", offset=place(alias, tree))
    consumed(alias, "this")
    name = name_of(alias.this)
    if name.upper() in _NO_NAMES and not alias.this.args.get("quoted"):
        fix = f'leave it out; if the stream is to be called that, write AS "{name}"'
        raise Unread(f"{name.upper()} is not supported here", fix=fix, offset=place(alias))
    return name


_NO_NAMES = {*DIALECT.tokenizer_class.KEYWORDS, "BROADCAST", "EMIT", "FINAL", "GLOBAL", "NOLOCK", "ONLY", "PREWHERE",
             "PRIOR", "SETTINGS", "TIES", "UNSIGNED"}  # fmt: skip
"""Words that mean something after a stream in the SQL of one system or another; sqlglot takes them for its name."""


def _inside(item: exp.Expr) -> exp.Expr:
    """What an item of SELECT computes."""
    if not isinstance(item, exp.Alias):
        return item
    consumed(item, "this", "alias")
    return item.this  # type: ignore[no-any-return]  # sqlglot's trees are not typed


def _name(item: exp.Expr) -> str:
    if isinstance(item, exp.Alias):
        consumed(item, "this", "alias")
        return name_of(item.args["alias"])
    if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        consumed(item if isinstance(item, exp.Star) else item.this)
        raise Unread("* stands alone", fix="list the columns, or select * only", offset=place(item))
    if isinstance(item, exp.Column):
        return parts_of(item)[1]
    call = _call_of(item)
    if call is not None:
        column = call.args[0] if call.args else None
        return f"{call.fn}_{column.name}" if isinstance(column, exp.Column) else call.fn
    if type(item).__name__ in WORDS:
        admit(item)  # which says what it is
    raise Unread("an expression of SELECT has no name", fix="name it: … AS x", offset=place(item))


def _is_star(items: list[exp.Expr]) -> bool:
    if len(items) != 1 or not isinstance(items[0], exp.Star):
        return False
    consumed(items[0])
    return True


def _call_of(item: exp.Expr) -> _SqlCall | None:
    """The function that stands alone in an item."""
    tree = _inside(item)
    if not isinstance(tree, exp.Anonymous):
        return None
    consumed(tree, "this", "expressions")
    args = list(tree.expressions)
    if not isinstance(tree.this, str):  # a quoted name is a module's
        return _SqlCall(name_of(tree.this), args)
    fn = tree.this.lower()
    if fn == "rank" and not args:
        return _SqlCall(fn, args, "rank")
    if fn == "count" and len(args) == 1 and isinstance(args[0], exp.Distinct):
        consumed(args[0], "expressions")
        if len(args[0].expressions) != 1:
            raise Unread("count(DISTINCT …) takes one expression", fix="put them together in one", offset=place(tree))
        return _SqlCall("count_distinct", args[0].expressions, "aggregate")
    fn = _AGGREGATES.get(fn, fn)
    return _SqlCall(fn, args, "aggregate" if fn in AGGREGATES else "module")


_AGGREGATES = {
    "mean": "avg", "stddev": "stdev_samp", "stdev": "stdev_samp", "stddev_samp": "stdev_samp",
    "stddev_pop": "stdev_pop", "variance": "var_samp", "variance_samp": "var_samp", "variance_pop": "var_pop",
}  # fmt: skip


def _window_name(part: exp.Expr) -> str | None:
    """The name of a window, or what stands in the place of one."""
    if isinstance(part, exp.Anonymous):
        return str(part.this).lower() if isinstance(part.this, str) else str(part.this.this)
    is_bare = isinstance(part, exp.Column) and not part.table and isinstance(part.this, exp.Identifier)
    name = part.name.lower() if is_bare and not part.this.args.get("quoted") else None
    return name if name in WINDOWS else None


def _window(part: exp.Expr) -> Window | None:
    name = _window_name(part)
    if name is None:
        return None
    if name not in WINDOWS:
        fix = did_you_mean(name, WINDOWS)
        if name == "session":
            fix = 'write the plan in Python: source("S").session("2 s", key="k") cuts lifetimes at gaps'
        raise Unread(f'unknown window "{part.name}"', fix=fix, offset=place(part))
    if isinstance(part, exp.Anonymous):
        consumed(part, "this", "expressions")
    else:
        consumed(part, "this")
    values = [_length(arg, part) for arg in part.expressions]
    wanted = {"tumbling": (1, 2), "hopping": (2, 3), "snapshot": (0, 0), "count_start": (1, 1), "count_end": (1, 1)}
    low, high = wanted[name]
    if not low <= len(values) <= high:
        shown = "TUMBLING(size), HOPPING(size, hop), SNAPSHOT, COUNT_START(n), COUNT_END(n)"
        what = f"{name.upper()} takes {low} values, got {len(values)}"
        raise Unread(what, fix=f"windows are {shown}", offset=place(part))
    made: dict[str, Callable[..., Window]] = {
        "tumbling": Tumbling, "hopping": Hopping, "snapshot": Snapshot, "count_start": CountStart,
        "count_end": CountEnd,
    }  # fmt: skip
    return _placed(lambda: made[name](*values), part)


def _length(arg: exp.Expr, window: exp.Expr) -> int | str:
    if isinstance(arg, exp.Interval):
        raise Unread("a window takes lengths of time", fix="write TUMBLING(10 s)", offset=place(arg, window))
    value = _constant(arg)
    if isinstance(value, bool) or not isinstance(value, int | str):
        fix = "write TUMBLING(10 s) or TUMBLING(10)"
        raise Unread("a window takes lengths of time", fix=fix, offset=place(arg, window))
    found = _placed(lambda: read_span(value), window)
    if isinstance(found, str) and re.search(r"(?i)\b\d+\s*(month|quarter|year|decade)", found):
        fix = "give days, e.g. TUMBLING(30 days), or group by month(le) of a query in FROM (…)"
        raise Unread(f"{found} has no fixed length", fix=fix, offset=place(window))
    if isinstance(found, str):
        try:
            duration(found, "ns")
        except PlanError as error:
            raise Unread(error.what, fix=error.fix, offset=place(window), name=error.name) from None
        except StreamproofError:
            pass  # too long for nanoseconds; the unit of the stream is not known here
    return found


def _result(plans: tuple[Plan, Plan], keys: tuple[str, ...], window: Window, aggs: Any, modules: Any) -> Plan:
    plan, inner = plans
    if modules and (aggs or len(modules) > 1):
        raise Unread("a module stands alone in its query", fix="ask for the others in another query")
    if not modules and not aggs:
        raise Unread("a window needs an aggregate", fix="add e.g. count(*)")
    branch: Plan = modules[0][1] if modules else nodes.Aggregation(inner, window, tuple(aggs))
    return nodes.GroupApply(plan, keys, branch) if keys else branch


def _placed(make: Callable[[], Made], tree: exp.Expr) -> Made:
    """What is made of a tree; if it cannot be, the error knows the place."""
    try:
        return make()
    except Unread:
        raise
    except PlanError as error:
        raise Unread(error.what, fix=error.fix, offset=place(tree), name=error.name) from None


def _constant(tree: exp.Expr) -> Any:
    found = admit(tree, _no_column)
    if not isinstance(found, Lit):
        raise Unread("a constant is expected here", fix="give a number or text", offset=place(tree))
    return found.value


def _no_column(column: exp.Column) -> NoReturn:
    raise Unread(f"{column.name} is not a constant", fix="give a number or text", offset=place(column))
