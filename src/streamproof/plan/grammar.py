"""Text into sqlglot's trees, within budgets, and what of a tree is read.

sqlglot knows the SQL of many systems, so its trees hold more than we mean: a clause, a setting of a function, a hint.
Whoever reads a node says which of its arguments it reads; any other that is set is refused by its name.

>>> consumed(condition("a + b"), "this", "expression")
>>> consumed(condition("a between symmetric b and c"), "this", "low", "high")
Traceback (most recent call last):
...
streamproof.plan.grammar.Unread: SYMMETRIC is not supported here
  fix: leave it out
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects import DuckDB

from streamproof.errors import ErrorName, PlanError, StreamproofError, together

MAX_NESTING: Final = 100  # parentheses and brackets within each other
MAX_TYPES: Final = 4  # words of types with parentheses within each other: each level doubles sqlglot's work
MAX_DIGITS: Final = 400  # of a number


class Unread(PlanError):
    """A text that is not read, and the offset of the part that is to blame, where that is known."""

    def __init__(
        self, what: str, *, fix: str | None = None, offset: int | None = None, name: ErrorName | None = None
    ) -> None:
        super().__init__(what, fix=fix, name=name)
        self.offset = offset

    def placed(self, show: Callable[[int | None], str]) -> StreamproofError:
        """The errors for people, in the order of the text: ``show`` says where an offset is."""
        parts = sorted((part for part in (self, *self.others) if isinstance(part, Unread)), key=lambda p: p.offset or 0)
        once = {(part.what, part.offset): part for part in parts}
        told = together(PlanError(p.what, at=show(p.offset), fix=p.fix, name=p.name) for p in once.values())
        told.omitted += self.omitted
        return told


class Grammar(DuckDB.Parser):  # type: ignore[misc]  # sqlglot's parsers are not typed
    """DuckDB's grammar, where a call is a name and its arguments in order: no function has a node of its own.

    So no argument of a function can be lost, and any name that the library does not have is a user's function. What
    remains are calls with words inside: ``cast(v as int64)``.
    """

    FUNCTIONS: Final[dict[str, Any]] = {}
    FUNCTION_PARSERS: Final[dict[str, Any]] = {
        name: DuckDB.Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING")
    }
    NO_PAREN_FUNCTION_PARSERS: Final[dict[str, Any]] = {
        name: DuckDB.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "ANY")
    }
    TYPE_CONVERTERS: Final[dict[Any, Any]] = {}  # they forget lengths
    FUNCTIONS_WITH_ALIASED_ARGS: Final[set[str]] = set()

    def offset(self) -> int | None:
        """Where in the text it stands."""
        token = self._curr or self._prev
        return int(token.start) if token else None


DIALECT: Final = sqlglot.Dialect.get_or_raise("duckdb")


def tokens_of(text: str) -> list[Token]:
    """The words of a text, within budgets that keep the parser linear, and none that sqlglot takes for another."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Unread(f"half a character at {error.start}: the text is not Unicode", fix="save it as UTF-8") from None
    with _sqlglot("text"):
        tokens: list[Token] = DIALECT.tokenize(text)
    _check_nesting(tokens)
    misread = list(_misread(tokens))
    if misread:
        raise together(misread)
    return tokens


@contextmanager
def _sqlglot(what: str, tokens: Sequence[Token] = (), grammar: Grammar | None = None) -> Iterator[None]:
    """The one door to sqlglot: whatever it raises, by mistake too, is a text that is not read.

    >>> condition('k::substring(""')
    Traceback (most recent call last):
    ...
    streamproof.plan.grammar.Unread: cannot read the expression
      fix: write e.g. "v > 1 and k = 'a'"
    """
    try:
        yield
    except sqlglot.errors.TokenError as error:
        raise Unread("a quote or a comment is never closed", fix="close it", offset=error.start) from None
    except sqlglot.errors.ParseError as error:
        details = (error.errors or [{}])[0]
        near, line, column = (details.get(key) for key in ("highlight", "line", "col"))
        offset = next((token.start for token in tokens if (token.line, token.col) == (line, column)), None)
        shown = f" near {near[:40]!r}" if near else ""
        raise Unread(f"cannot read the {what}{shown}", fix=FIX, offset=offset) from None
    except RecursionError:
        raise too_deep() from None
    except Exception:  # a ValueError for a call without a name, and whatever else
        raise Unread(f"cannot read the {what}", fix=FIX, offset=grammar.offset() if grammar else None) from None


def _check_nesting(tokens: Sequence[Token]) -> None:
    of_types: list[bool] = []  # for each open parenthesis, whether the word of a type stands before it
    before = None
    for token in tokens:
        if token.token_type in OPENING:
            of_types.append(before in _TYPES)
            if len(of_types) > MAX_NESTING or sum(of_types[-MAX_NESTING:]) > MAX_TYPES:
                raise too_deep(token.start)
        elif token.token_type in CLOSING and of_types:
            of_types.pop()
        before = token.token_type


OPENING: Final = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
CLOSING: Final = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)
_TYPES: Final = frozenset({*DuckDB.Parser.TYPE_TOKENS, *DuckDB.Parser.NESTED_TYPE_TOKENS, TokenType.ROW})


def too_deep(offset: int | None = None) -> Unread:
    return Unread("the expression is nested too deeply", fix="split it", offset=offset, name="limit_exceeded")


def _misread(tokens: Sequence[Token]) -> Iterator[Unread]:
    """Words that sqlglot takes for others."""
    for token in tokens:
        if token.token_type == TokenType.NUMBER and len(token.text) > MAX_DIGITS:
            what = f"a number of {len(token.text)} digits"
            yield Unread(what, fix=f"at most {MAX_DIGITS}", offset=token.start, name="limit_exceeded")
        if token.token_type == TokenType.PIPE_GT:
            yield Unread("|> is not supported", fix="put the query in FROM (…)", offset=token.start)
    if tokens and tokens[0].token_type == TokenType.ALIAS:
        yield Unread("AS names nothing here", fix="leave it out", offset=tokens[0].start)
    if tokens and tokens[-1].token_type == TokenType.COMMA:
        yield Unread("an argument is missing after a comma", fix="remove the comma", offset=tokens[-1].start)
    for token, following in pairwise(tokens):
        number = following.token_type == TokenType.DECIMAL and following.text.lower() == "number"
        if number and token.token_type in (TokenType.ALIAS, TokenType.DCOLON):
            what, fix = "number is float64 here and decimal elsewhere", "write double, or decimal(18, 3)"
            yield Unread(what, fix=fix, offset=following.start)
        if token.token_type == TokenType.COMMA and following.token_type in _AFTER_A_LIST:
            yield Unread("an argument is missing after a comma", fix="remove the comma", offset=token.start)
        if following.token_type == TokenType.ALL and token.token_type in (TokenType.L_PAREN, TokenType.COMMA):
            yield Unread("ALL is not supported here", fix="leave it out", offset=following.start)
        if following.token_type == TokenType.ALIAS and token.token_type in (TokenType.COMMA, *_BEFORE_A_LIST):
            yield Unread("AS names nothing here", fix="leave it out", offset=following.start)
        if following.token_type == TokenType.COMMA and token.token_type in _BEFORE_A_LIST:
            yield Unread("an argument is missing before a comma", fix="remove the comma", offset=following.start)
        if token.token_type in _OPERANDS and following.text.lower() == "div":
            fix = "write a // b, which rounds down, or a / b"
            yield Unread("div means one thing here and another there", fix=fix, offset=following.start)


_AFTER_A_LIST: Final = frozenset({
    TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.UNION, TokenType.SEMICOLON,
    *CLOSING,
})  # fmt: skip
_BEFORE_A_LIST: Final = frozenset({
    TokenType.SELECT, TokenType.FROM, TokenType.GROUP_BY, *OPENING,
})  # fmt: skip
_OPERANDS: Final = frozenset({
    TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.R_PAREN, TokenType.NULL,
})  # fmt: skip


def check_numbers(tokens: Sequence[Token]) -> None:
    """Refuse ``0x1f``, which sqlglot reads as 0 called x1f."""
    for token, following in pairwise(tokens):
        touches = following.start == token.end + 1 and following.text[:1].isalnum()
        if token.token_type == TokenType.NUMBER and touches:
            what = f"{token.text}{following.text} is not a number"
            raise Unread(what[:80], fix="write e.g. 12, 1.5 or 1e9", offset=token.start)


def condition(text: str) -> exp.Expr:
    """The tree of one expression."""
    return condition_of(tokens_of(text), text)


def condition_of(tokens: list[Token], text: str) -> exp.Expr:
    """The tree of one expression that is cut into words already."""
    check_numbers(tokens)
    if any(token.token_type == TokenType.SEMICOLON for token in tokens[:-1]):
        raise Unread("an expression must be one expression", fix="remove what follows the semicolon")
    found = _parsed(tokens, lambda grammar: grammar.parse_into(exp.Condition, tokens, text), "expression")
    if len(found) != 1 or found[0] is None:
        raise Unread("an expression must be one expression", fix=FIX)
    tree: exp.Expr = found[0]
    return tree


FIX: Final = "write e.g. \"v > 1 and k = 'a'\""


def statements(tokens: list[Token], text: str) -> list[exp.Expr]:
    """The trees of the statements that some words make."""
    found = _parsed(tokens, lambda grammar: grammar.parse(tokens, text), "SQL")
    return [tree for tree in found if tree is not None]


def _parsed(tokens: list[Token], parse: Callable[[Grammar], list[Any]], what: str) -> list[Any]:
    grammar = Grammar(dialect=DIALECT)
    with _sqlglot(what, tokens, grammar):
        return parse(grammar)


def consumed(node: exp.Expr, *names: str, **settled: object) -> None:
    """Refuse what is said of a node beyond the arguments of these names; ``settled`` ones say nothing if they are so.

    Law: a tree of which every node was consumed has no part that changes nothing.
    """
    refused: list[Unread] = []
    for name, value in node.args.items():
        is_said = value not in (None, [], "")
        if is_said and name not in names and not (name in settled and settled[name] == value):
            word = _CLAUSES.get(name, name.strip("_").replace("_", " ").upper())
            word = f"{value} {word}" if name == "method" else word
            what, fix = f"{word} is not supported here", _WAYS.get(name, "leave it out")
            refused.append(Unread(what, fix=fix, offset=place(value, node)))
    if refused:
        raise together(refused)


_CLAUSES: Final[dict[str, str]] = {
    "all": "GROUP BY ALL or DISTINCT", "by_name": "BY NAME", "columns": "a list of columns after a name",
    "catalog": "a name with a catalogue", "connect": "CONNECT BY", "db": "a name with a database", "except_": "EXCLUDE",
    "field": "IN without a list",
    "hints": "a hint", "joins": "a JOIN in parentheses", "kind": "a kind of UNION",
    "laterals": "LATERAL", "locks": "FOR UPDATE", "match": "MATCH_RECOGNIZE", "order": "ORDER BY",
    "pivots": "PIVOT", "sample": "SAMPLE", "system_time": "FOR SYSTEM_TIME", "totals": "WITH TOTALS",
    "version": "AS OF", "when": "AT", "windows": "WINDOW", "unnest": "IN UNNEST", "method": "JOIN",
}  # fmt: skip
_BEST: Final = "for the best of each window use TOP n BY"
_WAYS: Final[dict[str, str]] = {
    "columns": "rename columns in FROM (SELECT v AS x FROM S)",
    "distinct": "group by the columns and SNAPSHOT",
    "except_": "list the columns that you want",
    "field": "write v in (1, 2), or contains(k, 'a')",
    "having": "put the query in FROM (…) and filter it with WHERE",
    "limit": f"streams have no end; {_BEST}",
    "method": "use JOIN, LEFT JOIN, FULL JOIN or ANTI JOIN with ON",
    "offset": f"streams have no end; {_BEST}",
    "order": f"results are ordered by time; {_BEST}",
    "qualify": "use TOP n BY",
    "replace": "list the columns, with the new values under their names",
    "unnest": "write v in (1, 2)",
    "using": "write ON a.k = b.k",
    "with_": "put the query in FROM (…)",
}


def place(*parts: object) -> int | None:
    """Where the first of these stands in the text, as far as sqlglot knows."""
    for part in parts:
        starts = [found.meta["start"] for node in _nodes(part) for found in node.walk() if "start" in found.meta]
        if starts:
            return int(min(starts))
    return None


def check_kept(tokens: Sequence[Token], tree: exp.Expr) -> None:
    """Refuse words that left no trace in a tree: sqlglot skips some where it expected more to follow.

    >>> words = tokens_of("lower(k as)")
    >>> check_kept(words, condition_of(words, "lower(k as)"))
    Traceback (most recent call last):
    ...
    streamproof.plan.grammar.Unread: AS means nothing here
      fix: leave it out, or write it in double quotes if it is a name
    """
    with _sqlglot("text"):
        printed: list[Token] = DIALECT.tokenize(tree.sql(dialect=DIALECT, comments=False))
    said, kept = _words(tokens), _words(printed, names=True)
    for node in tree.walk():
        kept.update(_PRINTED_IN_OTHER_WORDS.get(type(node), ()))
        if isinstance(node, exp.Join):  # ANTI alone is printed of LEFT ANTI
            kept[str(node.args.get("side") or "").upper()] += 1
    lost: list[Unread] = []
    for word in said - kept:
        last = next(token.start for token in reversed(tokens) if word in token.text.upper().split())
        fix = "leave it out, or write it in double quotes if it is a name"
        lost.append(Unread(f"{word} means nothing here", fix=fix, offset=last))
    if lost:
        raise together(lost)


_PRINTED_IN_OTHER_WORDS: Final[dict[type[exp.Expr], tuple[str, ...]]] = {
    exp.DataType: ("WITH", "WITHOUT", "TIME", "ZONE", "PRECISION", "VARYING"),
    exp.Extract: ("DOW", "DOY"),
    exp.Is: ("ISNULL", "NOTNULL", "UNKNOWN"),
    exp.Select: ("ALL",),
    exp.Substring: ("FROM", "FOR"),
    exp.Trim: ("TRIM", "BOTH", "LEADING", "TRAILING", "FROM"),
}


def _words(tokens: Sequence[Token], *, names: bool = False) -> Counter[str]:
    """The words and stars of a text but constants and names of types, which have several; quoted names if asked."""
    skipped = {TokenType.STRING, *_PLAIN_TYPES, *([] if names else [TokenType.IDENTIFIER])}
    plain = (token.text.upper() for token in tokens if token.token_type not in skipped)
    return Counter(word for text in plain for word in text.split() if word[0].isalpha() or word == "*")


_PLAIN_TYPES: Final = frozenset(DuckDB.Parser.TYPE_TOKENS - DuckDB.Parser.NESTED_TYPE_TOKENS)


def _nodes(part: object) -> Iterator[exp.Expr]:
    for node in part if isinstance(part, list) else [part]:
        if isinstance(node, exp.Expr):
            yield node
