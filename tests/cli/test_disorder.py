"""``streamproof disorder``: the published configuration as it stands, tables, manifests, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def document(**experiment: Any) -> dict[str, Any]:
    return {
        "dataSource": {"file": "s.csv", "seperator": ",", "time": {"timeIndex": 0, "sourceTimeUnit": "ms"}},
        "experimentDataConfigurations": [
            {"targetOutOfOrderFactor": 20, "minDelay": 0, "maxDelay": 2000, "delaySeed": 7, **experiment}
        ],
    }


def test_a_data_set_and_its_manifest(run, lay, tmp_path: Path) -> None:
    lay("s.csv", "".join(f"{n * 100},x\n" for n in range(1000)))
    config = lay("c.json", document())
    done = run("disorder", config, "--out", "made")
    assert done.code == 0
    assert "s-1.csv" in done.out
    assert "20 % (200)" in done.out
    manifest = json.loads((tmp_path / "made/s-1.manifest.json").read_text())
    assert manifest["achieved"] == {"factor": 20.0, "events": 200}
    assert manifest["config"]["experimentDataConfigurations"][0]["delaySeed"] == 7
    assert len((tmp_path / "made/s-1.csv").read_text().splitlines()) == 1000
    again = run("disorder", config, "--out", "made", "--json")
    assert again.code == 2
    assert "exists" in json.loads(again.out)["what"]
    assert json.loads(run("disorder", config, "--out", "made", "--overwrite", "--json").out) == manifest


def test_out_of_reach_is_said_plainly(run, lay) -> None:
    lay("s.csv", "".join(f"{n * 10_000},x\n" for n in range(100)))
    done = run("disorder", lay("c.json", document()))
    assert done.code == 1
    assert "20 % cannot be reached with these delays: the highest is 0 % (0 events)" in done.err


def test_mistakes(run, lay) -> None:
    lay("s.csv", "1,x\n2,x\n")
    for changes, what in (
        ({"targetOutOfOrderFactor": 120}, '"targetOutOfOrderFactor" cannot be 120'),
        ({"minDelay": 9000}, "minDelay 9000 is more than maxDelay 2000"),
        ({"maxDely": 1}, 'unknown key "maxDely"'),
    ):
        done = run("disorder", lay("c.json", document(**changes)))
        assert done.code == 2
        assert what in done.err
        assert "experimentDataConfigurations[0]" in done.err
    assert run("disorder", "none.json").code == 2
