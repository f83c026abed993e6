"""Random well-typed plans over every node, window, aggregate and output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from streamproof.events.schema import BOOL, FLOAT64, INT64, Type
from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.expr import Call, Col, Expr, Lit
from streamproof.plan.nodes import Named, Plan
from tests.reference.choices import Choices
from tests.reference.columns import Column, Readable, Shape, readable, readable_pair
from tests.reference.random_expressions import ExpressionMaker
from tests.reference.random_windows import WindowMaker

Made = tuple[Plan, Shape]
MOST_COLUMNS = 5
ODD_NAMES = ("select", "Two words", 'a"b', "it's", "C0", "g", "wle", "id", "é", "%s", "{0}", "a`b", "x;--", "a_b\\")


@dataclass(frozen=True, slots=True)
class PlanMaker:
    """Makes plans over the streams in scope: sources, or inside an apply branch the group's events; and bound names."""

    choices: Choices
    sources: tuple[Made, ...]
    horizon: int | None = None
    bound: tuple[Made, ...] = ()
    inside: bool = False  # in an apply branch

    def plan(self, depth: int) -> Made:
        """A plan of at most that many operators on each path to a leaf."""
        if depth <= 0 or self.choices.chance(8):
            return self._leaf()
        return self.choices.pick(self._makers())(depth - 1)

    def _makers(self) -> list[Callable[[int], Made]]:
        light = [self._where, self._select, self._lifetimes, self._alter_duration, self._lasting]
        heavy = [
            self._aggregation,
            self._aggregation,
            self._topk,
            self._uda,
            self._udo,
            self._join,
            self._join,
            self._anti_join,
        ]
        rare = [self._clip, self._union, self._group_apply, self._let, self._session, self._chop, self._group_apply]
        return [*light, *heavy, *rare]

    def _leaf(self) -> Made:
        if self.bound and self.choices.chance(60):
            return self.choices.pick(self.bound)
        plan, shape = self.choices.pick(self.sources)
        if isinstance(plan, nodes.Source) and self.choices.chance(4):
            return nodes.AdvanceTime(plan, every=self.choices.integer(1, 3)), shape
        return plan, shape

    def _expressions(self, shape: Shape, *, times: tuple[str, ...] = ("le",)) -> ExpressionMaker:
        return ExpressionMaker(self.choices, readable(shape, times=times))

    def _windows(self, shape: Shape) -> WindowMaker:
        return WindowMaker(self.choices, shape, self.horizon)

    # --- one event at a time ------------------------------------------------------------------------------------------

    def _where(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        return nodes.Where(plan, self._expressions(shape).condition(2)), shape

    def _select(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        exprs, columns = self._named(readable(shape), shape.names)
        return nodes.Select(plan, exprs), replace(shape, columns=columns)

    def _named(self, reads: Readable, names: tuple[str, ...]) -> tuple[Named, tuple[tuple[str, Column], ...]]:
        """Named expressions, some of them old names with a new meaning."""
        maker = ExpressionMaker(self.choices, reads)
        known = [name for name in names if self.choices.chance(40)]
        fresh = [f"c{n}" for n in range(self.choices.integer(1, 3))]
        if self.choices.chance(10):
            fresh.append(self.choices.pick(ODD_NAMES))
        exprs, columns = [], []
        for name in dict.fromkeys([*known, *fresh][:MOST_COLUMNS]):
            expr, column = self._kept(reads, name) or maker.any(self.choices.integer(0, 3), rough=True)
            exprs.append((name, expr))
            columns.append((name, column))
        return tuple(exprs), tuple(columns)

    def _kept(self, reads: Readable, name: str) -> tuple[Expr, Column] | None:
        same = [(column, known) for column, known in reads.columns if column.name == name]
        return self.choices.pick(same) if same and self.choices.chance(60) else None

    def _lifetimes(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        match self.choices.pick(("shift", "extend", "to_point", "point_at_end")):
            case "shift":
                return nodes.Shift(plan, self._span(shape, -6, 6)), shape
            case "extend":
                return nodes.Extend(plan, self._span(shape, -4, 6)), shape
            case "to_point":
                return nodes.ToPoint(plan), replace(shape, endless=False)
        return nodes.PointAtEnd(plan), replace(shape, endless=False, ageless=False)

    def _span(self, shape: Shape, low: int, high: int) -> Span:
        ticks = self.choices.integer(low, high)
        return f"{ticks}{shape.unit}" if shape.unit and self.choices.chance(15) else ticks

    def _alter_duration(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        if self.choices.chance(10):
            return nodes.AlterDuration(plan, None), replace(shape, endless=True)
        if self.choices.chance(50):
            return nodes.AlterDuration(plan, self.choices.integer(1, 8)), replace(shape, endless=False)
        return nodes.AlterDuration(plan, self._duration(shape)), shape

    def _duration(self, shape: Shape) -> Expr:
        """A small length of time that reads the event; one that reads its end is small because the event is short."""
        length = Call("sub", (Col("re"), Col("le")))
        numbers = [Col(name) for name, column in shape.columns if column.type == INT64 and column.size <= 10_000]
        match self.choices.pick(("twice", "payload", "payload", "any")):
            case "twice":
                return Call("mul", (length, Lit(self.choices.integer(1, 3), INT64)))
            case "payload" if numbers:
                return Call("mod", (self.choices.pick(numbers), Lit(10, INT64)))
        return Call("mod", (self._expressions(shape, times=("le", "re")).of("int64", 2)[0], Lit(12, INT64)))

    def _chop(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        if not self._windows(shape).bounded:
            return nodes.ToPoint(plan), replace(shape, endless=False)
        period, offset = self.choices.integer(2, 8), self.choices.integer(-3, 3)
        return nodes.Chop(plan, period, offset), replace(shape, endless=False, ageless=False)

    def _lasting(self, depth: int) -> Made:
        """Equal payloads together."""
        plan, shape = self._exact(*self.plan(depth))
        kind = self.choices.pick((nodes.Coalesce, nodes.Distinct, nodes.Stitch))
        return kind(plan), shape

    def _exact(self, plan: Plan, shape: Shape) -> Made:
        """Without the columns that are only nearly the same everywhere."""
        if not shape.rough:
            return plan, shape
        columns = tuple((name, column) for name, column in shape.columns if not column.rough)
        exprs: Named = tuple((name, Col(name)) for name, _ in columns)
        return nodes.Select(plan, exprs), replace(shape, columns=columns)

    def _session(self, depth: int) -> Made:
        plan, shape = self.plan(depth)
        keys = shape.exact_names()
        key = (self.choices.pick(keys),) if keys and self.choices.chance(40) else ()
        longest = self.choices.integer(1, 12) if self.choices.chance(40) else None
        return nodes.Session(plan, self.choices.integer(1, 6), longest, key), replace(shape, endless=False)

    # --- several inputs -----------------------------------------------------------------------------------------------

    def _join(self, depth: int) -> Made:
        (left, a), (right, b) = self._pair(depth)
        kind = self.choices.pick((nodes.Join, nodes.LeftOuter, nodes.FullOuter, nodes.FollowedBy))
        shape = replace(a, endless=a.endless or b.endless, ageless=a.ageless or b.ageless)
        if not set(a.names) & set(b.names) and self.choices.chance(50):
            columns = (*a.columns, *b.columns)
            return kind(left, right, self._on(a, b)), replace(shape, columns=columns)
        select, columns = self._named(readable_pair(a, b), (*a.names, *b.names))
        return kind(left, right, self._on(a, b), select), replace(shape, columns=columns)

    def _pair(self, depth: int) -> tuple[Made, Made]:
        """Two inputs, often of the same stream."""
        return self.plan(depth), self.plan(min(depth, self.choices.integer(0, 2)))

    def _on(self, left: Shape, right: Shape) -> Expr:
        """Mostly an equality of two columns."""
        types = dict(right.columns)
        shared = [n for n, c in left.columns if n in types and not c.rough and types[n].type == c.type]
        if shared and self.choices.chance(60):
            name = self.choices.pick(shared)
            return Call("same" if self.choices.chance(20) else "eq", (Col(name, "l"), Col(name, "r")))
        if self.choices.chance(25):
            return Lit(True, BOOL)
        pair = readable_pair(left, right)
        times = ((Col("le", "l"), Column(INT64)), (Col("le", "r"), Column(INT64)))
        reads = replace(pair, columns=(*pair.columns, *times)) if self.choices.chance(15) else pair
        return ExpressionMaker(self.choices, reads).condition(2)

    def _anti_join(self, depth: int) -> Made:
        (left, a), (right, b) = self._pair(depth)
        return nodes.AntiJoin(left, right, self._on(a, b)), replace(a, ageless=a.ageless or b.ageless)

    def _clip(self, depth: int) -> Made:
        (left, a), (right, b) = self._pair(depth)
        return nodes.Clip(left, right, self._on(a, b)), a

    def _union(self, depth: int) -> Made:
        (left, a), (right, b) = self._pair(depth)
        maker = self._expressions(b)
        columns, exprs = [], []
        for name, column in a.columns:
            expr, other = self._kept(readable(b), name) or maker.of(column.type.kind, 1)
            if not _fits(other.type, column.type):
                expr, other = Lit(None, column.type), column
            exprs.append((name, expr))
            columns.append((name, _wider(column, other)))
        if self.choices.chance(30):
            exprs.reverse()  # the order of columns must not matter
        shape = replace(
            a, columns=tuple(columns), endless=a.endless or b.endless, ageless=a.ageless or b.ageless
        )  # fmt: skip
        return nodes.Union((left, nodes.Select(right, tuple(exprs)))), shape

    def _let(self, depth: int) -> Made:
        plan, shape = self.plan(max(0, depth - 1))
        name = f"m{len(self.bound)}"
        body, result = replace(self, bound=(*self.bound, (nodes.Ref(name), shape))).plan(depth)
        return nodes.Let(((name, plan),), body), result

    def _group_apply(self, depth: int) -> Made:
        plan, shape = self.plan(self.choices.integer(0, max(0, depth - 1)))
        names = shape.exact_names()
        if not names:
            return plan, shape
        keys = tuple(dict.fromkeys(self.choices.pick(names) for _ in range(self.choices.integer(1, 2))))
        group = replace(self, sources=((nodes.GroupInput(), shape),), bound=(), inside=True)
        apply, inner = _without(*group.plan(depth), keys)
        kept = tuple((name, column) for name, column in shape.columns if name in keys)
        ordered = tuple(pair for key in keys for pair in kept if pair[0] == key)
        return nodes.GroupApply(plan, keys, apply), replace(inner, columns=(*ordered, *inner.columns))

    # --- windows ------------------------------------------------------------------------------------------------------

    def _aggregation(self, depth: int) -> Made:
        return self._windows_over(depth, WindowMaker.aggregation)

    def _topk(self, depth: int) -> Made:
        return self._windows_over(depth, WindowMaker.topk)

    def _uda(self, depth: int) -> Made:
        return self._windows_over(depth, WindowMaker.uda)

    def _udo(self, depth: int) -> Made:
        return self._windows_over(depth, WindowMaker.udo)

    def _windows_over(self, depth: int, make: Callable[[WindowMaker, Plan], Made]) -> Made:
        plan, shape = self.plan(depth)
        return make(self._windows(shape), plan)

    def risky(self, plan: Plan, shape: Shape) -> Plan:
        """A last projection with an expression that fails for some values."""
        return nodes.Select(plan, (("x", self._expressions(shape).risky()[0]),))


def _fits(kind: Type, wanted: Type) -> bool:
    return kind == wanted or (kind == INT64 and wanted == FLOAT64)


def _wider(a: Column, b: Column) -> Column:
    return Column(a.type, a.rough or b.rough, max(a.size, b.size))


def _without(plan: Plan, shape: Shape, names: tuple[str, ...]) -> Made:
    """The apply branch with the columns renamed that are called like keys."""
    if not set(names) & set(shape.names):
        return plan, shape
    new = {name: f"{name}_" if name in names else name for name in shape.names}
    for letter in "xyz":  # two keys can collide with two of them
        if len(set(new.values())) == len(new) and not set(new.values()) & set(names):
            break
        new = {name: f"{letter}{n}" for n, name in enumerate(shape.names)}
    exprs: Named = tuple((new[name], Col(name)) for name in shape.names)
    return nodes.Select(plan, exprs), replace(shape, columns=tuple((new[n], c) for n, c in shape.columns))
