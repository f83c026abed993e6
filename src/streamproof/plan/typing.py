"""The types of expressions, and binding: what an expression reads, resolved against what is there.

>>> scope = Scope.one(Schema.of({"v": "int64"}, unit="s"))
>>> type_of(Call("div", (Col("v"), Lit(2, INT64))), scope)
Type('float64')
>>> bind(Call("hour", (Col("le"),)), scope).args[0].fn
'instant'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from streamproof.errors import Gathering, PlanError, StreamproofError, did_you_mean, together
from streamproof.events.schema import BOOL, INT64, NULL, OWN_PREFIX, Schema, Type
from streamproof.events.time import TICKS_PER_SECOND, Unit
from streamproof.plan.expr import LIFE_END, LIFE_START, Apply, Call, Case, Cast, Col, Expr, Lit, Side, transform
from streamproof.plan.functions import FUNCTIONS, TIME_PARTS, common_type, result_type
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
    match expr:
        case Col():
            return scope.type_of(expr)
        case Lit(type=kind):
            return kind
        case Call(fn, args):
            return result_type(fn, tuple(_types(args, scope)))
        case Cast(arg, to):
            return _cast(type_of(arg, scope), to)
        case Case(branches, default):
            with Gathering() as parts:
                for condition, _ in branches:
                    parts.tried(partial(require, condition, scope, BOOL, "the condition of a case"))
                values = _types([*(value for _, value in branches), default], scope)
            return _common(values)
        case Apply(fn, args):
            with Gathering() as parts:
                module = parts.tried(lambda: scope.udf(fn))
                types = _types(args, scope)
            assert module is not None  # else its error was told
            return _apply(module, tuple(types))


def _types(exprs: Iterable[Expr], scope: Scope) -> list[Type]:
    """The types of several expressions, or all errors; in few calls, because expressions may be nested deeply."""
    types, errors = list[Type](), list[StreamproofError]()
    for expr in exprs:
        try:
            types.append(type_of(expr, scope))
        except StreamproofError as error:
            errors.append(error)
    if errors:
        raise together(errors)
    return types


def _common(types: Iterable[Type]) -> Type:
    kinds = list(types)
    joined = common_type(kinds)
    if joined is None:
        shown = ", ".join(sorted({str(kind) for kind in kinds}))
        raise PlanError(f"the branches of a case have the types {shown}", fix="cast them to one", name="type_mismatch")
    return joined


def _apply(module: Module, types: tuple[Type, ...]) -> Type:
    if module.takes is not None:
        fits = len(types) == len(module.takes) and all(
            common_type([given, taken]) == taken for given, taken in zip(types, module.takes, strict=True)
        )
        if not fits:
            wanted, got = (", ".join(map(str, kinds)) for kinds in (module.takes, types))
            raise PlanError(f"{module} takes ({wanted}), got ({got})", fix="cast the arguments", name="type_mismatch")
    result = module.result_type(Schema(tuple((f"arg{n}", kind) for n, kind in enumerate(types))))
    if isinstance(result, Schema):
        raise PlanError(f"{module} gives rows, not a value", name="type_mismatch")
    return result


_CASTS: dict[str, tuple[str, ...]] = {
    "int64": ("float64", "decimal", "string", "bool"),
    "float64": ("int64", "decimal", "string", "bool"),
    "decimal": ("int64", "float64", "decimal", "string"),
    "string": ("int64", "float64", "decimal", "bool", "date", "timestamp"),
    "bool": ("int64", "float64", "string"),
    "date": ("timestamp", "string"),
    "timestamp": ("date", "string"),
}


def _cast(source: Type, to: Type) -> Type:
    if source in (NULL, to) or to.kind in _CASTS.get(source.kind, ()):
        return to
    raise PlanError(f"{source} cannot be cast to {to}", fix="cast to string first", name="type_mismatch")


def require(expr: Expr, scope: Scope, wanted: Type, what: str) -> None:
    """Refuse an expression of another type; null stands in for every type."""
    found = type_of(expr, scope)
    if found not in (wanted, NULL):
        raise PlanError(
            f"{what} must be {wanted}, not {found}", fix=f"compare or cast it to {wanted}", name="type_mismatch"
        )


def bind(expr: Expr, scope: Scope) -> Expr:
    """The expression with everything explicit that its text left to the stream: ticks become instants by their unit."""
    type_of(expr, scope)

    def make_explicit(part: Expr) -> Expr:
        if isinstance(part, Col):
            return scope.bound(part)
        if not isinstance(part, Call):
            return part
        if part.fn in TIME_PARTS and type_of(part.args[0], scope) == INT64:
            return Call(part.fn, (_instant(part.args[0], scope),))
        if part.fn == "instant" and len(part.args) == 1:
            return _instant(part.args[0], scope)
        return part

    return transform(expr, make_explicit)


def _instant(ticks: Expr, scope: Scope) -> Expr:
    if scope.unit is None:
        raise PlanError(
            "ticks without a unit have no year, hour or second",
            fix='declare the unit of the source: source("S", unit="us")',
            name="type_mismatch",
        )
    return Call("instant", (ticks, Lit(TICKS_PER_SECOND[scope.unit], INT64)))
