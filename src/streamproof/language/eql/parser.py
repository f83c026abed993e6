"""From EQL text to event-driven queries. What is wrong is told with its line, its column and what was expected.

>>> parse_query("SELECT avg(temp) FROM Room EVERY 10s WINDOW 60s").when
EachHop(span='10s')
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

from lark import Lark, Token, Tree, UnexpectedInput

from streamproof.errors import Gathering, PlanError, StreamproofError, did_you_mean, each, together
from streamproof.language.eql.mistakes import QUOTES_OR_COMMENTS, unexpected, without_quotes
from streamproof.language.eql.printer import default_name
from streamproof.language.notation import check_size
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.eql.query import (
    MAX_DEPTH,
    OTHER,
    Arrive,
    At,
    Becomes,
    Cron,
    EachHop,
    EqlQuery,
    Event,
    Every,
    Item,
    Lasting,
    Meanwhile,
    Named,
    Nested,
    OnArrival,
    Once,
    Periodic,
    Qos,
    ValueChanges,
    When,
    latest_values,
    parts_of,
)
from streamproof.plan.expr import Col, Expr, Value, transform
from streamproof.plan.parse import parse
from streamproof.plan.source_location import at_place, refuse, word_offset
from streamproof.plan.text import quote

Part: TypeAlias = Any
"""A tree or a token of Lark, whose own types leave open which."""
MAX_SIZE = 200_000  # characters of a text
MAX_NESTING = 60  # parentheses inside parentheses
MAX_DIGITS = 18  # of a whole number: all of them are int64


def parse_document(text: str) -> tuple[EqlQuery, ...]:
    """All queries of a text; an event that is defined once can be used by every query that follows."""
    check_size(text, MAX_SIZE)
    reader = _EqlReader(text)
    queries: list[EqlQuery] = []
    events: dict[str, Event] = {}

    def read(statement: Part) -> None:
        part = statement.children[0]
        if part.data == "definition":
            reader.define(part, events)
        else:
            queries.append(reader.query(part, events))

    each(_tree(text).children, read)
    if not queries:
        raise PlanError("there is no query in this text", fix="write e.g. SELECT count(*) FROM S EVERY 10s WINDOW 60s;")
    return tuple(queries)


def parse_query(text: str) -> EqlQuery:
    """The one query of a text."""
    found = parse_document(text)
    if len(found) > 1:
        raise PlanError(f"expected one query, got {len(found)}", fix="give one query")
    return found[0]


@lru_cache(maxsize=1)
def _parser() -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _tree(text: str) -> Part:
    bare = without_quotes(text)
    _refuse_depth(text, bare)
    ended = text if not bare.strip() or bare.rstrip().endswith(";") else f"{text}\n;"  # the last one may be left out
    try:
        return _parser().parse(ended)
    except UnexpectedInput as error:
        raise unexpected(error, text) from None


def _refuse_depth(text: str, bare: str) -> None:
    """Refuse what nests too deeply to be read by functions that call themselves."""
    deep = _Nesting()
    for found in re.finditer(r"[()@;]", bare):
        too_deep = deep.past(found.group())
        if too_deep:
            raise refuse(too_deep, text, found.start(), fix="name a part of it: EVENT a = …;", name="limit_exceeded")


@dataclass(slots=True)
class _Nesting:
    """How deep a place of the text lies."""

    parentheses: int = 0
    sequences: int = 0  # @ of this statement: a @ b @ c is a @ (b @ c)

    def past(self, sign: str) -> str | None:
        """What is too deep, once this sign is read."""
        self.parentheses += (sign == "(") - (sign == ")")
        self.sequences = 0 if sign == ";" else self.sequences + (sign == "@")
        if self.parentheses > MAX_NESTING:
            return f"parentheses are nested more than {MAX_NESTING} deep"
        return f"more than {MAX_DEPTH} events follow each other" if self.sequences > MAX_DEPTH else None


@dataclass(frozen=True, slots=True)
class _EqlReader:
    """What the parts of the tree mean."""

    text: str

    def refuse(self, what: str, at: int | None, fix: str) -> StreamproofError:
        return refuse(what, self.text, at, fix=fix)

    # --- statements ---------------------------------------------------------------------------------------------------

    def define(self, tree: Part, events: dict[str, Event]) -> None:
        name, at = self.name(tree.children[1])
        if name in events:
            raise self.refuse(f'the event "{name}" is defined twice', at, "rename one of them")
        events[name] = Once("", at)  # should what it is be refused: queries that name it are not to blame
        events[name] = self.event(tree.children[3])

    def query(self, tree: Part, known: dict[str, Event]) -> EqlQuery:
        parts = [part for part in tree.children if isinstance(part, Tree)]
        stream, at = self.name(parts[1])
        with Gathering() as clauses:
            any_item = Item("", Aggregate("count"), at)  # stands in for what was refused, so that the rest is read
            items, shown = clauses.tried(lambda: self.items(parts[0], stream)) or ((any_item,), [])
            when = next(clauses.tried(partial(self.when, part)) for part in parts if part.data in _WHEN)
            query = EqlQuery(
                items, stream, when or OnArrival(), shown=tuple(name for name, _ in shown),
                shown_at=tuple(place for _, place in shown), at=at, text=self.text,
            )  # fmt: skip
            used = clauses.tried(lambda: self.used(query, known)) or ()
            for part in parts:
                if part.data == "where":
                    query = clauses.tried(partial(self.filtered, query, part)) or query
                elif part.data in _CLAUSES:
                    query = clauses.tried(partial(self.clause, query, part)) or query
        return replace(query, events=used)

    def filtered(self, query: EqlQuery, tree: Part) -> EqlQuery:
        place = _start(tree.children[1])
        where = self.expression(tree.children[1], query.stream)
        self.refuse_others(where, "WHERE", query.stream, place)
        return replace(query, where=where, where_at=place)

    def used(self, query: EqlQuery, known: dict[str, Event]) -> tuple[tuple[str, Event], ...]:
        """The definitions that a query needs, in the order in which they were made."""
        waiting: list[Event] = [query.when.event] if isinstance(query.when, At | Meanwhile) else []
        used: set[str] = set()
        while waiting:
            event = waiting.pop()
            if not isinstance(event, Named):
                waiting += parts_of(event)
            elif event.name not in known:
                fix = did_you_mean(event.name, known) if known else _define(event.name)
                raise self.refuse(f'there is no event "{event.name}"', event.at, fix)
            elif event.name not in used:
                used.add(event.name)
                waiting.append(known[event.name])
        return tuple((name, event) for name, event in known.items() if name in used)

    def clause(self, query: EqlQuery, tree: Part) -> EqlQuery:
        field = {"window": "window", "hop": "hop", "group_by": "group", "emit_empty": "empty", "qos": "qos"}[tree.data]
        if getattr(query, field):
            raise self.refuse(f"{tree.children[0].upper()} is given twice", _start(tree), "remove one of them")
        match tree.data:
            case "window" | "hop":
                span = self.duration(tree.children[1])
                return replace(query, window=span) if tree.data == "window" else replace(query, hop=span)
            case "group_by":
                names = self.names(tree.children[2])
                return replace(query, group=tuple(n for n, _ in names), group_at=tuple(place for _, place in names))
            case "emit_empty":
                return replace(query, empty=True)
        backlog = self.whole(tree.children[4]) if len(tree.children) > 3 else None
        return replace(query, qos=Qos(self.duration(tree.children[2]), backlog))

    def refuse_others(self, expr: Expr | None, what: str, stream: str, at: int) -> None:
        """The data are of one stream; only the conditions of events read others."""
        for other, name in latest_values(expr) if expr is not None else ():
            place = word_offset(self.text, other, at)
            fix = f"read {other}.{name} in the condition of an event, or join the streams in SQL"
            raise self.refuse(f"{what} sees {stream} alone, not {other}", place, fix)

    def items(self, tree: Part, stream: str) -> tuple[tuple[Item, ...], list[tuple[str, int]]]:
        columns = [part for part in tree.children if part.data == "column"]
        shown = [self.name(part.children[0]) for part in columns]
        items = each((part for part in tree.children if part.data != "column"), lambda part: self.item(part, stream))
        if not items:
            name, at = shown[0]
            fix = f"select an aggregate, e.g. last({name}) or count(*)"
            if name.lower() in AGGREGATES:
                fix = f"write {name}({'*' if name.lower() == 'count' else 'column'})"
            raise self.refuse(f'"{name}" is no aggregate', at, fix)
        return tuple(items), shown

    def item(self, tree: Part, stream: str) -> Item:
        call = tree.children[0]
        at = _start(call)
        aggregate = self.aggregate(call, stream)
        if len(tree.children) > 2:
            return Item(self.name(tree.children[2])[0], aggregate, at)
        return Item(default_name(aggregate), aggregate, at, named=False)

    def aggregate(self, call: Part, stream: str) -> Aggregate:
        fn, at = str(call.children[0]).lower(), _start(call)
        if fn not in AGGREGATES:
            raise self.refuse(f'unknown aggregate "{call.children[0]}"', at, did_you_mean(fn, AGGREGATES))
        parts = self.arguments(call.children[1]) if len(call.children) > 1 else []
        first, rest = parts[:1], parts[1:]
        if first and first[0][0] == "*" and fn != "count":
            raise self.refuse(
                f"{fn} needs a column, and * is none", first[0][1], f"write {fn}(column); count(*) counts"
            )
        arg = None if not first or first[0][0] == "*" else self.parsed(*first[0], stream)
        self.refuse_others(arg, fn, stream, at)
        counted = "count_values" if fn == "count" and arg is not None else fn
        try:
            return Aggregate(counted, arg, tuple(self.constant(*part) for part in rest))
        except StreamproofError as error:
            error.fix = error.fix.replace(f'["{fn}", "column"]', f"{fn}(column)") if error.fix else None
            if "0 parameters" in error.what:
                error.what, error.fix = f"{fn} takes one argument", f"write {fn}(column)"
            raise at_place(error, self.text, at) from None

    def arguments(self, tokens: Part) -> list[tuple[str, int]]:
        """The texts between commas, with their places."""
        parts: list[list[Any]] = [[]]
        for child in tokens.children:
            if isinstance(child, Token) and child.type == "COMMA":
                parts.append([])
            else:
                parts[-1].append(child)
        if any(not part for part in parts):
            raise self.refuse("an argument is missing beside the comma", _start(tokens), "remove the comma")
        return [(self.text[_start(part[0]) : _end(part[-1])], _start(part[0])) for part in parts]

    def constant(self, text: str, at: int) -> Value:
        if not _NUMBER.fullmatch(text):
            raise self.refuse(f"{text[:40]!r} is not a number", at, "give a number, e.g. 0.9")
        return self.number(text, at)

    def number(self, text: str, at: int) -> int | float:
        """A number that is what it says: whole ones are int64, others are finite."""
        if re.fullmatch(r"-?\d+", text):
            self.refuse_digits(text, at)
            return int(text)
        value = float(text)
        if not math.isfinite(value):
            raise self.refuse(f"{text[:40]} is too large for a number", at, "give a smaller one")
        return value

    def whole(self, token: Token) -> int:
        self.refuse_digits(token, _start(token))
        return int(token)

    def refuse_digits(self, text: str, at: int) -> None:
        digits = len(text.lstrip("-0"))
        if digits > MAX_DIGITS:
            fix = f"whole numbers have at most {MAX_DIGITS} digits"
            raise refuse(f"the number has {digits} digits", self.text, at, fix=fix, name="limit_exceeded")

    # --- when, and events ---------------------------------------------------------------------------------------------

    def when(self, tree: Part) -> When:
        match tree.data:
            case "on_arrival":
                return OnArrival()
            case "each_hop":
                return EachHop(self.duration(tree.children[1]), _start(tree))
            case "at":
                names = self.names(tree.children[2].children[1]) if len(tree.children) > 2 else []
                by, places = tuple(n for n, _ in names), tuple(place for _, place in names)
                return At(self.event(tree.children[1]), by, places)
        return Meanwhile(self.event(tree.children[1]), continuous=len(tree.children) > 2)

    def event(self, tree: Part) -> Event:
        at = _start(tree)
        match tree.data:
            case "named":
                return Named(self.name(tree.children[0])[0], at)
            case "once":
                return Once(_string(tree.children[1]), at)
            case "every":
                return Every(self.duration(tree.children[2]), at)
            case "cron":
                return Cron(_string(tree.children[2]), at)
            case "arrive" | "becomes":
                return self.content(tree, at)
            case "changes":
                return self.changes(tree, at)
            case "sequence":
                return self.sequence(tree)
            case "periodic":
                return Periodic(self.event(tree.children[0]), self.duration(tree.children[2]), at)
        return self.lasting(tree, at)

    def content(self, tree: Part, at: int) -> Event:
        stream, place = self.name(tree.children[1])
        if len(tree.children) < 3:
            return Arrive(stream, None, place)
        where, where_at = self.expression(tree.children[3], stream), _start(tree.children[3])
        made = Arrive if tree.data == "arrive" else Becomes
        return made(stream, where, place, where_at)

    def changes(self, tree: Part, at: int) -> Event:
        stream, place = self.name(tree.children[1])
        column, column_at = self.name(tree.children[2])
        way = next((c.lower() for c in tree.children if isinstance(c, Token) and c.type in ("UP", "DOWN")), "any")
        number = next(c for c in tree.children if isinstance(c, Tree) and c.data == "number")
        options = [c for c in tree.children if isinstance(c, Tree) and c.data in ("change_within", "since_last")]
        if len(options) > 1:
            raise self.refuse("CHANGES has one reference", _start(options[1]), "give WITHIN or SINCE LAST, not both")
        within = next((self.duration(o.children[1]) for o in options if o.data == "change_within"), None)
        value = self.number("".join(map(str, number.children)), _start(number))
        return ValueChanges(stream, column, value, way, within, place, column_at)  # type: ignore[arg-type]  # three words

    def sequence(self, tree: Part) -> Event:
        outer, sign, inner, *modifiers = tree.children
        assert isinstance(sign, Token)
        spans = [self.duration(m.children[1]) for m in modifiers if m.data == "within"]
        opens = [m for m in modifiers if m.data == "open"]
        if len(spans) > 1 or len(opens) > 1:
            raise self.refuse("WITHIN or OPEN is given twice", _start(modifiers[1]), "remove one of them")
        place = sign.start_pos
        return Nested(self.event(outer), self.event(inner), spans[0] if spans else None, bool(opens), place)

    def lasting(self, tree: Part, at: int) -> Event:
        _, begin, ending, *options = tree.children
        end = self.duration(ending.children[0]) if ending.data == "length" else self.event(ending.children[0])
        event = Lasting(self.event(begin), end, at=at)
        given: set[str] = set()
        for option in options:
            if option.data in given:
                what = f"{option.children[0].upper()} is given twice"
                raise self.refuse(what, _start(option), "remove one of them")
            given.add(option.data)
            event = self.option(event, option)
        return event

    def option(self, event: Lasting, tree: Part) -> Lasting:
        match tree.data:
            case "lasting_by":
                names = self.names(tree.children[1])
                return replace(event, by=tuple(n for n, _ in names), by_at=tuple(place for _, place in names))
            case "pair":
                return replace(event, pair=tree.children[1].lower())
        return replace(event, max=self.duration(tree.children[1]))

    # --- small parts --------------------------------------------------------------------------------------------------

    def name(self, tree: Any) -> tuple[str, int]:
        token = tree.children[0]
        text = str(token)
        if token.type == "QUOTED":
            text = text[1:-1].replace('""', '"')
        if OTHER in text:
            raise self.refuse("a name holds a control character", token.start_pos, "remove it")
        return text, token.start_pos

    def names(self, tree: Any) -> list[tuple[str, int]]:
        names = [self.name(part) for part in tree.children]
        known: set[str] = set()
        for name, at in names:
            if name in known:
                raise self.refuse(f'"{name}" is given twice', at, "remove one of them")
            known.add(name)
        return names

    def duration(self, tree: Any) -> int | str:
        if len(tree.children) > 1:
            return self.whole(tree.children[0])
        return re.sub(r"\s+", " ", str(tree.children[0]))

    def expression(self, tree: Part, stream: str) -> Expr:
        return self.parsed(self.text[_start(tree) : _end(tree)], _start(tree), stream)

    def parsed(self, text: str, at: int, stream: str) -> Expr:
        """An expression over a stream; ``Stream.column`` is the latest value of another stream."""
        self.refuse_habits(text, at)
        try:
            return transform(parse(_with_others(text)), lambda part: _own(part, stream))
        except StreamproofError as error:
            found = re.search(r"near '(.*)'", error.what)
            offset = text.find(found.group(1)) if found else -1
            raise together(
                at_place(PlanError(part.what, fix=part.fix, name=part.name), self.text, at + max(offset, 0))
                for part in (error, *error.others)
            ) from None

    def refuse_habits(self, text: str, at: int) -> None:
        """What other languages write."""
        bare = QUOTES_OR_COMMENTS.sub(lambda found: " " * len(found.group()), text)
        for habit, what, fix in _HABITS:
            found = re.search(habit, bare)
            if found:
                raise self.refuse(what, at + found.start(), fix)


def _define(name: str) -> str:
    return f"define it: EVENT {name} = …; or if it is a stream, write ARRIVE({name})"


_HABITS = (
    (r"==", "== is not EQL", "compare with a single ="),
    (r"=>", "=> is not EQL", "write >="),
    (r"=<", "=< is not EQL", "write <="),
    (r"(?i)(?<![<>])(=|<>|!=)\s*null\b", "nothing equals null", "write is null, or is not null"),
    (r"&&", "&& is not EQL", "write and"),
    (r"\|\|\s*\w+\s*[<>=]", "|| joins strings in EQL", "write or"),
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WHEN = ("on_arrival", "each_hop", "at", "during")
_CLAUSES = ("window", "hop", "group_by", "emit_empty", "qos")
_WORD = re.compile(r"(?<![\w.'])[A-Za-z_]\w*(?!\s*[(\w])", re.ASCII)
_OPERATORS = frozenset(
    (
        "and", "or", "not", "in", "is", "null", "like", "between", "case", "when", "then", "else", "end", "true",
        "false", "as", "distinct", "from", "escape", "bigint", "int", "integer", "double", "float", "varchar",
        "string", "text", "boolean", "bool", "date", "timestamp", "timestamptz", "decimal",
    )
)  # fmt: skip
_REFERENCE = re.compile(r"(?<![\w.\"'])([A-Za-z_]\w*)\s*\.\s*([A-Za-z_]\w*)(?!\w|\s*[(.])")


def _own(part: Expr, stream: str) -> Expr:
    """``Room.temp`` in an expression over Room is its column."""
    if isinstance(part, Col) and part.name.startswith(f"{stream}{OTHER}"):
        return Col(part.name.split(OTHER, 1)[1])
    return part


def _with_others(text: str) -> str:
    """``Limits.high`` as one quoted name, outside of quotes."""
    parts: list[str] = []
    done = 0
    for found in [*QUOTES_OR_COMMENTS.finditer(text), None]:
        end = found.start() if found is not None else len(text)
        parts.append(_plain_names(text[done:end]))
        if found is not None:
            parts.append(found.group())
            done = found.end()
    return "".join(parts)


def _plain_names(text: str) -> str:
    """References as one name each, and columns in quotes whose names mean something to SQL: ``on = 1``."""
    text = _REFERENCE.sub(lambda m: f'"{m.group(1)}{OTHER}{m.group(2)}"', text)
    pieces = text.split('"')  # references are in quotes by now
    bare = (_WORD.sub(lambda m: _column(m.group()), piece) if n % 2 == 0 else piece for n, piece in enumerate(pieces))
    return '"'.join(bare)


def _column(word: str) -> str:
    return word if word.lower() in _OPERATORS else quote(word)


def _string(token: Any) -> str:
    return str(token)[1:-1].replace("''", "'")


def _start(part: Part) -> int:
    found = part.start_pos if isinstance(part, Token) else part.meta.start_pos
    return int(found or 0)


def _end(part: Part) -> int:
    found = part.end_pos if isinstance(part, Token) else part.meta.end_pos
    return int(found or 0)
