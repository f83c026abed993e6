"""Files that are made of a case hold nothing but data, whatever the case is called and contains."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from streamproof.cli.verify import save_found
from streamproof.errors import InputError
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.repro import Repro, name_of, pytest_file, read, write
from streamproof.workbench.verdict import Verdict

HOSTILE = [
    "../../x", "/etc/cron.d/x", '"; import os; os.system("touch HERE") #', "'''\nimport os\nopen('HERE', 'w')\n'''",
    '"""\nopen("HERE", "w")\n"""', "\\", "\\'''", "a\nb", "{open('HERE','w')}", "%s{0}", "\x00\x1b[2J", "x" * 5_000,
    "ünï / ☃", "", ".", "..",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_field_of_a_repro_is_code_or_a_path(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "repros"
    case = replace(seeded_case(3), scenario=text)
    verdict = Verdict("fails", text, text, engine=text, law=text)
    found = Repro(case, verdict, text, text, text)
    result = SimpleNamespace(found=[found], repros=[])
    save_found(result, folder)
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    assert len(files) == 2
    for path in files:
        assert path.parent == folder
        assert re.fullmatch(r"[A-Za-z0-9_]+\.(json|py)", path.name)
        assert len(path.name) < 200

    tree = ast.parse(pytest_file(found))
    *_, about, document, test = tree.body
    assert isinstance(test, ast.FunctionDef)
    assert test.name == f"test_{name_of(found)}"
    imports = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == [
        "import json", "from streamproof.workbench.bench import replay", "from streamproof.workbench.repro import read",
    ]  # fmt: skip
    for value in (about, document):
        assert isinstance(value, ast.Assign)
        assert isinstance(ast.literal_eval(value.value), str)
    assert ast.unparse(test).splitlines()[1:] == [
        "    verdict = replay(read(json.loads(REPRO)))", "    assert not verdict.is_found, verdict.text",
    ]  # fmt: skip
    space: dict[str, object] = {}
    exec(compile(ast.Module([document], []), "repro", "exec"), space)
    import json

    again = read(json.loads(str(space["REPRO"])))
    assert (again.case.scenario, again.engine) == (text, text)
    assert again.case.id == case.id


@pytest.mark.parametrize("key", ["seed", "scenario", "engine", "schedule", "streams", "verdict", "horizon"])
def test_a_field_of_another_kind_is_refused(key: str) -> None:
    document = write(Repro(seeded_case(3), Verdict("holds"), "local"))
    with pytest.raises(InputError, match="the repro file is damaged"):
        read({**document, key: ["__import__('os')"]})
