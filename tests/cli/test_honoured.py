"""Every option is honoured wherever it is admitted; one of which nothing would come is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from streamproof.cli.commands import app
from streamproof.cli.honoured import CONDITIONS

ALWAYS: dict[str, set[str]] = {
    "demo": set(),
    "run": {
        "plan", "input", "engine", "mode", "checkpoint", "json", "horizon", "map", "on_error", "modules", "max_windows",
        "quiet",
    },
    "explain": {"plan", "input", "json"},
    "trace": {"plan", "event", "input", "source", "modules", "horizon", "json"},
    "validate": {"file", "map", "shape", "order", "json", "limit"},
    "convert": {"source", "target", "map", "emit", "overwrite"},
    "generate": {
        "schema", "count", "seed", "shape", "duration", "overlap", "pattern", "liveliness", "disorder", "speculation",
        "duplicates", "keys", "skew", "nulls", "boundary", "column", "start", "unit", "illegal", "out", "json",
    },
    "analyze": {
        "file", "event_time", "arrival", "unit", "key", "separator", "header", "format", "zone", "more", "batch_rows",
        "html", "rejects", "on", "work", "json",
    },
    "disorder": {"config", "out", "overwrite", "on", "work", "modules", "json"},
    "replay": {"file", "to", "as_fast_as_possible", "time", "unit", "separator", "limit", "resume", "json"},
    "qos": {"config", "plot", "json"},
    "serve": {"config", "duration", "report", "quiet", "modules", "json"},
    "warm-up": {"quiet"},
    "verify": {"engine", "replay", "modules", "json"},
}  # fmt: skip
"""Options that are honoured whatever else is given."""

REFUSED = {
    "run": {
        "overwrite": "--overwrite", "rejects": "--mode stream --rejects r", "dead_letters": "--dead-letters d",
        "dsn": "--dsn d", "emission": "--engine duckdb --emission final",
        "batch_size": "--engine duckdb --batch-size 3",
        "savepoint": "--mode stream --savepoint s", "from_savepoint": "--mode stream --from-savepoint s",
        "late_file": "--mode stream --late-file s", "on_module_error": "--mode stream --on-module-error dead-letter",
        "module_letters": "--engine local --module-letters m", "metrics": "--engine duckdb --metrics",
        "growing": "--mode stream --growing",
        "show_sql": "--mode stream --show-sql", "limit": "--json --limit 3",
        "out": "--engine duckdb --show-sql --out o.csv", "emit": "--engine duckdb --show-sql --emit events",
    },
    "explain": {"map": "--map start=t", "to": "--json --as tree"},
    "trace": {"map": "--event e --map start=t"},
    "generate": {"overwrite": "--overwrite"},
    "analyze": {
        "delay": "--event-time t --delay 3s", "window": "--event-time t --window 3s",
        "overwrite": "--event-time t --overwrite", "partitions": "--event-time t --on here --partitions 3",
    },
    "disorder": {"partitions": "--on here --partitions 2"},
    "replay": {
        "speed": "--as-fast-as-possible --speed 2", "every": "--every 2", "rows_per_file": "--to f --rows-per-file 2",
        "key": "--to f --key k", "overwrite": "--overwrite",
    },
    "qos": {"overwrite": "--overwrite"},
    "serve": {"overwrite": "--overwrite"},
    "verify": {
        "suite": "--replay r.json", "input": "--replay r.json --input S=f", "map": "--map start=t",
        "oracle": "--replay r.json --oracle duckdb", "dsn": "--dsn d", "cases": "--replay r.json --cases 3",
        "seed": "--replay r.json --seed 3",
        "jobs": "--input S=f --jobs 2", "time_budget": "--input S=f --time-budget 3",
        "most": "--input S=f --most 2", "report": "--replay r.json --report r.html", "overwrite": "--overwrite",
        "repros": "--replay r.json --repros r", "resume": "--input S=f --resume r",
    },
}  # fmt: skip
"""For each option with a condition, a command line in which nothing would come of it."""

COMMANDS = {command.name: command for command in typer.main.get_command(app).commands.values()}  # type: ignore[attr-defined]


def test_every_option_is_known_to_be_honoured() -> None:
    ours = {name: command for name, command in COMMANDS.items() if not hasattr(command, "commands")}
    found = {name: {p.name for p in command.params} - {"help"} for name, command in ours.items()}
    told = {name: ALWAYS[name] | set(CONDITIONS.get(name, {})) for name in ALWAYS}
    assert found == told
    assert {name: set(known) for name, known in CONDITIONS.items()} == {
        name: set(known) for name, known in REFUSED.items()
    }


def _single() -> list[tuple[str, str]]:
    """Every option that takes one value."""
    found = []
    for name, command in COMMANDS.items():
        parts = {f"{name or 'modules'} {part}": made for part, made in getattr(command, "commands", {}).items()} or {
            name: command
        }
        for called, made in parts.items():
            options = (p for p in made.params if p.opts[0].startswith("--") and not p.is_flag and not p.multiple)
            found += [(called, p.opts[0]) for p in options]
    return found


@pytest.mark.parametrize(("called", "option"), _single())
def test_an_option_of_one_value_is_given_once(run: Callable[..., object], called: str, option: str) -> None:
    """The last of several would win without a word."""
    done = run(*called.split(), option, "1", option, "2")
    assert done.code == 2
    assert f"{option} is given 2 times" in done.out + done.err


@pytest.mark.parametrize(
    ("name", "option", "arguments"),
    [(name, option, text) for name, options in REFUSED.items() for option, text in options.items()],
)
def test_what_would_come_to_nothing_is_refused_by_name(
    run: Callable[..., object], name: str, option: str, arguments: str
) -> None:
    files = [] if name == "generate" or (option != "suite" and "--replay" in arguments) else ["something"]
    done = run(name, *files, *arguments.split())
    called = next(p.opts[0] for p in COMMANDS[name].params if p.name == option)
    assert done.code == 2
    assert f"{called if called.startswith('-') else called.upper()} would not be honoured here" in done.out + done.err
    assert CONDITIONS[name][option].words in done.out + done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--input S=a --input S=b", "two files are given for the source"),
        ("--input S=a --map T:start=t", '--map is for "T", and there is no such input'),
        ("--input S=a --map start=t --map start=u", "--map says start=t and start=u"),
        ("--input S=a --map start=", "cannot read --map"),
    ],
)
@pytest.mark.parametrize(
    "name", ["run --engine local", "run --engine spark --mode stream", "trace --event e", "explain", "verify"]
)
def test_inputs_that_contradict_each_other_are_refused(
    run: Callable[..., object], lay: Callable[..., object], name: str, arguments: str, says: str
) -> None:
    lay("plan.json", {"op": "source", "name": "S"})
    lay("a", "t,v\n1,2\n")
    command, *options = name.split()
    done = run(command, "plan.json", *options, *arguments.split())
    assert done.code == 2
    assert says in done.err
