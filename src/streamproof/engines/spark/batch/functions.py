"""Built-in functions as Spark columns, each with the one meaning it has on every engine.

Spark runs in ANSI mode here, so that whole numbers and decimals raise on overflow by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Final, TypeAlias

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import failure
from streamproof.engines.spark.batch.relation import Value, bound, convert, let, long
from streamproof.engines.spark.rows import sql_type
from streamproof.events.schema import FLOAT64, INT64, STRING, TIMESTAMP, Type
from streamproof.events.time import BEGINNING, END_SECOND, FIRST_SECOND, FOREVER
from streamproof.plan.case_mapping import case_pairs
from streamproof.plan.expr import INT64_MAX, INT64_MIN
from streamproof.plan.functions import common_type
from streamproof.plan.limits import LONGEST_TEXT, too_long_text
from streamproof.thresholds import TEXTS_MEASURED

if TYPE_CHECKING:
    from pyspark.sql import Column

Rule: TypeAlias = "Callable[[Sequence[Value], Type], Column]"
"""From typed arguments and the type of the result to a column."""

_WIDE: Final = "decimal(38,0)"
_LONGEST: Final = 2**31 - 1
_ESCAPE: Final = "\\"


def _one(function: Callable[[Column], Column]) -> Rule:
    return lambda args, result: function(args[0].column)


def _two(function: Callable[[Column, Column], Column]) -> Rule:
    return lambda args, result: function(args[0].column, args[1].column)


def _exact(function: Callable[[Column, Column], Column]) -> Rule:
    """Arithmetic that raises on overflow; decimals come in the type of the result."""

    def rule(args: Sequence[Value], result: Type) -> Column:
        found = function(args[0].column, args[1].column)
        return found.cast(sql_type(result)) if result.kind == "decimal" else found

    return rule


def _by_type(floats: Rule, others: Rule) -> Rule:
    return lambda args, result: (floats if result == FLOAT64 else others)(args, result)


def float_floor(x: Column) -> Column:
    """The greatest whole float not above; Spark's own floor gives a bigint."""
    return bound(f.rint(x), lambda near: f.when(near > x, near - 1.0).otherwise(near))


def _floordiv_float(args: Sequence[Value], result: Type) -> Column:
    return bound(f.try_divide(args[0].column, args[1].column), float_floor)


def _floordiv_whole(args: Sequence[Value], result: Type) -> Column:
    def body(a: Column, b: Column) -> Column:
        down = (f.try_mod(a, b) != 0) & ((a < 0) != (b < 0))
        return f.when(b == 0, None).otherwise(f.call_function("div", a, b) - f.when(down, long(1)).otherwise(long(0)))

    return let(args[0], lambda a: let(args[1], lambda b: body(a, b)))


def _one_of(args: Sequence[Value], result: Type) -> Column:
    return let(args[0], lambda a: reduce(lambda x, y: x | y, [a == other.column for other in args[1:]]))


def _nullif(args: Sequence[Value], result: Type) -> Column:
    """Compared in the common type; the value keeps its own."""
    first, second = args
    kind = common_type([first.type, second.type])
    assert kind is not None
    other = convert(second, kind).column
    return let(first, lambda a: f.when(convert(replace(first, column=a), kind).column == other, None).otherwise(a))


def _extreme(function: Callable[..., Column]) -> Rule:
    return lambda args, result: function(*(arg.column for arg in args)) if len(args) > 1 else args[0].column


def _sign(args: Sequence[Value], result: Type) -> Column:
    def body(a: Column) -> Column:
        above = (a > 0) & ~f.isnan(a) if args[0].type == FLOAT64 else a > 0
        return f.when(a.isNull(), None).when(above, long(1)).when(a < 0, long(-1)).otherwise(long(0))

    return let(args[0], body)


# --- rounding ---------------------------------------------------------------------------------------------------------


def _whole_number(floats: Callable[[Column], Column], decimals: Callable[[Column], Column]) -> Rule:
    def rule(args: Sequence[Value], result: Type) -> Column:
        if result == INT64:
            return args[0].column
        if result == FLOAT64:
            return let(args[0], floats)
        return decimals(args[0].column).cast(sql_type(result))

    return rule


def _float_ceil(x: Column) -> Column:
    return bound(f.rint(x), lambda near: f.when(near < x, near + 1.0).otherwise(near))


def _float_round(x: Column) -> Column:
    """Halves away from zero; `rint` takes them to even."""
    far = bound(f.rint(x), lambda near: f.when(f.abs(x - near) == 0.5, x + f.signum(x) * 0.5).otherwise(near))
    return f.when(_finite(x), far).otherwise(x)


def _round(args: Sequence[Value], result: Type) -> Column:
    if len(args) == 1:
        return _whole_number(_float_round, lambda d: f.round(d, 0))(args, result)
    body = _round_whole if result == INT64 else _round_float
    return let(args[0], lambda a: let(args[1], lambda n: body(a, n)))


def _round_whole(a: Column, n: Column) -> Column:
    """In decimals, where nothing overflows before the result does."""
    powers = f.array(*(f.lit(Decimal(10**k)).cast(_WIDE) for k in range(1, 20)))
    unit = f.get(powers, (-n - 1).cast("int"))
    half = f.get(f.array(*(f.lit(Decimal(10**k // 2)).cast(_WIDE) for k in range(1, 20))), (-n - 1).cast("int"))
    size = f.abs(a.cast(_WIDE))
    near = f.call_function("div", size + half, unit).cast("decimal(19,0)") * unit.cast("decimal(20,0)")
    signed = f.when(a < 0, -near).otherwise(near).cast("long")
    return f.when(a.isNull() | n.isNull(), None).when(n >= 0, a).when(n < -19, long(0)).otherwise(signed)


def _round_float(a: Column, n: Column) -> Column:
    up, down = f.power(f.lit(10.0), n), f.power(f.lit(10.0), -n)
    fine = bound(a * up, lambda scaled: f.when(_finite(scaled), _float_round(scaled) / up).otherwise(a))
    coarse = bound(a / down, lambda scaled: _float_round(scaled) * down)
    return (
        f.when(n.isNull(), None).when(~_finite(a) | (n > 308), a).when(n < -308, a * 0.0)
        .when(n >= 0, fine).otherwise(coarse)
    )  # fmt: skip


def _finite(x: Column) -> Column:
    return (f.abs(x) < float("inf")) & ~f.isnan(x)


def _power(args: Sequence[Value], result: Type) -> Column:
    def body(a: Column, b: Column) -> Column:
        unreal = ((a < 0) & _finite(b) & (f.rint(b) != b)) | ((a == 0) & (b < 0))
        one = (a == 1) | (b == 0) | ((a == -1) & (f.abs(b) == float("inf")))
        return f.when(a.isNull() | b.isNull() | unreal, None).when(one, f.lit(1.0)).otherwise(f.power(a, b))

    return let(args[0], lambda a: let(args[1], lambda b: body(a, b)))


def _sqrt(args: Sequence[Value], result: Type) -> Column:
    return let(args[0], lambda a: f.when(a >= 0, f.sqrt(a)))


# --- time -------------------------------------------------------------------------------------------------------------


def _instant(args: Sequence[Value], result: Type) -> Column:
    """Ticks as microseconds, rounded down; the infinities are no instants, and there are none beyond year 9999."""
    rate = args[1].literal
    assert isinstance(rate, int)
    first, end = (max(INT64_MIN, min(INT64_MAX, second * rate)) for second in (FIRST_SECOND, END_SECOND))

    def micros(ticks: Column) -> Column:
        return ticks * long(10**6 // rate) if rate <= 10**6 else floor_by(ticks, rate // 10**6)

    def body(t: Column) -> Column:
        what = f.concat(t.cast("string"), f.lit(f" does not fit into {TIMESTAMP}"))
        fix = "use a time between the years 1 and 9999"
        wrong = failure(what, name="overflow", fix=fix, kind=TIMESTAMP)
        return (
            f.when(t.isin(FOREVER, BEGINNING), None).when((t < first) | (t >= end), wrong)
            .otherwise(f.timestamp_micros(micros(t)))
        )  # fmt: skip

    return let(args[0], body)


def floor_by(x: Column, by: int) -> Column:
    """A bigint divided by a positive constant, rounded down."""
    return f.call_function("div", x - f.pmod(x, long(by)), long(by))


def _part(function: Callable[[Column], Column]) -> Rule:
    return lambda args, result: function(args[0].column).cast("long")


def _clock(function: Callable[[Column], Column]) -> Rule:
    def rule(args: Sequence[Value], result: Type) -> Column:
        days = f.when(args[0].column.isNotNull(), long(0))
        return days if args[0].type.kind == "date" else function(args[0].column).cast("long")

    return rule


def _epoch(args: Sequence[Value], result: Type) -> Column:
    if args[0].type.kind == "date":
        return f.unix_date(args[0].column).cast("long") * long(86_400)
    return f.unix_seconds(args[0].column)


# --- text ------------------------------------------------------------------------------------------------------------


def _letters(args: Sequence[Value], ascii_only: Callable[[Column], Column], *, small: bool) -> Column:
    """ASCII by Spark; the rest letter by letter, where Spark knows languages and context."""
    source, target = case_pairs(lower=small)

    def body(a: Column) -> Column:
        plain = f.octet_length(a) == f.char_length(a)
        return f.when(plain, ascii_only(a)).otherwise(f.translate(a, source, target))

    return let(args[0], body)


def _lower(args: Sequence[Value], result: Type) -> Column:
    return _letters(args, f.lower, small=True)


def _upper(args: Sequence[Value], result: Type) -> Column:
    return _letters(args, f.upper, small=False)


def _concat(args: Sequence[Value], result: Type) -> Column:
    """Texts in a row, if they are no longer together than a text may be."""
    text = f.concat(*(arg.column for arg in args))
    if len(args) <= TEXTS_MEASURED.now and all(arg.atom for arg in args):
        return _limited(reduce(lambda a, b: a + b, (_size(arg.column) for arg in args)), text)
    return bound(text, lambda made: _limited(_size(made), made))


def _replace(args: Sequence[Value], result: Type) -> Column:
    """What is taken out counts how often it is there."""

    def body(text: Column, old: Column, new: Column) -> Column:
        taken = _size(text) - _size(f.replace(text, old, f.lit("")))
        count = f.when(_size(old) > 0, f.call_function("div", taken, _size(old)))
        return _limited(_size(text) + count * (_size(new) - _size(old)), f.replace(text, old, new))

    text, old, new = args
    return let(text, lambda a: let(old, lambda b: let(new, lambda c: body(a, b, c))))


def _size(text: Column) -> Column:
    return f.octet_length(text).cast("bigint")


def _limited(size: Column, text: Column) -> Column:
    told = too_long_text("{}")
    before, after = told.what.split("{}")
    what = f.concat(f.lit(before), size.cast("string"), f.lit(after))
    failed = failure(what, name="limit_exceeded", fix=str(told.fix), kind=STRING)
    return f.when(size > LONGEST_TEXT, failed).otherwise(text)


def _substr(args: Sequence[Value], result: Type) -> Column:
    """Characters at positions from start to before start + length; there are none before position 1."""
    text, start = args[0].column, args[1]

    def first(s: Column) -> Column:
        return f.greatest(f.least(s, long(_LONGEST)), long(1)).cast("int")

    def cut(s: Column, n: Column) -> Column:
        end = s.cast("decimal(20,0)") + n.cast("decimal(20,0)")
        kept = f.greatest(end - f.greatest(s, long(1)).cast("decimal(20,0)"), f.lit(0).cast("decimal(20,0)"))
        length = f.least(kept, f.lit(_LONGEST).cast("decimal(20,0)")).cast("int")
        return f.when(s.isNotNull() & n.isNotNull(), f.substring(text, first(s), length))

    if args[0].type != STRING:  # null, of no type in particular
        return f.lit(None).cast("string")
    if len(args) == 2:
        return let(start, lambda s: f.when(s.isNotNull(), f.substring(text, first(s), f.lit(_LONGEST))))
    return let(start, lambda s: let(args[2], lambda n: cut(s, n)))


def _like(args: Sequence[Value], result: Type) -> Column:
    text, pattern = args
    if isinstance(pattern.literal, str):
        return f.like(text.column, f.lit(plain_pattern(pattern.literal)))
    return f.like(text.column, let(pattern, _plain_column))


def plain_pattern(pattern: str) -> str:
    r"""A pattern in which \ stands only before %, _ and \, as Spark demands; elsewhere it escapes what needs none.

    >>> print(plain_pattern(r"50\%\a"), plain_pattern("a" + chr(92)))
    50\%a a\\
    """
    made, rest = "", pattern
    while rest:
        if rest[0] != _ESCAPE:
            made, rest = made + rest[0], rest[1:]
        elif len(rest) == 1:
            made, rest = made + _ESCAPE * 2, ""
        else:
            made, rest = made + (rest[:2] if rest[1] in "%_\\" else rest[1]), rest[2:]
    return made


def _plain_column(pattern: Column) -> Column:
    """The same for patterns that are data."""
    open_end = (f.char_length(pattern) - f.char_length(f.rtrim(pattern, f.lit(_ESCAPE)))) % 2 == 1
    closed = f.when(open_end, f.concat(pattern, f.lit(_ESCAPE))).otherwise(pattern)
    return f.regexp_replace(closed, f.lit(r"(?s)(\\[%_\\])|\\([^%_\\])"), f.lit("$1$2"))


FUNCTIONS: Final[dict[str, Rule]] = {
    "add": _exact(lambda a, b: a + b), "sub": _exact(lambda a, b: a - b), "mul": _exact(lambda a, b: a * b),
    "div": _two(f.try_divide), "floordiv": _by_type(_floordiv_float, _floordiv_whole), "mod": _two(f.try_mod),
    "neg": _one(f.negate), "eq": _two(lambda a, b: a == b), "ne": _two(lambda a, b: a != b),
    "lt": _two(lambda a, b: a < b), "lte": _two(lambda a, b: a <= b), "gt": _two(lambda a, b: a > b),
    "gte": _two(lambda a, b: a >= b), "same": _two(lambda a, b: a.eqNullSafe(b)), "in": _one_of,
    "is_null": _one(f.isnull), "and": _two(lambda a, b: a & b), "or": _two(lambda a, b: a | b),
    "not": _one(lambda a: ~a), "coalesce": lambda args, result: f.coalesce(*(arg.column for arg in args)),
    "nullif": _nullif, "least": _extreme(f.least), "greatest": _extreme(f.greatest), "abs": _one(f.abs), "sign": _sign,
    "round": _round, "floor": _whole_number(float_floor, f.floor), "ceil": _whole_number(_float_ceil, f.ceil),
    "sqrt": _sqrt, "ln": _one(f.ln), "log10": _one(f.log10), "exp": _one(f.exp), "power": _power,
    "concat": _concat,
    "lower": _lower, "upper": _upper, "trim": _one(f.trim), "ltrim": _one(f.ltrim), "rtrim": _one(f.rtrim),
    "substr": _substr, "length": lambda args, result: f.char_length(args[0].column).cast("long"),
    "replace": _replace,
    "contains": _two(f.contains), "starts_with": _two(f.startswith), "ends_with": _two(f.endswith), "like": _like,
    "instant": _instant, "year": _part(f.year), "month": _part(f.month), "day": _part(f.dayofmonth),
    "hour": _clock(f.hour), "minute": _clock(f.minute), "second": _clock(f.second),
    "day_of_week": lambda args, result: (f.weekday(args[0].column) + 1).cast("long"),
    "day_of_year": _part(f.dayofyear), "epoch": _epoch,
}  # fmt: skip
