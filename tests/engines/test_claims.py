"""What saved state claims, told to people."""

from __future__ import annotations

import pytest

from streamproof.engines.claims import differences, refuse_other
from streamproof.errors import InputError


@pytest.mark.parametrize(("before", "now"), [("größe", "naïve"), ("日本", None), ("a'b", 'a"b'), ("é" * 40, "e")])
def test_a_difference_shows_text_as_it_is_written(before: str, now: str | None) -> None:
    with pytest.raises(InputError) as raised:
        refuse_other({"name": before}, {"name": now}, saved="the savepoint", running="this query")
    assert before in raised.value.what
    assert now is None or now.replace('"', '\\"') in raised.value.what
    assert list(differences({"name": before}, {"name": before})) == []
