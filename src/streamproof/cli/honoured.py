"""Options that a command honours only beside certain others. Given where nothing would come of them, they are refused.

A table says for each command which option needs what; whatever is in no table is always honoured, and a test holds
every option of every command against that.

>>> CONDITIONS["replay"]["key"].met({"to": "played"})
False
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import typer
from typer.core import TyperCommand

from streamproof import extensions
from streamproof.engines.base import capabilities_of
from streamproof.errors import InputError

Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Needs:
    """What an option needs in order to mean something."""

    words: str  # how to ask for it, after "give it "
    met: Callable[[Given], bool]


def _with(option: str) -> Needs:
    return Needs(f"with {option}", lambda given: bool(given[option.removeprefix("--").replace("-", "_")]))


def _to(given: Given) -> str:
    """What kind of target a replay goes to."""
    text = given["to"]
    return "-" if text == "-" else text.partition("://")[0] if "://" in text else "folder"


def _honours(option: str, given: Given) -> bool:
    """Whether the engine of a run honours an option, in the way in which it is to run."""
    offered = capabilities_of(given["engine"])
    return option in (offered.stream_options if _streams(given) else offered.options)


def _takes_dsn(name: str) -> bool:
    """Whether a server can be named for an engine; one that is not registered is a mode of another."""
    return name in extensions.names("engines") and "dsn" in capabilities_of(name).options


def _streams(given: Given) -> bool:
    return bool(given["mode"] == "stream")


def _runs(given: Given) -> bool:
    return not _streams(given) and not given["show_sql"]


def _shows_table(given: Given) -> bool:
    return not given["json"] and given["out"] is None and given["emit"] == "cht" and not given["show_sql"]


_BATCH: Final = Needs("without --mode stream", lambda given: not _streams(given))
_RUNS: Final = Needs("without --mode stream and --show-sql", _runs)
_NO_SQL: Final = Needs("without --show-sql", lambda given: not given["show_sql"])
_HERE: Final = Needs("without --on here", lambda given: given["on"] != "here")
_DRAWS: Final = Needs("without --replay, which judges one saved case", lambda given: given["replay"] is None)
_SUITE: Final = Needs(
    "with a suite; a plan with --input runs in one process to its end",
    lambda given: given["replay"] is None and not given["input"],
)


def _honoured(option: str, words: str) -> Needs:
    """An option of some engines: their `Capabilities` say which."""
    return Needs(words, lambda given: not given["show_sql"] and _honours(option, given))


_LIVE: Final = "with --engine local"
_NUMBERS: Final = "with --engine local or --mode stream"

CONDITIONS: Final[Mapping[str, Mapping[str, Needs]]] = {
    "run": {
        "out": _NO_SQL,
        "emit": _NO_SQL,
        "overwrite": Needs(
            "with --out FILE or --savepoint FILE",
            lambda given: (given["out"] is not None or given["savepoint"] is not None) and _runs(given),
        ),
        "rejects": Needs("without --mode stream, which keeps them beside its checkpoint", lambda g: not _streams(g)),
        "dead_letters": Needs(
            "with --on-error dead_letter, and without --mode stream, which keeps them beside its output",
            lambda given: given["on_error"] == "dead_letter" and _runs(given),
        ),
        "dsn": Needs("with --engine postgres", lambda given: _honours("dsn", given)),
        "growing": Needs(
            "with --mode stream --checkpoint FOLDER",
            lambda given: given["checkpoint"] is not None and _streams(given) and _honours("growing", given),
        ),
        "emission": Needs(_NUMBERS, lambda given: _honours("emission", given)),
        **{
            name: _honoured(name, _LIVE)
            for name in ("batch_size", "savepoint", "from_savepoint", "late_file", "on_module_error")
        },
        "module_letters": Needs(
            "with --on-module-error dead-letter", lambda given: given["on_module_error"] == "dead-letter"
        ),
        "metrics": Needs(_NUMBERS, lambda given: _honours("metrics", given)),
        "show_sql": _BATCH,
        "limit": Needs("where a table is shown: without --json, --out, --emit events and --show-sql", _shows_table),
    },
    "explain": {
        "map": _with("--input"),
        "to": Needs("without --json, which shows everything", lambda given: not given["json"]),
    },
    "trace": {"map": _with("--input")},
    "generate": {"overwrite": _with("--out")},
    "analyze": {
        "delay": _with("--batch-rows"),
        "window": _with("--batch-rows"),
        "overwrite": _with("--html"),
        "partitions": _HERE,
    },
    "disorder": {"partitions": _HERE},
    "replay": {
        "speed": Needs("without --as-fast-as-possible", lambda given: not given["as_fast_as_possible"]),
        "every": Needs(
            "with --to FOLDER, without --as-fast-as-possible",
            lambda given: _to(given) == "folder" and not given["as_fast_as_possible"],
        ),
        "rows_per_file": Needs(
            "with --to FOLDER --as-fast-as-possible",
            lambda given: _to(given) == "folder" and given["as_fast_as_possible"],
        ),
        "key": Needs("with --to kafka://broker:port/topic", lambda given: _to(given) == "kafka"),
        "overwrite": Needs("with --to FOLDER", lambda given: _to(given) == "folder"),
    },
    "qos": {"overwrite": _with("--plot")},
    "serve": {"overwrite": _with("--report")},
    "verify": {
        "suite": _DRAWS,
        "input": _DRAWS,
        "map": _with("--input"),
        "oracle": _DRAWS,
        "dsn": Needs(
            "with --engine postgres, --oracle postgres or --replay",
            lambda g: g["replay"] is not None or any(map(_takes_dsn, (*(g["engine"] or ()), g["oracle"]))),
        ),
        "cases": _DRAWS,
        "seed": _DRAWS,
        "jobs": _SUITE,
        "time_budget": _SUITE,
        "most": _SUITE,
        "report": _DRAWS,
        "overwrite": _with("--report"),
        "repros": _DRAWS,
        "resume": _SUITE,
    },
}


class Command(TyperCommand):
    """A command that refuses options which it would not honour."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # as in `invoke`
        """Read the command line, in which an option that takes one value is given once: the last would win."""
        given = self.make_parser(ctx).parse_args(args=list(args))[2]
        for name, count in Counter(p.name for p in given if p.nargs == 1 and not getattr(p, "is_flag", False)).items():
            parameter = next(p for p in given if p.name == name)
            if count > 1 and not getattr(parameter, "multiple", False):
                raise InputError(f"{parameter.opts[0]} is given {count} times", fix="give it once")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # the Context of Typer's own Click
        """Run the command, if everything that was given means something."""
        for name, needs in CONDITIONS.get(self.name or "", {}).items():
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE" and not needs.met(ctx.params):
                raise InputError(f"{self._called(name)} would not be honoured here", fix=f"give it {needs.words}")
        return super().invoke(ctx)

    def _called(self, name: str) -> str:
        """An option or argument, as people write it."""
        found = next(parameter for parameter in self.params if parameter.name == name)
        return found.opts[0] if found.opts[0].startswith("-") else f"the argument {found.opts[0].upper()}"
