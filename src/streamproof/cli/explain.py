"""``streamproof explain``: the plan as a tree, with what each engine supports."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Literal

import typer

from streamproof import extensions
from streamproof.cli.inputs import input_files, open_input
from streamproof.cli.plans import load_plan
from streamproof.cli.screen import print_line
from streamproof.engines.base import support
from streamproof.engines.spark.stream.chain import cut, described
from streamproof.engines.spark.stream.keys import together_because
from streamproof.errors import PlanError, together
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.explain import explain as explained
from streamproof.plan.explain import mermaid
from streamproof.plan.rewrites import rewrite

Shape = Literal["tree", "mermaid", "stages", "json", "xml", "python", "eql", "sql"]


def explain(
    plan: Annotated[str, typer.Argument(help="A plan: FILE.json, .xml, .eql, .sql or module:object.", metavar="PLAN")],
    to: Annotated[
        Shape, typer.Option("--as", help="A tree, a Mermaid diagram, stages of a stream on Spark, or a language.")
    ] = "tree",
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE for each source: show what the plan becomes over these.")
    ] = None,
    map: Annotated[
        list[str] | None, typer.Option(help="Columns of these files, e.g. start=time,duration=1h,unit=ms.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The tree, sources and support as one JSON object.")] = False,
) -> None:
    """Show a plan as a tree with each engine's support, or print it in another language."""
    loaded = load_plan(plan)
    schemas = _schemas(input or [], map or [])
    if schemas:
        loaded = rewrite(loaded, schemas)
    typed = _typed(loaded, schemas)
    if json:
        language = extensions.load("languages", "json")
        shown = {"plan": jsonlib.loads(language.dumps(loaded)), "sources": nodes.sources(loaded), "support": support()}
        print_line(jsonlib.dumps(shown))
    elif to == "tree":
        print_line(explained(loaded, typed=typed, support=support()))
    elif to == "mermaid":
        print_line(mermaid(loaded))
    elif to == "stages":
        print_line("\n".join(_stages(typed)))
    else:
        print_line(extensions.load("languages", to).dumps(loaded))


def _stages(typed: Typed | None) -> list[str]:
    """The stages of a stream on Spark, where the plan is cut wherever its key changes."""
    if typed is None:
        raise PlanError("stages depend on the columns of the sources", fix="give --input NAME=FILE for each source")
    fragments = cut(typed)
    because = together_because(typed)
    return [
        *described(fragments),
        *([] if because is None else [f"fused into one stage, it has one bucket: {because}"]),
    ]


def _schemas(inputs: list[str], maps: list[str]) -> dict[str, Schema]:
    """The schemas of files; nothing else of them is read."""
    files = input_files(inputs, maps)
    return {name: open_input(name, path, maps=maps, schema=None).schema for name, path in files.items()}


def _typed(plan: nodes.Plan, schemas: dict[str, Schema]) -> Typed | None:
    """The typed plan, where the schemas of the sources are known."""
    try:
        return check(plan, schemas)
    except PlanError as error:
        known = [one for one in (error, *error.others) if "no schema is known" not in one.what]
        if known:
            raise together(known) from None
        return None
