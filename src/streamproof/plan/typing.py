"""The types of expressions, and binding: what an expression reads, resolved against what is there.

>>> scope = Scope.one(Schema.of({"v": "int64"}, unit="s"))
>>> type_of(Call("div", (Col("v"), Lit(2, INT64))), scope)
Type('float64')
>>> bind(Call("hour", (Col("le"),)), scope).args[0].fn
'instant'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from streamproof.errors import Gathering, PlanError, StreamproofError, did_you_mean, together
from streamproof.events.schema import BOOL, INT64, NULL, OWN_PREFIX, Schema, Type
from streamproof.events.time import TICKS_PER_SECOND, Unit
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.expr import LIFE_END, LIFE_START, Apply, Call, Case, Cast, Col, Expr, Lit, Side
from streamproof.plan.functions import FUNCTIONS, TIME_PARTS, as_decimal, common_type, result_type
from streamproof.plan.modules import Module, Registry

_TIMES: Final = {
    name: time
    for time in (LIFE_START, LIFE_END)
    for name in (time, time[1:], OWN_PREFIX + time[1:])  # the last is for those whose payload has the second
}


@dataclass(frozen=True, slots=True)
class Scope:
    """What an expression may read: columns of one input, or of two with sides, and times where the node admits them."""

    schemas: tuple[tuple[Side | None, Schema], ...]
    times: tuple[str, ...]
    registry: Registry | None = None

    @staticmethod
    def one(schema: Schema, *, times: tuple[str, ...] = ("le",), registry: Registry | None = None) -> Scope:
        return Scope(((None, schema),), times, registry)

    @staticmethod
    def two(left: Schema, right: Schema, *, registry: Registry | None = None) -> Scope:
        return Scope((("l", left), ("r", right)), ("le",), registry)

    @property
    def unit(self) -> Unit | None:
        return self.schemas[0][1].unit

    def type_of(self, column: Col) -> Type:
        schema = self._schema(column)
        if self._time(column, schema) is not None:
            return INT64
        return schema[column.name]

    def bound(self, column: Col) -> Col:
        """The column; if it is a time, under the name that no payload column has."""
        time = self._time(column, self._schema(column))
        return column if time is None else Col(time, column.side)

    def _schema(self, column: Col) -> Schema:
        for side, schema in self.schemas:
            if side == column.side:
                return schema
        raise self._wrong_side(column)

    def _time(self, column: Col, schema: Schema) -> str | None:
        """Which time the column is; a payload column hides one of its name."""
        time = _TIMES.get(column.name)
        if time is None or column.name in schema:
            return None
        if time[1:] in self.times:
            return time
        if time == LIFE_END:
            raise PlanError(
                "only alter_duration may read re: elsewhere an end can still change after the result was given",
                fix="use alter_duration, or point_at_end to make ends into starts",
                name="unknown_column",
            )
        return None

    def _wrong_side(self, column: Col) -> PlanError:
        if column.side is None:
            fix = f"two inputs are in scope: write l.{column.name} or r.{column.name}"
            return PlanError(f'the column "{column.name}" needs a side', fix=fix, name="unknown_column")
        names = [f"{side}.{n}" if side else n for side, schema in self.schemas for n in schema.names]
        what = f'unknown column "{column.side}.{column.name}"'
        return PlanError(what, fix=did_you_mean(column.name, names), name="unknown_column")

    def udf(self, name: str) -> Module:
        if self.registry is None or not any(m.name == name.partition("@")[0] for m in self.registry):
            known = [*FUNCTIONS, *(m.name for m in self.registry or () if m.kind == "udf")]
            raise PlanError(f'unknown function "{name}"', fix=did_you_mean(name, known), name="unknown_module")
        return self.registry.find(name, "udf")


def type_of(expr: Expr, scope: Scope) -> Type:
    """The type of an expression, or the error that says what is wrong with it."""
    return _bound(expr, scope)[1]


def bind(expr: Expr, scope: Scope, to: Type | None = None) -> Expr:
    """The expression with everything explicit that its text leaves open; as a value of a wider type if one is given.

    Ticks become instants by the stream's unit, and every argument is cast to the type in which it is computed, so that
    an engine need not know which numbers meet: only `nullif`, whose result has the type of its first argument,
    compares two types by itself. What has no type but null keeps none.

    >>> from streamproof.events.schema import FLOAT64
    >>> bind(Call("lt", (Col("v"), Lit(0.5, FLOAT64))), Scope.one(Schema.of({"v": "int64"}))).args[0]
    Cast(arg=Col(name='v', side=None), to=Type('float64'), strict=False)

    Laws: ``bind(bind(e)) == bind(e)``, ``type_of(bind(e)) == type_of(e)``.
    """
    bound, kind = _bound(expr, scope)
    return bound if to is None else widened(bound, kind, to)


def widened(expr: Expr, kind: Type, to: Type) -> Expr:
    """An expression of one type as one of another that holds its values, as far as there is room for digits."""
    return expr if kind == to else Cast(expr, to, strict=not _holds(to, kind), implied=True)


def _holds(wide: Type, kind: Type) -> bool:
    """Whether every value of a type has one in the wider type: not all int64 and decimals fit into 38 digits."""
    if wide.kind != "decimal" or kind == NULL:
        return True
    exact = as_decimal(kind)
    return wide.precision - wide.scale >= exact.precision - exact.scale


def _bound(expr: Expr, scope: Scope) -> tuple[Expr, Type]:
    """The expression with all casts, and its type."""
    match expr:
        case Col():
            return scope.bound(expr), scope.type_of(expr)
        case Lit(type=kind):
            return expr, kind
        case Call(fn, args):
            return _call(fn, _all_bound(args, scope), scope)
        case Cast(arg, to):
            inner, kind = _bound(arg, scope)
            return replace(expr, arg=inner), _cast(kind, to)
        case Case(branches, default):
            with Gathering() as parts:
                whens = [
                    parts.tried(partial(require, when, scope, BOOL, "the condition of a case")) for when, _ in branches
                ]
                values = _all_bound([*(value for _, value in branches), default], scope)
            return _case(whens, values)
        case Apply(fn, args):
            with Gathering() as parts:
                module = parts.tried(lambda: scope.udf(fn))
                given = _all_bound(args, scope)
            assert module is not None  # else its error was told
            return _apply(expr, module, given)


def _all_bound(exprs: Iterable[Expr], scope: Scope) -> list[tuple[Expr, Type]]:
    """Several expressions, or all errors; in few calls, because expressions may be nested deeply."""
    bound, errors = list[tuple[Expr, Type]](), list[StreamproofError]()
    for expr in exprs:
        try:
            bound.append(_bound(expr, scope))
        except StreamproofError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return bound


def _call(fn: str, parts: list[tuple[Expr, Type]], scope: Scope) -> tuple[Expr, Type]:
    args, kinds = tuple(arg for arg, _ in parts), tuple(kind for _, kind in parts)
    result = result_type(fn, kinds)
    if fn == "instant" and len(args) == 1:
        return _instant(args[0], kinds[0], scope), result
    if fn in TIME_PARTS and kinds[0] == INT64:
        return Call(fn, (_instant(args[0], INT64, scope),)), result
    if result == NULL:
        return Call(fn, args), NULL
    return Call(fn, tuple(map(widened, args, kinds, FUNCTIONS[fn].widens(kinds)))), result


def _instant(ticks: Expr, kind: Type, scope: Scope) -> Expr:
    if scope.unit is None:
        raise PlanError(
            "ticks without a unit have no year, hour or second",
            fix='declare the unit of the source: source("S", unit="us")',
            name="type_mismatch",
        )
    return Call("instant", (widened(ticks, kind, INT64), Lit(TICKS_PER_SECOND[scope.unit], INT64)))


def _case(whens: list[Expr | None], values: list[tuple[Expr, Type]]) -> tuple[Expr, Type]:
    result = _common(kind for _, kind in values)
    *thens, default = (widened(value, kind, result) for value, kind in values)
    conditions = (when for when in whens if when is not None)  # if one had failed, its error would have been told
    return Case(tuple(zip(conditions, thens, strict=True)), default), result


def _common(types: Iterable[Type]) -> Type:
    kinds = list(types)
    joined = common_type(kinds)
    if joined is None:
        shown = ", ".join(sorted({str(kind) for kind in kinds}))
        raise PlanError(f"the branches of a case have the types {shown}", fix="cast them to one", name="type_mismatch")
    return joined


def _apply(call: Apply, module: Module, parts: list[tuple[Expr, Type]]) -> tuple[Expr, Type]:
    types = tuple(kind for _, kind in parts)
    takes = types if module.takes is None else module.takes
    if len(types) != len(takes) or any(common_type(pair) != pair[1] for pair in zip(types, takes, strict=True)):
        wanted, got = (", ".join(map(str, kinds)) for kinds in (takes, types))
        raise PlanError(f"{module} takes ({wanted}), got ({got})", fix="cast the arguments", name="type_mismatch")
    result = module.result_type(Schema(tuple((f"arg{n}", kind) for n, kind in enumerate(takes))))
    if isinstance(result, Schema):
        raise PlanError(f"{module} gives rows, not a value", name="type_mismatch")
    return Apply(call.fn, tuple(widened(arg, kind, to) for (arg, kind), to in zip(parts, takes, strict=True))), result


CASTS: Final[dict[str, tuple[str, ...]]] = {
    "int64": ("float64", "decimal", "string", "bool"),
    "float64": ("int64", "decimal", "string", "bool"),
    "decimal": ("int64", "float64", "decimal", "string"),
    "string": ("int64", "float64", "decimal", "bool", "date", "timestamp"),
    "bool": ("int64", "float64", "string"),
    "date": ("timestamp", "string"),
    "timestamp": ("date", "string"),
}
"""The kinds that values of each kind can be cast to."""


def _cast(source: Type, to: Type) -> Type:
    if source in (NULL, to) or to.kind in CASTS.get(source.kind, ()):
        return to
    raise PlanError(f"{source} cannot be cast to {to}", fix="cast to string first", name="type_mismatch")


def require(expr: Expr, scope: Scope, wanted: Type, what: str) -> Expr:
    """The expression, bound as one of a type; another type is refused. Null stands in for every type."""
    bound, found = _bound(expr, scope)
    if found not in (wanted, NULL):
        raise PlanError(
            f"{what} must be {wanted}, not {found}", fix=f"compare or cast it to {wanted}", name="type_mismatch"
        )
    return widened(bound, found, wanted)


def bound_aggregate(agg: Aggregate, scope: Scope) -> Aggregate:
    """Returns the aggregate with its argument bound, as engines compute it."""
    return agg if agg.arg is None else replace(agg, arg=bind(agg.arg, scope)).computed()


def aggregate_type(agg: Aggregate, scope: Scope) -> Type:
    """Returns the type of an aggregate's result."""
    arg = INT64 if agg.arg is None else type_of(agg.arg, scope)
    return AGGREGATES[agg.fn].result(arg, agg.params)
