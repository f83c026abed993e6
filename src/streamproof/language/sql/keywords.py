"""Our own words among those of SQL: ``TOP n BY`` and lengths of time, put in a form that SQL's grammar has.

>>> [statement] = statements_of("SELECT TOP 2 BY v DESC k FROM S GROUP BY TUMBLING(1 h 30 m)")
>>> " ".join(token.text for token in statement.tokens)
'SELECT TOP ( 2 , v , desc ) , k FROM S GROUP BY TUMBLING ( 1 h 30 m )'
>>> statement.tokens[-2].token_type.name, len(statement.tops)
('STRING', 1)

Only words are moved, never characters: text constants, comments and quoted names stay what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import Token, TokenType

from streamproof.plan.grammar import CLOSING, OPENING, Unread, check_numbers, tokens_of


@dataclass(frozen=True, slots=True)
class Statement:
    """The words of one statement, and the offsets of those that are our TOP."""

    tokens: list[Token]
    tops: frozenset[int]

    def offset(self, *words: str) -> int | None:
        """Where one of some words first stands."""
        quoted = (TokenType.STRING, TokenType.IDENTIFIER)
        for word in words:
            for token in self.tokens:
                if token.token_type not in quoted and word.upper() in token.text.upper().split():
                    return int(token.start)
        return None


def statements_of(text: str) -> list[Statement]:
    """The statements of a text."""
    found: list[Statement] = []
    for tokens in _split(tokens_of(text)):
        _check_strings(tokens)
        ready, tops = _tops(list(_spans(tokens, text)))
        check_numbers(ready)
        found.append(Statement(ready, tops))
    return found


def _split(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    for token in tokens:
        if token.token_type != TokenType.SEMICOLON:
            part.append(token)
        elif part:
            yield part
            part = []
    if part:
        yield part


def _check_strings(tokens: Sequence[Token]) -> None:
    """A text after FROM would be a file in DuckDB, and one after a name another name."""
    before = None
    for token, following in pairwise(tokens):
        is_clause = token.token_type == TokenType.FROM and before != TokenType.DISTINCT  # IS DISTINCT FROM is none
        before = token.token_type
        if token.token_type in _NAMES and following.token_type == TokenType.STRING:
            fix = 'constants are in single quotes, names bare or in double quotes: "two words"'
            raise Unread("a constant stands where nothing is expected", fix=fix, offset=following.start)
        if (is_clause or token.token_type == TokenType.JOIN) and following.token_type == TokenType.STRING:
            fix = 'write the name of a stream, in double quotes if it is an odd one: FROM "two words"'
            raise Unread("FROM takes a stream, not a text", fix=fix, offset=following.start)


_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN})


def _spans(tokens: Sequence[Token], text: str) -> Iterator[Token]:
    """The words, with lengths such as ``10 s`` among the arguments of a window in GROUP BY as one text."""
    depth, at = 0, 0
    group: int | None = None
    while at < len(tokens):
        token = tokens[at]
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        if token.token_type == TokenType.GROUP_BY:
            group = depth
        elif group is not None and depth < group:
            group = None
        if token.token_type == TokenType.SESSION:  # no word of a grammar here
            token = _like(token, TokenType.VAR, token.text)
        end = at + 1
        begins = at > 0 and tokens[at - 1].token_type in (TokenType.L_PAREN, TokenType.COMMA)
        if token.token_type == TokenType.NUMBER and begins and group is not None and depth == group + 1:
            while end < len(tokens) and tokens[end].token_type not in _ENDS:
                end += 1
        if end > at + 1:
            last = tokens[end - 1]
            span = text[token.start : last.end + 1]
            token = Token(TokenType.STRING, span, token.line, token.col, token.start, last.end)
        yield token
        at = end


_ENDS = frozenset({TokenType.COMMA, *OPENING, *CLOSING})


def _tops(tokens: list[Token]) -> tuple[list[Token], frozenset[int]]:
    """``SELECT TOP 2 BY v DESC k`` as ``SELECT TOP(2, v, 'desc'), k``."""
    found: list[Token] = []
    tops: set[int] = set()
    at = 0
    while at < len(tokens):
        found.append(tokens[at])
        words = [token.text.upper() for token in tokens[at : at + 4]]
        kinds = [token.token_type for token in tokens[at : at + 4]]
        at += 1
        if kinds[:3] != [TokenType.SELECT, TokenType.VAR, TokenType.NUMBER] or words[1] != "TOP":
            continue
        top = tokens[at]
        if words[3:] != ["BY"] or not words[2].isdigit():
            fix = "write e.g. SELECT TOP 3 BY v DESC k, v FROM S GROUP BY SNAPSHOT"
            raise Unread("TOP takes a number of events and BY", fix=fix, offset=top.start)
        orders, at = _orders(tokens, at + 3, top)
        opened, comma = _like(top, TokenType.L_PAREN, "("), _like(top, TokenType.COMMA, ",")
        found += [top, opened, _like(top, TokenType.NUMBER, words[2])]
        for expression, direction in orders:
            found += [comma, *expression, comma, _like(top, TokenType.STRING, direction)]
        found += [_like(top, TokenType.R_PAREN, ")"), comma]
        tops.add(int(top.start))
    return found, frozenset(tops)


def _orders(tokens: list[Token], at: int, top: Token) -> tuple[list[tuple[list[Token], str]], int]:
    """What TOP ranks by, and where it ends."""
    orders: list[tuple[list[Token], str]] = []
    while True:
        begin, depth = at, 0
        while at < len(tokens) and depth >= 0:
            kind = tokens[at].token_type
            depth += (kind in OPENING) - (kind in CLOSING)
            if depth == 0 and kind in (TokenType.ASC, TokenType.DESC, TokenType.FROM):
                break
            at += 1
        ends = at < len(tokens) and tokens[at].token_type in (TokenType.ASC, TokenType.DESC) and at > begin
        if not ends or {tokens[begin].token_type, tokens[at - 1].token_type} & {TokenType.COMMA, TokenType.ALL}:
            fix = "write e.g. SELECT TOP 3 BY v DESC, k ASC k, v FROM S"
            raise Unread("TOP n BY takes ASC or DESC after each expression", fix=fix, offset=top.start)
        orders.append((tokens[begin:at], tokens[at].text.lower()))
        at += 1
        if at < len(tokens) and tokens[at].text.upper() == "NULLS":
            raise Unread("NULLS is not supported here: nulls come last", fix="leave it out", offset=tokens[at].start)
        if at >= len(tokens) or tokens[at].token_type != TokenType.COMMA:
            return orders, at
        at += 1


def _like(token: Token, kind: TokenType, text: str) -> Token:
    """A word in the place of another."""
    return Token(kind, text, token.line, token.col, token.start, token.end)
