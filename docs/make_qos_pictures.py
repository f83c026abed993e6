"""Draws the pictures of the pages on quality of service: python docs/make_qos_pictures.py"""

from __future__ import annotations

from pathlib import Path

from streamproof.pictures.service_curves import draw_curves, draw_lines
from streamproof.qos.config import load_config
from streamproof.qos.simulate import POLICIES
from streamproof.qos.study import study, sweep

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples/qos"
RATES = [f"{n}/20" for n in range(4, 41, 2)]


def main() -> None:
    """The curves and misses of the worked example, the flood, and the sweep."""
    for name in ("worked", "flood"):
        found = study(load_config(EXAMPLES / f"{name}.json"))
        simulation = found.simulation or {}
        misses = {p: {n: got.miss_percent for n, got in by.items()} for p, by in simulation.items()}
        draw_curves(found.curves() if name == "worked" else [], HERE / f"qos-{name}.svg", misses=misses)
    config = load_config(EXAMPLES / "worked.json")
    steps = sweep(config.queries, config.machine, "Q2", RATES)
    lines = {policy: [(float(step.rate), step.missed(policy)) for step in steps] for policy in POLICIES}
    draw_lines(
        HERE / "qos-sweep.svg", lines, title="Q2 sends, and reserves, more and more", across="tasks of Q2 per ms",
        up="missed deadlines of all queries, %", marks={"admitted up to here": 4 / 3},
    )  # fmt: skip


if __name__ == "__main__":
    main()
