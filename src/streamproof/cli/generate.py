"""``streamproof generate``: event streams from facets, into a file or onto standard output."""

from __future__ import annotations

import json as jsonlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from streamproof.cli.plans import look_here
from streamproof.cli.screen import counted, note, print_blocks, print_line, progress, show_pairs
from streamproof.errors import PlanError, did_you_mean
from streamproof.events.files.writer import write_chunks
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import Unit
from streamproof.extensions import named_object
from streamproof.generate import Facets, Figures, Values, describe
from streamproof.generate import generate as generate_chunks

ADDED_UP = 1_000_000  # larger streams are measured without adding up their history
_VALUES = ("keys", "skew", "nulls", "boundary")


def generate(
    schema: Annotated[
        str, typer.Option(help="The payload columns: NAME TYPE, separated by commas.")
    ] = "k string, v int64",
    count: Annotated[int, typer.Option(help="How many events.")] = 1000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    shape: Annotated[str, typer.Option(help="point, interval or edge.")] = "interval",
    duration: Annotated[str | None, typer.Option(help="point, short, long, infinite, or ticks: 5, or 5,9.")] = None,
    overlap: Annotated[str | None, typer.Option(help="low, medium, high, or how many events are alive.")] = None,
    pattern: Annotated[
        str, typer.Option(help="random, disjoint, staggered, back_to_back, duplicates, or module:function.")
    ] = "random",
    liveliness: Annotated[
        str, typer.Option(help="never, final, lazy, steady, eager, or a CTI every N events.")
    ] = "steady",
    disorder: Annotated[
        str, typer.Option(help="in_order, slightly, out_of_order, highly, or FRACTION or FRACTION,PLACES.")
    ] = "in_order",
    speculation: Annotated[
        str, typer.Option(help="none, shrink, extend, full, chains, mixed, or WORD,FRACTION.")
    ] = "none",
    duplicates: Annotated[str, typer.Option(help="none, some, all, or a fraction.")] = "none",
    keys: Annotated[str, typer.Option(help="Different values: few, some, many, unique, or a number.")] = "some",
    skew: Annotated[str, typer.Option(help="uniform, zipf, heavy, or an exponent.")] = "uniform",
    nulls: Annotated[str, typer.Option(help="none, some, many, or a fraction.")] = "none",
    boundary: Annotated[str, typer.Option(help="Boundary values: none, some, many, or a fraction.")] = "none",
    column: Annotated[
        list[str] | None, typer.Option(help="NAME:keys=3,nulls=0.5 for one column; may be repeated.")
    ] = None,
    start: Annotated[int, typer.Option(help="The tick at which the first event starts.")] = 0,
    unit: Annotated[str | None, typer.Option(help="How long a tick is: ns, us, ms, s.")] = None,
    illegal: Annotated[str | None, typer.Option(help="Break this rule once, on purpose.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write to this file; its ending tells the format.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --out file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="What was made, and errors, as JSON.")] = False,
) -> None:
    """Make a stream from facets: a pure function of the seed. Prints the events, or with --out what was made."""
    columns = read_columns(schema, cast("Unit | None", unit))
    facets = Facets(
        shape=shape, duration=_value(duration), overlap=_value(overlap), pattern=_pattern(pattern),
        liveliness=_value(liveliness), disorder=_value(disorder), speculation=_value(speculation),
        duplicates=_value(duplicates), keys=_value(keys), skew=_value(skew), nulls=_value(nulls),
        boundary=_value(boundary), columns=dict(_column(text) for text in column or []), start=start, illegal=illegal,
    )  # fmt: skip
    chunks = generate_chunks(columns, count, seed, facets)
    if out is None:
        print_blocks(block for chunk in chunks for block in chunk.json_lines())
        return
    with progress("generating") as advance:
        kept: list[PhysicalStream] = []
        passing = _passing(chunks, kept, advance, whole=count <= ADDED_UP)
        place = write_chunks(columns, passing, out, overwrite=overwrite)
        figures = describe(kept, history=count <= ADDED_UP)
    if json:
        made = {"out": str(place), "count": count, "seed": seed, "facets": _shown(facets), "figures": figures.as_dict()}
        print_line(jsonlib.dumps(made, ensure_ascii=False))
    else:
        show_pairs(_rows(figures), header=("figure", "value"))
        note(f"{counted(figures.rows, 'row')} in {out}; seed {seed}")


def _passing(
    chunks: Iterator[PhysicalStream], kept: list[PhysicalStream], advance: Callable[[int], None], *, whole: bool
) -> Iterator[PhysicalStream]:
    """The chunks as they are made; what is measured of them is kept, without payloads where the stream is large."""
    rows = 0
    for chunk in chunks:
        kept.append(chunk if whole else PhysicalStream(Schema(), chunk.rows.select(range(5))))
        yield chunk
        rows += len(chunk)
        advance(rows)


def read_columns(text: str, unit: Unit | None = None) -> Schema:
    """A schema from its text.

    >>> read_columns("k string, price decimal(10, 2)").columns
    (('k', Type('string')), ('price', Type('decimal(10,2)')))
    """
    pairs = []
    for part in filter(None, map(str.strip, re.split(r",(?![^(]*\))", text))):
        name, _, kind = part.replace(":", " ", 1).partition(" ")
        if not kind.strip():
            raise PlanError(
                f"the column {part!r} has no type", at=f"--schema {text!r}", fix='write "k string, v int64"'
            )
        pairs.append((name, kind.strip()))
    return Schema.of(pairs, unit=unit)


def _value(text: str | None) -> Any:
    """A facet from its text: a word, a number, or several of them."""
    if text is None or "," not in text:
        return text if text is None else _number(text)
    return tuple(_number(part) for part in text.split(","))


def _number(text: str) -> str | int | float:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text.strip()


def _column(text: str) -> tuple[str, Values]:
    name, _, settings = text.rpartition(":")
    pairs = [pair.partition("=") for pair in settings.split(",")]
    for key, equals, _ in pairs:
        if not name or not equals:
            raise PlanError(f"cannot read --column {text!r}", fix="write NAME:keys=3,nulls=0.5")
        if key not in _VALUES:
            raise PlanError(f'a column has no "{key}"', at=f"--column {text!r}", fix=did_you_mean(key, _VALUES))
    return name, Values(**{key: _number(value) for key, _, value in pairs})  # type: ignore[arg-type]  # Facets checks them


def _pattern(text: str) -> Any:
    """A pattern's name, or the function that ``module:function`` names."""
    if ":" not in text:
        return text
    look_here()
    return named_object(text, what="pattern", named=None)


def _shown(facets: Facets) -> dict[str, object]:
    return {name: _plain(value) for name, value in facets.as_dict().items()}


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {name: {key: getattr(values, key) for key in _VALUES} for name, values in value.items()}
    return getattr(value, "__name__", str(value)) if callable(value) else value


def _rows(figures: Figures) -> Iterator[tuple[str, str]]:
    """The figures for people; what could not be measured is left out."""
    shares = {"late": figures.late_fraction, "retractions": figures.retraction_ratio}
    for name, value in figures.as_dict().items():
        if value is None or name in ("late_fraction", "retraction_ratio"):
            continue
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
        share = f" ({float(shares[name]):.4%} of the inserts)" if name in shares and value else ""
        yield name.replace("_", " "), shown + share
