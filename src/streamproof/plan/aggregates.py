"""Aggregates: one value from the members of a window.

``count`` counts events; the others ignore null, and give null where nothing is left. What SQL, EQL and Python write as
``count(v)`` is ``count_values``: it counts the values.

>>> AGGREGATES["sum"].result(INT64, ())
Type('int64')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.schema import FLOAT64, INT64, MAX_PRECISION, NULL, Type, decimal
from streamproof.plan.expr import Call, Case, Expr, Value, literal


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a plan: a function, what it reads, and its parameters."""

    fn: str
    arg: Expr | None = None
    params: tuple[Value, ...] = ()
    zero: bool = field(default=False, repr=False)  # of nothing it gives 0: a sum that counts

    def __post_init__(self) -> None:
        if self.fn not in AGGREGATES:
            raise PlanError(f'unknown aggregate "{self.fn}"', fix=did_you_mean(self.fn, AGGREGATES))
        if self.arg is None and self.fn != "count":
            raise PlanError(
                f"{self.fn} needs an expression to aggregate",
                fix=f'write ["{self.fn}", "column"] in plan files, {self.fn}(column) in text',
            )
        AGGREGATES[self.fn].check_params(self.params)

    @property
    def function(self) -> AggregateFunction:
        """What is known of the function."""
        return AGGREGATES[self.fn]

    @property
    def reads(self) -> Expr | None:
        """What is evaluated of every event: its argument, but nothing for a count, which only counts events."""
        return None if self.fn == "count" else self.arg

    @property
    def of_nothing(self) -> int | None:
        """What it gives where there is nothing."""
        return 0 if self.zero else self.function.of_nothing

    @property
    def noted(self) -> tuple[str, Expr | None]:
        """The function and what it reads, as plans note them."""
        match self:
            case Aggregate(zero=True, arg=Case(branches=((Call("is_null", (arg,)), _),))):
                return "count_values", arg
        return self.fn, self.arg

    @property
    def written(self) -> tuple[str, Expr | None]:
        """The function and what it reads, as people write them: ``count(v)`` counts values, ``count(*)`` events."""
        fn, arg = self.noted
        return {"count": ("count", None), "count_values": ("count", arg)}.get(fn, (fn, arg))

    def computed(self) -> Aggregate:
        """The aggregate that engines compute: a count of values is a sum of ones.

        >>> from streamproof.plan.expr import Col
        >>> Aggregate("count_values", Col("v")).computed().fn
        'sum'
        """
        if self.fn != "count_values":
            return self
        assert self.arg is not None
        ones = Case(((Call("is_null", (self.arg,)), literal(0)),), literal(1))
        return Aggregate("sum", ones, zero=True)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """The description of an aggregate function."""

    name: str
    rule: Callable[[Type], Type | None]
    summary: str
    parameter: str | None = None  # the one parameter some have
    ordered: bool = True  # may depend on the order of events, and so on their ends and their whole payload
    as_float: bool = False  # computed on floats, whatever numbers it is given
    of_nothing: int | None = None  # its value where there is nothing

    def result(self, arg: Type, params: tuple[Value, ...]) -> Type:
        result = self.rule(arg)
        if result is None:
            raise PlanError(f"{self.name} cannot aggregate {arg}", fix="cast the column", name="type_mismatch")
        return result

    def check_params(self, params: tuple[Value, ...]) -> None:
        wanted = 0 if self.parameter is None else 1
        if len(params) != wanted:
            more = f", {self.parameter}" if self.parameter else ""
            form = f'["{self.name}", "v"{more}] in plan files, {self.name}(v{more}) in text'
            raise PlanError(
                f"{self.name} takes {wanted} parameters, got {len(params)}",
                fix=f"{self.summary}: write {form}" if self.parameter else f"write {form}",
            )
        if self.parameter == "p":
            p = params[0]
            if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
                raise PlanError(f"percentile needs p between 0 and 1, got {p!r}", fix="0.9 is the 90th percentile")


def unsupported(fn: str, engine: str) -> PlanError:
    """The error of an engine that cannot compute an aggregate function."""
    return PlanError(f"the engine {engine} cannot compute {fn}", fix="use another aggregate or engine")


def _sum(arg: Type) -> Type | None:
    if arg.kind == "decimal":
        return decimal(MAX_PRECISION, arg.scale)
    return arg if arg.is_numeric or arg == NULL else None


def _float(arg: Type) -> Type | None:
    return FLOAT64 if arg.is_numeric or arg == NULL else None


def _same(arg: Type) -> Type | None:
    return arg


def _count(arg: Type) -> Type | None:
    return INT64


def _of_floats(name: str, summary: str, parameter: str | None = None) -> AggregateFunction:
    return AggregateFunction(name, _float, summary, parameter, ordered=False, as_float=True)


_LIBRARY: Final = (
    AggregateFunction("count", _count, "the number of events", ordered=False, of_nothing=0),
    AggregateFunction("count_values", _count, "the number of values that are not null", ordered=False, of_nothing=0),
    AggregateFunction("sum", _sum, "the sum; int64 overflow is an error", ordered=False),
    AggregateFunction("avg", _float, "the mean as a float", ordered=False),
    AggregateFunction("min", _same, "the least value", ordered=False),
    AggregateFunction("max", _same, "the greatest value; NaN is above all numbers", ordered=False),
    _of_floats("stdev_samp", "standard deviation as floats, divided by n - 1; null for one value"),
    _of_floats("stdev_pop", "standard deviation as floats, divided by n"),
    _of_floats("var_samp", "variance as floats, divided by n - 1; null for one value"),
    _of_floats("var_pop", "variance as floats, divided by n"),
    AggregateFunction("first", _same, "the first value in the order of le, re, payload"),
    AggregateFunction("last", _same, "the last value in the order of le, re, payload"),
    _of_floats("median", "the middle value as a float, interpolated"),
    _of_floats("percentile", "the value at rank p as a float, interpolated linearly", parameter="p"),
    AggregateFunction("count_distinct", _count, "the number of different values", ordered=False, of_nothing=0),
)
AGGREGATES: Final[dict[str, AggregateFunction]] = {function.name: function for function in _LIBRARY}
