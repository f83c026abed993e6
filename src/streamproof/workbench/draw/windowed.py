"""Random aggregates, rankings and modules over every kind of window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamproof.errors import InternalError
from streamproof.events.schema import FLOAT64, INT64, STRING, Type
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.expr import Call, Expr, Lit, Value
from streamproof.plan.modules import Clipping, Restriction, Stamping
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.workbench.draw.choices import LARGEST, Choices, DrawnColumn, DrawnShape, readable
from streamproof.workbench.draw.expressions import ExpressionMaker

Made = tuple[Plan, DrawnShape]
CLIPS: tuple[Clipping, ...] = ("none", "full", "left", "right")
RESTRICTIONS: tuple[Restriction, ...] = ("none", "none", "window_based", "time_bound")
STAMPS: tuple[Stamping, ...] = ("align", "clip", "unchanged")
DIRECTIONS: tuple[nodes.Direction, ...] = ("asc", "desc")
FAMILIES: tuple[Sequence[str], ...] = (
    tuple(AGGREGATES), tuple(AGGREGATES), ("count", "sum", "avg"), ("count_values", "sum", "avg"),
    ("count", "min", "max"),
)  # fmt: skip
"""Aggregates that are asked for together. Engines have ways of their own for some, which any other would bar."""
SELECTING = ("min", "max", "first", "last")
"""Aggregates whose result is one of the values. Any other result may differ in the last bits if it is a float."""
PARAMETERS: Mapping[str, Sequence[Value]] = {"p": (0, 0.25, 0.5, 0.9, 1)}
"""Values for the parameters of aggregates, by their names."""
MANY = 100_000  # more events than any window here has


@dataclass(frozen=True, slots=True)
class WindowMaker:
    """Makes windowed operators over a stream of the given shape."""

    choices: Choices
    shape: DrawnShape
    horizon: int | None
    kind: str | None = None  # the kind of window, where that is decided

    @property
    def bounded(self) -> bool:
        """Whether hopping windows end; now and then they may not, which is an error that all engines share."""
        no_end = self.shape.no_start or (self.shape.no_end and self.horizon is None)
        return not no_end or self.choices.chance(4)

    def window(self) -> tuple[Window, DrawnShape]:
        """A window, and the shape of results that live as long as their windows."""
        kinds = ["snapshot", "count_start", "count_end", *(["tumbling", "hopping", "hopping"] if self.bounded else [])]
        number = self.choices.integer
        finite = replace(self.shape, no_end=False)
        match self.kind or self.choices.pick(kinds):
            case "snapshot":
                return Snapshot(), self.shape
            case "tumbling":
                return Tumbling(number(1, 9), number(-3, 3)), replace(finite, no_start=False)
            case "hopping":
                return self._hopping(), replace(finite, no_start=False)
            case "count_start":
                return CountStart(number(1, 3)), finite
        return CountEnd(number(1, 3)), replace(finite, no_start=False)

    def _hopping(self) -> Hopping:
        """Any size and hop; as often a size of several hops, as most people write them."""
        number = self.choices.integer
        if self.choices.chance(50):
            return Hopping(number(1, 9), number(1, 9), number(-3, 3))
        hop = number(1, 3)
        return Hopping(hop * number(2, 5), hop, number(-3, 3))

    def _output(self) -> nodes.Output:
        return "point_end" if self.choices.chance(25) else "window"

    def _after(self, output: nodes.Output, shape: DrawnShape) -> DrawnShape:
        return replace(shape, no_end=False, no_start=False) if output == "point_end" else shape

    def _expressions(self) -> ExpressionMaker:
        return ExpressionMaker(self.choices, readable(self.shape))

    def aggregation(self, plan: Plan) -> Made:
        window, shape = self.window()
        among = self.choices.pick(FAMILIES)
        made = [self.aggregate(among) for _ in range(self.choices.integer(1, 3))]
        aggs = tuple((f"a{n}", agg) for n, (agg, _) in enumerate(made))
        columns = tuple((f"a{n}", column) for n, (_, column) in enumerate(made))
        output = self._output()
        return nodes.Aggregation(plan, window, aggs, output), self._after(output, replace(shape, columns=columns))

    def aggregate(self, among: Sequence[str] = tuple(AGGREGATES)) -> tuple[Aggregate, DrawnColumn]:
        expr, column = self._expressions().any(self.choices.integer(0, 2), rough=self.choices.chance(20))
        fn = self.choices.pick([name for name in among if name == "count" or self._fits(name, column)])
        if fn == "count":
            return Aggregate(fn, expr if self.choices.chance(30) else None), DrawnColumn(INT64, size=MANY)
        params = self._params(fn)
        return Aggregate(fn, expr, params), self._result(fn, column, AGGREGATES[fn].result(column.type, params))

    def _params(self, fn: str) -> tuple[Value, ...]:
        parameter = AGGREGATES[fn].parameter
        if parameter is None:
            return ()
        if parameter not in PARAMETERS:
            raise InternalError(f"no values are known for {parameter} of {fn}", fix="add them to PARAMETERS")
        return (self.choices.pick(PARAMETERS[parameter]),)

    def _fits(self, fn: str, column: DrawnColumn) -> bool:
        if AGGREGATES[fn].rule(column.type) is None:
            return False
        if fn == "sum" and column.type == INT64 and column.size * MANY > LARGEST:
            return False
        return not column.rough or fn in SELECTING or fn == "count_values"

    def _result(self, fn: str, column: DrawnColumn, result: Type) -> DrawnColumn:
        """What is known of the results: those that are selected are values; computed floats are nearly the same."""
        if fn in SELECTING:
            return column
        if fn == "sum":
            return DrawnColumn(result, rough=result == FLOAT64, size=column.size * MANY)
        return DrawnColumn(result, rough=result == FLOAT64, size=MANY)

    def topk(self, plan: Plan) -> Made:
        window, shape = self.window()
        maker = self._expressions()
        by = tuple(
            (maker.any(self.choices.integer(0, 1))[0], self.choices.pick(DIRECTIONS))
            for _ in range(self.choices.integer(1, 2))
        )
        rank = "rk" if self.choices.chance(60) and "rk" not in shape.names else None
        columns = (*shape.columns, *([] if rank is None else [(rank, DrawnColumn(INT64, size=MANY))]))
        output = self._output()
        node = nodes.TopK(plan, window, self.choices.integer(1, 3), by, rank, output)
        return node, self._after(output, replace(shape, columns=columns))

    def uda(self, plan: Plan) -> Made:
        window, shape = self.window()
        fn, arg, column = self._uda_call()
        output = self._output()
        node = nodes.Uda(
            plan, window, fn, arg, "m", clip=self.choices.pick(CLIPS), output=output,
            restriction=self.choices.pick(RESTRICTIONS),
        )  # fmt: skip
        return node, self._after(output, replace(shape, columns=(("m", column),)))

    def _uda_call(self) -> tuple[str, Expr, DrawnColumn]:
        """An aggregate module, what it reads, and what it gives."""
        maker, depth = self._expressions(), self.choices.integer(0, 1)
        fn = self.choices.pick(("twavg", "median", "spread", "mean", "longest", "joined", "picky"))
        match fn:
            case "longest":
                return fn, maker.any(depth)[0], DrawnColumn(INT64)
            case "joined":
                return fn, maker.of("string", depth)[0], DrawnColumn(STRING)
            case "picky":
                number, column = maker.of("int64", depth)
                seldom = self.choices.chance(30) or column.size < 7
                return fn, number if seldom else Call("mod", (number, Lit(5, INT64))), DrawnColumn(INT64, size=MANY)
        return fn, maker.of(self.choices.pick(("int64", "float64")), depth)[0], DrawnColumn(FLOAT64, rough=True)

    def udo(self, plan: Plan) -> Made:
        window, shape = self.window()
        if self.choices.chance(15):
            crowd = nodes.Udo(plan, window, "crowds", clip=self.choices.pick(CLIPS))
            return crowd, replace(shape, columns=(("n", DrawnColumn(INT64, size=MANY)),))
        stamp = self.choices.pick(STAMPS)
        clip = self.choices.pick(CLIPS)
        if stamp == "unchanged":
            shape = replace(shape, no_end=self.shape.no_end, no_start=self.shape.no_start)
            if not self.choices.chance(5):
                clip = self.choices.pick(("left", "full"))  # otherwise most results would lie in the past
        mapping, columns = self._mapping() if self.choices.chance(40) else (None, self.shape.columns)
        fn = self.choices.pick(("passthrough", "halves"))
        restriction = self.choices.pick(RESTRICTIONS)
        node = nodes.Udo(plan, window, fn, mapping, clip=clip, stamp=stamp, restriction=restriction)
        return node, replace(shape, columns=columns)

    def _mapping(self) -> tuple[nodes.Named, tuple[tuple[str, DrawnColumn], ...]]:
        made = [self._expressions().any(1, rough=True) for _ in range(self.choices.integer(1, 2))]
        names = [f"p{n}" for n in range(len(made))]
        exprs = tuple((name, expr) for name, (expr, _) in zip(names, made, strict=True))
        return exprs, tuple((name, column) for name, (_, column) in zip(names, made, strict=True))
