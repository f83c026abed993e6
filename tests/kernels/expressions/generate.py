"""Random well-typed expressions over every function, and random columns with the values where arithmetic is hard.

Nothing is kept safe here: what can overflow or fail to convert does, because errors are compared too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Schema, Type, decimal
from streamproof.plan.expr import INT64_MAX, INT64_MIN, Apply, Call, Case, Cast, Col, Expr, Lit
from streamproof.plan.functions import TIME_PARTS
from streamproof.plan.modules import Registry, udf
from streamproof.plan.typing import Scope
from streamproof.workbench.draw.choices import Choices

DECIMALS = (decimal(3, 1), decimal(10, 2), decimal(19, 0), decimal(38, 10), decimal(38, 38), decimal(9, 9))
VALUES: dict[str, tuple[Any, ...]] = {
    "int64": (
        0, 1, -1, 2, 3, -3, 7, -10, 10, 45, -45, 100, 2**53 + 1, -(2**53) - 1, 10**18, 5 * 10**18, 2**62, -(2**62),
        2**62 - 1, 2**62 + 1, 3037000500, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1_714_564_800,
    ),
    "float64": (
        0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 2.675, 1e-5, 0.0001, 123456.789, 1e15, 1e15 + 0.5, 1e16, 1e22,
        2.0**53, 9007199254740993.0, -1e-7, 5e-324, 1.7976931348623157e308, 2.0**63, -(2.0**63), 9.3e18, 4.75e37, 1e38,
        3.0, -3.0, float("nan"), float("inf"), float("-inf"),
    ),
    "string": (
        "", "a", "A", "b", " a ", "ab", "aab", "é", "Éa", "日本", "🎉x", "a\0b", "\n", "%", "_", "a_b", "\\", "a\\%",
        "1", "-7", "+1", " 12 ", "007", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1.5",
        "1e3", "1E-2", ".5", "5.", ".", "1e400", "nan", "NaN", "-inf", "Infinity", "0x1F", "1_000", "0.05", "99.95",
        "true", "FALSE", "t", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "0000-01-01", "2024-5-1",
        "2024-05-01T12:00:00Z", "2024-05-01 12:00:00.5+02:00", "2024-05-01T12:00:00", "0001-01-01T00:00:00+01:00",
        "2024-05-01T12:00Z", "2024-05-01T24:00:00Z", "1969-12-31T23:59:59.999999-0530",
    ),
    "bool": (True, False),
    "date": (date(1970, 1, 1), date(2024, 2, 29), date(1969, 12, 31), date.min, date.max, date(1900, 3, 1)),
    "timestamp": (
        datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC), datetime(2024, 5, 1, 12, tzinfo=UTC), datetime(2000, 1, 1, 0, 0, 0, 1, UTC),
    ),
    "decimal": ("0", "1", "-1", "5", "-15", "25", "99", "999", "-12345", "1" * 19, "9" * 38, "-" + "9" * 38, "5" * 38),
}  # fmt: skip


@udf("halved", returns="float64", takes=["float64"])
def halved(x: float) -> float:
    return x / 2


@udf("initial", returns="string", passes_null=True)
def initial(text: str | None) -> str | None:
    return "nothing" if text is None else text[:1] or None


@udf("unlucky", returns="int64")
def unlucky(x: int, y: int) -> int:
    if x == 7:
        raise ValueError("seven")
    return (x + y) % 10


REGISTRY = Registry([halved, initial, unlucky])
COLUMNS: dict[str, Type] = {
    "i": INT64, "j": INT64, "f": FLOAT64, "g": FLOAT64, "s": STRING, "t": STRING, "b": BOOL, "c": BOOL, "d": DATE,
    "m": TIMESTAMP, "n": NULL, **{f"x{n}": kind for n, kind in enumerate(DECIMALS)},
}  # fmt: skip
SCOPE = Scope.one(Schema.of(COLUMNS, unit="ns"), times=("le", "re"), registry=REGISTRY)


def value(choices: Choices, kind: Type) -> Any:
    """A value of a type, sometimes null."""
    if kind == NULL or choices.chance(12):
        return None
    picked = choices.pick(VALUES[kind.kind])
    if kind.kind != "decimal":
        return _varied(choices, picked, kind)
    digits = picked.lstrip("-")[: kind.precision]
    return Decimal(("-" if picked.startswith("-") else "") + digits).scaleb(-kind.scale, Context(prec=100))


def _varied(choices: Choices, picked: Any, kind: Type) -> Any:
    if not choices.chance(40):
        return picked
    match kind.kind:
        case "int64":
            return choices.integer(-1000, 1000)
        case "float64":
            return choices.integer(-(10**6), 10**6) / 10 ** choices.integer(0, 6)
        case "string":
            return picked + choices.pick(VALUES["string"][:18])
        case "timestamp":
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=choices.integer(-(10**9), 10**10))
    return picked


ANY = ("int64", "float64", "string", "bool", "date", "timestamp", "decimal")
NUMBERS = ("int64", "float64", "decimal")
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    # the argument kinds of each function by the kind of its result; # is any number, * any kind, the same for all
    "int64": (
        *((fn, "int64 int64") for fn in ("add", "sub", "mul", "floordiv", "mod", "round")),
        *((fn, "int64") for fn in ("neg", "abs", "round", "floor", "ceil")),
        ("sign", "#"), ("length", "string"), *((fn, "timestamp") for fn in TIME_PARTS),
        *((fn, "date") for fn in TIME_PARTS), *((fn, "int64") for fn in TIME_PARTS),
    ),
    "float64": (
        *((fn, "float64 float64") for fn in ("add", "sub", "mul", "floordiv", "mod")),
        *((fn, "int64 float64") for fn in ("add", "sub", "mul", "floordiv", "mod")),
        ("add", "decimal float64"), ("mul", "float64 decimal"),
        *((fn, "float64") for fn in ("neg", "abs", "round", "floor", "ceil")), ("div", "# #"), ("power", "# #"),
        *((fn, "#") for fn in ("sqrt", "ln", "log10", "exp")), ("round", "float64 digits"), ("div", "int64 int64"),
    ),
    "decimal": (
        *((fn, "decimal decimal") for fn in ("add", "sub", "mul")), ("add", "decimal int64"), ("mul", "int64 decimal"),
        *((fn, "decimal") for fn in ("neg", "abs", "round", "floor", "ceil")),
    ),
    "string": (
        ("concat", "string string"), ("concat", "string string string"), ("substr", "string int64"),
        ("substr", "string int64 int64"), ("replace", "string string string"), ("substr", "string digits digits"),
        *((fn, "string") for fn in ("lower", "upper", "trim", "ltrim", "rtrim")),
    ),
    "bool": (
        *((fn, "* *") for fn in ("eq", "ne", "lt", "lte", "gt", "gte", "same")),
        *((fn, "# #") for fn in ("eq", "ne", "lt", "lte", "gt", "gte", "same")),
        ("in", "* * *"), ("in", "* * * *"), ("in", "# # #"), ("is_null", "*"), ("and", "bool bool"),
        ("or", "bool bool"), ("not", "bool"),
        *((fn, "string string") for fn in ("contains", "starts_with", "ends_with", "like")),
    ),
    "date": (),
    "timestamp": (("instant", "int64"), ("instant", "int64 rate")),
}  # fmt: skip
CASTS: dict[str, tuple[str, ...]] = {
    "int64": ("float64", "decimal", "string", "bool"),
    "float64": ("int64", "decimal", "string", "bool"),
    "decimal": ("int64", "float64", "decimal", "string"),
    "string": ("int64", "float64", "decimal", "bool", "date", "timestamp"),
    "bool": ("int64", "float64", "string"),
    "date": ("timestamp", "string"),
    "timestamp": ("date", "string"),
}
USER = {"float64": ("halved", "float64"), "string": ("initial", "string"), "int64": ("unlucky", "int64 int64")}


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes expressions of a wanted kind. Decimals come in any precision; a type that cannot be is tried again."""

    choices: Choices

    def of(self, kind: str, depth: int) -> Expr:
        if kind == "digits":
            return self._of_few(range(-4, 13))
        if kind == "rate":
            return self._of_few((1, 1000, 10**6, 10**9, 7))
        if depth <= 0 or self.choices.chance(15):
            return self._leaf(kind)
        match self.choices.pick(("call", "call", "call", "call", "choice", "cast", "user")):
            case "call" if RULES[kind]:
                return self._call(kind, depth - 1)
            case "cast":
                return self._cast(kind, depth - 1)
            case "user" if kind in USER:
                fn, kinds = USER[kind]
                return Apply(fn, tuple(self.of(arg, depth - 1) for arg in kinds.split()))
        return self._choice(kind, depth - 1)

    def _of_few(self, options: Any) -> Expr:
        if self.choices.chance(30):
            return Call("mod", (Col("j"), Lit(5, INT64))) if 0 in options else Lit(1000, INT64)
        return Lit(self.choices.pick(tuple(options)), INT64)

    def _leaf(self, kind: str) -> Expr:
        names = [name for name, column in COLUMNS.items() if column.kind == kind]
        if kind == "int64":
            names += ["le", "re"]
        if names and self.choices.chance(75):
            return Col(self.choices.pick(names))
        if self.choices.chance(10):
            return self.choices.pick((Lit(None, NULL), Col("n")))
        to = self._type(kind)
        return Lit(value(self.choices, to), to)

    def _type(self, kind: str) -> Type:
        return self.choices.pick(DECIMALS) if kind == "decimal" else Type(kind)  # type: ignore[arg-type]

    def _call(self, kind: str, depth: int) -> Expr:
        fn, kinds = self.choices.pick(RULES[kind])
        shared = self.choices.pick(ANY)
        named = {"#": lambda: self.choices.pick(NUMBERS), "*": lambda: shared}
        return Call(fn, tuple(self.of(named.get(arg, lambda arg=arg: arg)(), depth) for arg in kinds.split()))

    def _cast(self, kind: str, depth: int) -> Expr:
        sources = [source for source, targets in CASTS.items() if kind in targets]
        source = self.choices.pick(sources)
        return Cast(self.of(source, depth), self._type(kind), self.choices.chance(35))

    def _choice(self, kind: str, depth: int) -> Expr:
        values = [self.of(kind, depth) for _ in range(self.choices.integer(1, 3))]
        fn = self.choices.pick(("case", "case", "coalesce", "least", "greatest", "nullif"))
        if fn == "case":
            branches = tuple((self.of("bool", depth), each) for each in values)
            return Case(branches, self.of(kind, depth))
        return Call(fn, (values[0], self.of(kind, depth)) if fn == "nullif" else tuple(values))
