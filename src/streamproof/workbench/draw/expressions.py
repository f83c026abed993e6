"""Random well-typed expressions over every function, with types that direct the choice.

They never fail: what could overflow is kept small, what could fail to convert is a ``try_cast``. `risky` makes those
that may fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal

from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Type, decimal
from streamproof.plan.expr import INT64_MAX, INT64_MIN, NULL_LITERAL, TRUE, Apply, Call, Case, Cast, Expr, Lit, cast_to
from streamproof.plan.functions import FUNCTIONS, TIME_PARTS, common_type
from streamproof.workbench.draw.choices import LARGEST, Choices, DrawnColumn, Readable

Made = tuple[Expr, DrawnColumn]
KINDS = ("int64", "bool", "string", "float64", "decimal", "timestamp", "date")
COMPARISONS = ("eq", "ne", "lt", "lte", "gt", "gte", "same")
TEXTS = ("a", "b", "", "A b", " ", "%", "_", "12", "x", "é", "日")
PATTERNS = ("a%", "%b%", "_", "%", "", "x\\%y", "%\\_b%", "a_b%", "%é%")
PRECISE = 15  # decimals of that many digits become floats without a loss


@dataclass(frozen=True, slots=True)
class ExpressionMaker:
    """Makes expressions over the columns in ``reads``."""

    choices: Choices
    reads: Readable

    def any(self, depth: int, *, rough: bool = False) -> Made:
        """An expression of any type, mostly of one that a column has."""
        kinds = [column.type.kind for _, column in self.reads.columns]
        kind = self.choices.pick(kinds) if kinds and self.choices.chance(75) else self.choices.pick(KINDS)
        return self.of(kind, depth, rough=rough)

    def of(self, kind: str, depth: int, *, rough: bool = False) -> Made:
        """An expression of one kind of type."""
        if depth <= 0 or self.choices.chance(25):
            return self._leaf(kind, rough=rough)
        if self.choices.chance(20):
            return self._shared(kind, depth - 1)
        return getattr(self, f"_{kind}")(depth - 1, rough)  # type: ignore[no-any-return]

    def condition(self, depth: int) -> Expr:
        return self.of("bool", depth)[0]

    def guard(self) -> Expr:
        """A condition that cannot fail, so that rewriting may move it; over columns that may be null, often negated."""
        parts = [self._safe() for _ in range(self.choices.integer(1, 2))]
        return parts[0] if len(parts) == 1 else Call(self.choices.pick(("and", "and", "or")), tuple(parts))

    def _safe(self) -> Expr:
        known = [(column, about) for column, about in self.reads.columns if about.type.kind not in ("null", "decimal")]
        if not known:
            return TRUE
        column, about = self.choices.pick(known)
        kind = about.type.kind
        fn = self.choices.pick(("is_null", *COMPARISONS))
        alike = [other for other, known_as in known if known_as.type == about.type]
        other = self.choices.pick(alike) if self.choices.chance(25) else self.constant(kind)[0]
        found: Expr = Call("is_null", (column,)) if fn == "is_null" else Call(fn, (column, other))
        found = column if kind == "bool" and self.choices.chance(40) else found
        return Call("not", (found,)) if self.choices.chance(40) else found

    # --- leaves -------------------------------------------------------------------------------------------------------

    def _leaf(self, kind: str, *, rough: bool) -> Made:
        columns = self.reads.of([kind], rough=rough)
        if columns and self.choices.chance(75):
            return self.choices.pick(columns)
        if self.choices.chance(6):
            to = decimal(10, 2) if kind == "decimal" else Type(kind)  # type: ignore[arg-type]  # a word of Kind
            return Lit(None, to), DrawnColumn(to, size=0)
        return self.constant(kind)

    def constant(self, kind: str) -> Made:
        """A constant; never null."""
        pick = self.choices.pick
        match kind:
            case "int64":
                value = pick((0, 1, 2, 3, -1, 7, -10, 100))
                return Lit(value, INT64), DrawnColumn(INT64, size=abs(value))
            case "float64":
                return Lit(pick((0.0, 1.0, 0.5, -1.5, 2.0, 1e-3, 10.0, -0.0)), FLOAT64), DrawnColumn(FLOAT64)
            case "string":
                return Lit(pick(TEXTS), STRING), DrawnColumn(STRING)
            case "bool":
                return Lit(pick((True, False)), BOOL), DrawnColumn(BOOL)
            case "decimal":
                to = pick((decimal(3, 1), decimal(4, 2), decimal(2, 0)))
                return Lit(Decimal(pick((0, 5, -15, 25, 99))).scaleb(-to.scale), to), DrawnColumn(to)
            case "null":
                return NULL_LITERAL, DrawnColumn(NULL)
            case "date":
                return Lit(pick((date(2024, 5, 1), date(1970, 1, 1), date(2000, 2, 29))), DATE), DrawnColumn(DATE)
        moment = datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC)
        return Lit(pick((moment, datetime(1969, 7, 20, tzinfo=UTC))), TIMESTAMP), DrawnColumn(TIMESTAMP)

    def _null(self, depth: int, rough: bool) -> Made:
        return self._leaf("null", rough=False)

    # --- functions of every type --------------------------------------------------------------------------------------

    def _shared(self, kind: str, depth: int) -> Made:
        """Choices between values of one type."""
        parts = [self.of(kind, depth) for _ in range(self.choices.integer(1, 3))]
        column = _joined([column for _, column in parts])
        args = tuple(expr for expr, _ in parts)
        match self.choices.pick(("coalesce", "least", "greatest", "nullif", "case", "case")):
            case "nullif":
                other = self.of(kind, depth)[0]
                return Call("nullif", (args[0], other)), parts[0][1]
            case "case":
                branches = tuple((self.condition(depth), arg) for arg in args)
                default, more = self.of(kind, depth)
                return Case(branches, default), _joined([column, more])
            case fn:
                return Call(fn, args), column

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _int64(self, depth: int, rough: bool) -> Made:
        makers: tuple[Callable[[int], Made], ...] = (
            self._sum, self._sum, self._product, self._quotient, self._unary_int, self._count_of, self._int_cast,
        )  # fmt: skip
        return self.choices.pick(makers)(depth)

    def _sum(self, depth: int) -> Made:
        (a, x), (b, y) = self.of("int64", depth), self.of("int64", depth)
        if x.size + y.size > LARGEST:
            return self._small(a)
        return Call(self.choices.pick(("add", "sub")), (a, b)), DrawnColumn(INT64, size=x.size + y.size)

    def _product(self, depth: int) -> Made:
        (a, x), (b, y) = self.of("int64", depth), self.of("int64", depth)
        if x.size * y.size > LARGEST:
            return self._small(a)
        return Call("mul", (a, b)), DrawnColumn(INT64, size=x.size * y.size)

    def _small(self, expr: Expr) -> Made:
        return Call("mod", (expr, Lit(100, INT64))), DrawnColumn(INT64, size=99)

    def _quotient(self, depth: int) -> Made:
        (a, x), (b, y) = self.of("int64", depth), self.of("int64", depth)
        fn = self.choices.pick(("floordiv", "mod"))
        return Call(fn, (a, b)), DrawnColumn(INT64, size=x.size if fn == "floordiv" else min(x.size, y.size))

    def _unary_int(self, depth: int) -> Made:
        a, column = self.of("int64", depth)
        if self.choices.chance(10):
            return Apply("clamp", (a,)), DrawnColumn(INT64, size=10)
        fn = self.choices.pick(("neg", "abs", "sign", "round", "floor", "ceil", "round2"))
        if fn == "round2":
            digits = Lit(self.choices.pick((0, 1, 2, -1)), INT64)
            return Call("round", (a, digits)), DrawnColumn(INT64, size=2 * column.size + 10)
        return Call(fn, (a,)), column

    def _count_of(self, depth: int) -> Made:
        if self.choices.chance(50):
            return Call("length", (self.of("string", depth)[0],)), DrawnColumn(INT64, size=10_000)
        ticks = self.reads.unit is not None and self.choices.chance(30)
        moment = self._tick() if ticks else self.of(self.choices.pick(("timestamp", "date")), depth)[0]
        return Call(self.choices.pick(TIME_PARTS), (moment,)), DrawnColumn(INT64, size=10**12)

    def _tick(self) -> Expr:
        """A tick that is an instant for every unit."""
        columns: list[Expr] = [column for column, _ in self.reads.of(["int64"])]
        return Call("mod", (self.choices.pick(columns or [Lit(5, INT64)]), Lit(10**6, INT64)))

    def _int_cast(self, depth: int) -> Made:
        source = self.choices.pick(("bool", "float64", "string", "decimal"))
        made, _ = self.of(source, depth)
        if source == "bool":
            return Cast(made, INT64), DrawnColumn(INT64, size=1)
        return self._small(cast_to(made, INT64, strict=False))

    def _float64(self, depth: int, rough: bool) -> Made:
        pick = self.choices.pick
        if rough and self.choices.chance(30):
            a = self._number(depth, rough=True)[0]
            b = self._number(depth, rough=True)[0]
            fn = pick(("ln", "log10", "exp", "power"))
            return Call(fn, (a, b) if fn == "power" else (a,)), DrawnColumn(FLOAT64, rough=True)
        match pick(("arithmetic", "arithmetic", "div", "unary", "cast", "round", "sqrt")):
            case "arithmetic":
                (a, x), (b, y) = self.of("float64", depth, rough=rough), self._number(depth, rough=rough)
                fns = ("add", "sub", "mul") if x.rough or y.rough else ("add", "sub", "mul", "floordiv", "mod")
                fn = pick([fn for fn in fns if FUNCTIONS[fn].rule((x.type, y.type)) == FLOAT64])
                args = (b, a) if self.choices.chance(30) else (a, b)
                return Call(fn, args), DrawnColumn(FLOAT64, rough=x.rough or y.rough or fn == "mod")
            case "div":
                (a, x), (b, y) = self._number(depth, rough=rough), self._number(depth, rough=rough)
                return Call("div", (a, b)), DrawnColumn(FLOAT64, rough=x.rough or y.rough)
            case "unary":
                a, column = self.of("float64", depth, rough=rough)
                return Apply("halved", (a,)) if self.choices.chance(15) else Call(pick(("neg", "abs")), (a,)), column
            case "cast":
                return self._float_cast(depth)
            case "round":
                return self._float_round(depth)
        return Call("sqrt", (self._number(depth, rough=False)[0],)), DrawnColumn(FLOAT64)

    def _float_round(self, depth: int) -> Made:
        a = self.of("float64", depth)[0]
        if self.choices.chance(40):
            return Call("round", (a, Lit(self.choices.pick((0, 1, 2, -1, 400, -400)), INT64))), DrawnColumn(FLOAT64)
        return Call(self.choices.pick(("round", "floor", "ceil")), (a,)), DrawnColumn(FLOAT64)

    def _float_cast(self, depth: int) -> Made:
        source = self.choices.pick(("int64", "decimal", "bool", "string"))
        made, column = self.of(source, depth)
        if source == "string":
            return cast_to(made, FLOAT64, strict=False), DrawnColumn(FLOAT64)
        return Cast(made, FLOAT64), DrawnColumn(FLOAT64, rough=_loses(column))

    def _number(self, depth: int, *, rough: bool) -> Made:
        """A number of any type that becomes a float the same way everywhere."""
        made, column = self.of(self.choices.pick(("float64", "int64", "decimal")), depth, rough=rough)
        return self.of("float64", 0, rough=rough) if _loses(column) and not rough else (made, column)

    def _decimal(self, depth: int, rough: bool) -> Made:
        pick = self.choices.pick
        match pick(("arithmetic", "arithmetic", "unary", "cast", "rescale")):
            case "arithmetic":
                (a, x), (b, y) = self.of("decimal", depth), self.of(pick(("decimal", "int64")), depth)
                fn = pick(("add", "sub", "mul"))
                result = FUNCTIONS[fn].rule((x.type, y.type))
                if result is None or result.precision > 36:  # it could overflow
                    return a, x
                return Call(fn, (a, b)), DrawnColumn(result)
            case "unary":
                a, x = self.of("decimal", depth)
                fn = pick(("neg", "abs", "round", "floor", "ceil"))
                result = FUNCTIONS[fn].rule((x.type,))
                assert result is not None
                return Call(fn, (a,)), DrawnColumn(result)
            case "cast":
                a, x = self.of(pick(("int64", "string", "float64")), depth)
                to = pick((decimal(30, 3), decimal(5, 1), decimal(12, 0)))
                return cast_to(a, to, strict=False), DrawnColumn(to)
        a, x = self.of("decimal", depth)
        to = pick((decimal(20, 4), decimal(6, 1), decimal(3, 0)))
        return cast_to(a, to, strict=False), DrawnColumn(to)

    # --- text, conditions, times --------------------------------------------------------------------------------------

    def _string(self, depth: int, rough: bool) -> Made:
        def text() -> Expr:
            return self.of("string", depth)[0]

        fn = self.choices.pick(("concat", "lower", "upper", "trim", "ltrim", "rtrim", "substr", "replace", "cast"))
        match fn:
            case "concat":
                return Call(fn, tuple(text() for _ in range(self.choices.integer(1, 3)))), DrawnColumn(STRING)
            case "substr":
                start = Lit(self.choices.pick((1, 2, 3, 0, -1)), INT64)
                length = (Lit(self.choices.pick((1, 2, 0, 100)), INT64),) if self.choices.chance(70) else ()
                return Call(fn, (text(), start, *length)), DrawnColumn(STRING)
            case "replace":
                return Call(fn, (text(), text(), text())), DrawnColumn(STRING)
            case "cast":
                kind = self.choices.pick(("int64", "bool", "decimal", "date", "timestamp", "float64"))
                return Cast(self.of(kind, depth)[0], STRING), DrawnColumn(STRING)
        return Call(fn, (text(),)), DrawnColumn(STRING)

    def _bool(self, depth: int, rough: bool) -> Made:
        makers: tuple[Callable[[int], Expr], ...] = (
            self._comparison, self._comparison, self._comparison, self._logic, self._in, self._test, self._text_test,
        )  # fmt: skip
        return self.choices.pick(makers)(depth), DrawnColumn(BOOL)

    def _comparison(self, depth: int) -> Expr:
        fn = self.choices.pick(COMPARISONS)
        if self.choices.chance(25):
            return Call(fn, (self._number(depth, rough=False)[0], self._number(depth, rough=False)[0]))
        kind = self.any(0)[1].type.kind
        return Call(fn, (self.of(kind, depth)[0], self.of(kind, depth)[0]))

    def _logic(self, depth: int) -> Expr:
        fn = self.choices.pick(("and", "or", "not"))
        return Call(fn, tuple(self.condition(depth) for _ in range(1 if fn == "not" else 2)))

    def _in(self, depth: int) -> Expr:
        kind = self.any(0)[1].type.kind
        return Call("in", tuple(self.of(kind, depth)[0] for _ in range(self.choices.integer(2, 4))))

    def _test(self, depth: int) -> Expr:
        if self.choices.chance(60):
            known = self.choices.chance(15)
            return Apply("is_known", (self.any(depth)[0],)) if known else Call("is_null", (self.any(depth)[0],))
        return Cast(self.of(self.choices.pick(("int64", "float64")), depth)[0], BOOL)

    def _text_test(self, depth: int) -> Expr:
        fn = self.choices.pick(("contains", "starts_with", "ends_with", "like"))
        second = Lit(self.choices.pick(PATTERNS), STRING) if fn == "like" else self.of("string", depth)[0]
        return Call(fn, (self.of("string", depth)[0], second))

    def _timestamp(self, depth: int, rough: bool) -> Made:
        if self.reads.unit is not None and self.choices.chance(50):
            return Call("instant", (self._tick(),)), DrawnColumn(TIMESTAMP)
        source = self.choices.pick(("date", "string"))
        return cast_to(self.of(source, depth)[0], TIMESTAMP, strict=source == "date"), DrawnColumn(TIMESTAMP)

    def _date(self, depth: int, rough: bool) -> Made:
        source = self.choices.pick(("timestamp", "string"))
        return cast_to(self.of(source, depth)[0], DATE, strict=source == "timestamp"), DrawnColumn(DATE)

    # --- expressions that may fail ------------------------------------------------------------------------------------

    def risky(self) -> Made:
        """An expression that overflows or fails to convert for some values."""
        number, real = (self.of(kind, 1)[0] for kind in ("int64", "float64"))
        text = Call("trim", (self.of("string", 1)[0],))  # a constant would be cast when the plan is read
        huge = Lit(self.choices.pick((INT64_MAX, INT64_MIN, 2**62)), INT64)
        exact = self.of("decimal", 1)[0]
        options: tuple[Made, ...] = (
            (Call("add", (number, huge)), DrawnColumn(INT64)),
            (Call("sub", (huge, number)), DrawnColumn(INT64)),
            (Call("mul", (number, huge)), DrawnColumn(INT64)),
            (Call("neg", (Call("nullif", (huge, number)),)), DrawnColumn(INT64)),
            (Call("floordiv", (huge, number)), DrawnColumn(INT64)),
            (Call("mod", (huge, number)), DrawnColumn(INT64)),
            (Call("abs", (Call("coalesce", (huge, number)),)), DrawnColumn(INT64)),
            (Cast(text, INT64), DrawnColumn(INT64)),
            (Cast(text, FLOAT64), DrawnColumn(FLOAT64)),
            (Cast(text, BOOL), DrawnColumn(BOOL)),
            (Cast(text, DATE), DrawnColumn(DATE)),
            (Cast(text, TIMESTAMP), DrawnColumn(TIMESTAMP)),
            (Cast(text, decimal(4, 1)), DrawnColumn(decimal(4, 1))),
            (Cast(real, INT64), DrawnColumn(INT64)),
            (Cast(real, decimal(3, 1)), DrawnColumn(decimal(3, 1))),
            (Cast(number, decimal(2, 1)), DrawnColumn(decimal(2, 1))),
            (Cast(exact, decimal(2, 1)), DrawnColumn(decimal(2, 1))),
            (Cast(exact, INT64), DrawnColumn(INT64)),
        )
        return self.choices.pick(options)


def _joined(columns: list[DrawnColumn]) -> DrawnColumn:
    kind = common_type([column.type for column in columns])
    assert kind is not None
    return DrawnColumn(kind, any(column.rough for column in columns), max(column.size for column in columns))


def _loses(column: DrawnColumn) -> bool:
    """Whether a number of this column becomes a float only nearly."""
    return column.rough or column.type.precision > PRECISE or (column.type == INT64 and column.size > 2**53)
