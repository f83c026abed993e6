"""Operators with everything about them drawn: parameters, conditions, windows, names; over inputs that are given.

One entry in `OPERATORS` per operator. A node of another package that has none is filled in by the types of its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Final, get_type_hints

from streamproof.events.schema import BOOL, FLOAT64, INT64, Type
from streamproof.events.time import Span
from streamproof.plan import nodes
from streamproof.plan.event_nodes import NODES
from streamproof.plan.expr import Call, Col, Expr, Lit
from streamproof.plan.nodes import Named, Node, Plan
from streamproof.plan.windows import Window
from streamproof.workbench.draw.choices import Choices, DrawnColumn, DrawnShape, Readable, readable, readable_pair
from streamproof.workbench.draw.event_nodes import EVENT_NODES
from streamproof.workbench.draw.expressions import ExpressionMaker
from streamproof.workbench.draw.windowed import WindowMaker

Made = tuple[Plan, DrawnShape]
MOST_COLUMNS = 5
ODD_NAMES = ("select", "Two words", 'a"b', "it's", "C0", "g", "wle", "id", "é", "%s", "{0}", "a`b", "x;--", "a_b\\")


@dataclass(frozen=True, slots=True)
class OperatorMaker:
    """Puts operators above plans; ``window`` is the kind of window that they take, where that is decided."""

    choices: Choices
    horizon: int | None = None
    window: str | None = None

    def put(self, op: str, inputs: Sequence[Made]) -> Made:
        """The operator of that name above its inputs."""
        if op in OPERATORS:
            return OPERATORS[op].make(self, *inputs)
        return self.unknown(next(node for node in NODES if node.op == op), inputs)

    def _expressions(self, shape: DrawnShape, *, times: tuple[str, ...] = ("le",)) -> ExpressionMaker:
        return ExpressionMaker(self.choices, readable(shape, times=times))

    def _windows(self, shape: DrawnShape) -> WindowMaker:
        return WindowMaker(self.choices, shape, self.horizon, self.window)

    # --- one event at a time ------------------------------------------------------------------------------------------

    def where(self, inner: Made) -> Made:
        plan, shape = inner
        maker = self._expressions(shape)
        return nodes.Where(plan, maker.guard() if self.choices.chance(50) else maker.condition(2)), shape

    def select(self, inner: Made) -> Made:
        plan, shape = inner
        exprs, columns = self.named(readable(shape), shape.names)
        return nodes.Select(plan, exprs), replace(shape, columns=columns)

    def named(self, reads: Readable, names: tuple[str, ...]) -> tuple[Named, tuple[tuple[str, DrawnColumn], ...]]:
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

    def _kept(self, reads: Readable, name: str) -> tuple[Expr, DrawnColumn] | None:
        same = [(column, known) for column, known in reads.columns if column.name == name]
        return self.choices.pick(same) if same and self.choices.chance(60) else None

    def shift(self, inner: Made) -> Made:
        plan, shape = inner
        return nodes.Shift(plan, self._span(shape, -6, 6)), shape

    def extend(self, inner: Made) -> Made:
        plan, shape = inner
        return nodes.Extend(plan, self._span(shape, -4, 6)), shape

    def to_point(self, inner: Made) -> Made:
        return nodes.ToPoint(inner[0]), replace(inner[1], no_end=False)

    def point_at_end(self, inner: Made) -> Made:
        return nodes.PointAtEnd(inner[0]), replace(inner[1], no_end=False, no_start=False)

    def _span(self, shape: DrawnShape, low: int, high: int) -> Span:
        ticks = self.choices.integer(low, high)
        return f"{ticks}{shape.unit}" if shape.unit and self.choices.chance(15) else ticks

    def alter_duration(self, inner: Made) -> Made:
        plan, shape = inner
        if self.choices.chance(10):
            return nodes.AlterDuration(plan, None), replace(shape, no_end=True)
        if self.choices.chance(50):
            return nodes.AlterDuration(plan, self.choices.integer(1, 8)), replace(shape, no_end=False)
        return nodes.AlterDuration(plan, self._duration(shape)), shape

    def _duration(self, shape: DrawnShape) -> Expr:
        """A small length of time that reads the event; one that reads its end is small because the event is short."""
        length = Call("sub", (Col("re"), Col("le")))
        numbers = [Col(name) for name, column in shape.columns if column.type == INT64 and column.size <= 10_000]
        match self.choices.pick(("twice", "payload", "payload", "any")):
            case "twice":
                return Call("mul", (length, Lit(self.choices.integer(1, 3), INT64)))
            case "payload" if numbers:
                return Call("mod", (self.choices.pick(numbers), Lit(10, INT64)))
        return Call("mod", (self._expressions(shape, times=("le", "re")).of("int64", 2)[0], Lit(12, INT64)))

    def chop(self, inner: Made) -> Made:
        plan, shape = inner
        if not self._windows(shape).bounded:
            return nodes.ToPoint(plan), replace(shape, no_end=False)
        period, offset = self.choices.integer(2, 8), self.choices.integer(-3, 3)
        return nodes.Chop(plan, period, offset), replace(shape, no_end=False, no_start=False)

    def stitch(self, inner: Made) -> Made:
        plan, shape = self._exact(*inner)
        return nodes.Stitch(plan), shape

    def coalesce(self, inner: Made) -> Made:
        plan, shape = self._exact(*inner)
        return nodes.Coalesce(plan), shape

    def distinct(self, inner: Made) -> Made:
        plan, shape = self._exact(*inner)
        return nodes.Distinct(plan), shape

    def _exact(self, plan: Plan, shape: DrawnShape) -> Made:
        """Without the columns that are only nearly the same everywhere."""
        if not shape.rough:
            return plan, shape
        columns = tuple((name, column) for name, column in shape.columns if not column.rough)
        exprs: Named = tuple((name, Col(name)) for name, _ in columns)
        return nodes.Select(plan, exprs), replace(shape, columns=columns)

    def session(self, inner: Made) -> Made:
        plan, shape = inner
        keys = shape.exact_names()
        key = (self.choices.pick(keys),) if keys and self.choices.chance(40) else ()
        longest = self.choices.integer(1, 12) if self.choices.chance(40) else None
        return nodes.Session(plan, self.choices.integer(1, 6), longest, key), replace(shape, no_end=False)

    # --- several inputs -----------------------------------------------------------------------------------------------

    def join(self, one: Made, other: Made, kind: type[nodes.Join] = nodes.Join) -> Made:
        (left, a), (right, b) = one, other
        shape = replace(a, no_end=a.no_end or b.no_end, no_start=a.no_start or b.no_start)
        if not set(a.names) & set(b.names) and self.choices.chance(50):
            columns = (*a.columns, *b.columns)
            return kind(left, right, self.condition(a, b)), replace(shape, columns=columns)
        select, columns = self.named(readable_pair(a, b), (*a.names, *b.names))
        return kind(left, right, self.condition(a, b), select), replace(shape, columns=columns)

    def left_outer(self, one: Made, other: Made) -> Made:
        return self.join(one, other, nodes.LeftOuter)

    def full_outer(self, one: Made, other: Made) -> Made:
        return self.join(one, other, nodes.FullOuter)

    def followed_by(self, one: Made, other: Made) -> Made:
        return self.join(one, other, nodes.FollowedBy)

    def condition(self, left: DrawnShape, right: DrawnShape) -> Expr:
        """Mostly an equality of two columns."""
        types = dict(right.columns)
        shared = [n for n, c in left.columns if n in types and not c.rough and types[n].type == c.type]
        if shared and self.choices.chance(75):
            name = "k" if "k" in shared and self.choices.chance(50) else self.choices.pick(shared)
            return Call("same" if self.choices.chance(20) else "eq", (Col(name, "l"), Col(name, "r")))
        if self.choices.chance(25):
            return Lit(True, BOOL)
        pair = readable_pair(left, right)
        times = ((Col("le", "l"), DrawnColumn(INT64)), (Col("le", "r"), DrawnColumn(INT64)))
        reads = replace(pair, columns=(*pair.columns, *times)) if self.choices.chance(15) else pair
        return ExpressionMaker(self.choices, reads).condition(2)

    def anti_join(self, one: Made, other: Made) -> Made:
        (left, a), (right, b) = one, other
        return nodes.AntiJoin(left, right, self.condition(a, b)), replace(a, no_start=a.no_start or b.no_start)

    def clip(self, one: Made, other: Made) -> Made:
        (left, a), (right, b) = one, other
        return nodes.Clip(left, right, self.condition(a, b)), a

    def union(self, one: Made, other: Made) -> Made:
        (left, a), (right, b) = one, other
        maker = self._expressions(b)
        columns, exprs = [], []
        for name, column in a.columns:
            expr, found = self._kept(readable(b), name) or maker.of(column.type.kind, 1)
            if not _fits(found.type, column.type):
                expr, found = Lit(None, column.type), column
            exprs.append((name, expr))
            columns.append((name, _wider(column, found)))
        if self.choices.chance(30):
            exprs.reverse()  # the order of columns must not matter
        shape = replace(
            a, columns=tuple(columns), no_end=a.no_end or b.no_end, no_start=a.no_start or b.no_start
        )  # fmt: skip
        return nodes.Union((left, nodes.Select(right, tuple(exprs)))), shape

    def group_apply(self, inner: Made, key: tuple[str, ...], applied: Made) -> Made:
        """The apply branch over the groups of the key; columns of it that are called like keys are renamed."""
        plan, shape = inner
        apply, result = _without(*applied, key)
        ordered = tuple(pair for name in key for pair in shape.columns if pair[0] == name)
        return nodes.GroupApply(plan, key, apply), replace(result, columns=(*ordered, *result.columns))

    def key(self, shape: DrawnShape) -> tuple[str, ...]:
        """One or two columns to group by; none if no column is exact."""
        names = shape.exact_names()
        if not names:
            return ()
        return tuple(dict.fromkeys(self.choices.pick(names) for _ in range(self.choices.integer(1, 2))))

    # --- windows ------------------------------------------------------------------------------------------------------

    def agg(self, inner: Made) -> Made:
        return self._windows(inner[1]).aggregation(inner[0])

    def topk(self, inner: Made) -> Made:
        return self._windows(inner[1]).topk(inner[0])

    def uda(self, inner: Made) -> Made:
        return self._windows(inner[1]).uda(inner[0])

    def udo(self, inner: Made) -> Made:
        return self._windows(inner[1]).udo(inner[0])

    def risky(self, plan: Plan, shape: DrawnShape) -> Plan:
        """A last projection with an expression that fails for some values."""
        return nodes.Select(plan, (("x", self._expressions(shape).risky()[0]),))

    # --- nodes that have no entry -------------------------------------------------------------------------------------

    def unknown(self, node: type[Node], inputs: Sequence[Made]) -> Made:
        """A node filled in by the types of its fields; what is known of its result is next to nothing."""
        shape = inputs[0][1]
        hints, given = get_type_hints(node), dict(zip(node.input_fields, (plan for plan, _ in inputs), strict=False))
        for field in fields(node):
            if field.name not in given and (field.default is MISSING or self.choices.chance(40)):
                given[field.name] = self._field(hints[field.name], shape)
        columns = tuple((name, replace(column, rough=column.type == FLOAT64)) for name, column in shape.columns)
        return node(**given), replace(shape, columns=columns, no_end=True, no_start=True)

    def _field(self, kind: Any, shape: DrawnShape) -> Any:
        """A value for a field of that type."""
        words = str(kind)
        if kind in (Window, "Window") or "Tumbling" in words:
            return self._windows(shape).window()[0]
        if "Call" in words:
            return self._expressions(shape).condition(1)
        if "int" in words:
            return self.choices.integer(1, 8)
        if "bool" in words:
            return self.choices.chance(50)
        return self.choices.pick(shape.exact_names() or ["v"])


@dataclass(frozen=True, slots=True)
class Operator:
    """How many inputs an operator has, and how it is put above them."""

    arity: int
    make: Callable[..., Made]


OPERATORS: Final[dict[str, Operator]] = {
    "where": Operator(1, OperatorMaker.where),
    "select": Operator(1, OperatorMaker.select),
    "shift": Operator(1, OperatorMaker.shift),
    "extend": Operator(1, OperatorMaker.extend),
    "alter_duration": Operator(1, OperatorMaker.alter_duration),
    "to_point": Operator(1, OperatorMaker.to_point),
    "point_at_end": Operator(1, OperatorMaker.point_at_end),
    "chop": Operator(1, OperatorMaker.chop),
    "stitch": Operator(1, OperatorMaker.stitch),
    "coalesce": Operator(1, OperatorMaker.coalesce),
    "distinct": Operator(1, OperatorMaker.distinct),
    "session": Operator(1, OperatorMaker.session),
    "union": Operator(2, OperatorMaker.union),
    "join": Operator(2, OperatorMaker.join),
    "left_outer": Operator(2, OperatorMaker.left_outer),
    "full_outer": Operator(2, OperatorMaker.full_outer),
    "followed_by": Operator(2, OperatorMaker.followed_by),
    "clip": Operator(2, OperatorMaker.clip),
    "lasj": Operator(2, OperatorMaker.anti_join),
    "agg": Operator(1, OperatorMaker.agg),
    "topk": Operator(1, OperatorMaker.topk),
    "uda": Operator(1, OperatorMaker.uda),
    "udo": Operator(1, OperatorMaker.udo),
    **{op: Operator(arity, make) for op, (arity, make) in EVENT_NODES.items()},
}  # fmt: skip
BINDERS: Final = ("source", "group_input", "ref", "let", "group_apply", "advance_time", "eql")
"""Nodes that are not simply put above others."""


def operators() -> dict[str, int]:
    """Every operator that can be put above inputs, with how many it takes: also those that other packages add.

    >>> operators()["join"], operators()["topk"]
    (2, 1)
    """
    found = {node.op: len(node.input_fields) for node in NODES if node.op not in BINDERS}
    return {op: OPERATORS[op].arity if op in OPERATORS else arity for op, arity in found.items()}


def _fits(kind: Type, wanted: Type) -> bool:
    return kind == wanted or (kind == INT64 and wanted == FLOAT64)


def _wider(a: DrawnColumn, b: DrawnColumn) -> DrawnColumn:
    return DrawnColumn(a.type, a.rough or b.rough, max(a.size, b.size))


def _without(plan: Plan, shape: DrawnShape, names: tuple[str, ...]) -> Made:
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
