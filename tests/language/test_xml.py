"""Plans as XML: the shape of the elements, and what is refused."""

from __future__ import annotations

import pytest

from streamproof.errors import PlanError
from streamproof.language import xml
from streamproof.language.notation import MAX_DEPTH, MAX_SIZE
from streamproof.query.aggregates import count, percentile
from streamproof.query.column import desc
from streamproof.query.stream import let, ref, source

S, R = source("S"), source("R")


def refused(text: str) -> PlanError:
    with pytest.raises(PlanError) as caught:
        xml.loads(text)
    return caught.value


def test_the_shape_of_the_elements() -> None:
    stream = (
        source("S", {"k": "string"}, unit="ms")
        .join(R, "l.k = r.k", select={"k": "l.k", "v": "r.v"})
        .group_apply("k", apply=lambda g: g.hopping(10, hop=5).aggregate(n=count(), p=percentile("v", 0.9)))
        .tumbling("1s")
        .top(3, by=desc("n"))
    )
    wanted = """
<plan version="1">
  <topk k="3">
    <group_apply>
      <join on="l.k = r.k">
        <left>
          <source name="S" unit="ms">
            <schema>
              <column name="k" type="string" />
            </schema>
          </source>
        </left>
        <right>
          <source name="R" />
        </right>
        <select>
          <column name="k" expr="l.k" />
          <column name="v" expr="r.v" />
        </select>
      </join>
      <key name="k" />
      <apply>
        <agg>
          <group_input />
          <window type="hopping" size="10" hop="5" />
          <aggregate name="n" fn="count" />
          <aggregate name="p" fn="percentile" expr="v">
            <param type="float64" value="0.9" />
          </aggregate>
        </agg>
      </apply>
    </group_apply>
    <window type="tumbling" size="1s" />
    <by expr="n" direction="desc" />
  </topk>
</plan>"""
    assert "\n" + stream.to_xml() == wanted
    assert xml.loads(wanted.strip()) == stream.plan


def test_bindings_and_parameters() -> None:
    stream = let(M=S.select("v")).in_(ref("M").snapshot().udo("f", params={"a": 1, "b": "1", "c": None, "d": True}))
    text = stream.to_xml()
    assert '<bind name="M">' in text
    for line in ('name="a" type="int64" value="1"', 'name="b" type="string" value="1"', 'name="c" type="null"'):
        assert f"<param {line} />" in text
    assert xml.loads(text) == stream.plan


def test_a_bare_node_is_version_1() -> None:
    assert xml.loads('<source name="S"/>') == S.plan


BOMB = '<!DOCTYPE p [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><source name="&b;"/>'
FILE = '<!DOCTYPE p [<!ENTITY f SYSTEM "file:///etc/passwd">]><source name="&f;"/>'
REMOTE = '<!DOCTYPE p SYSTEM "http://example.org/p.dtd"><source name="S"/>'


@pytest.mark.parametrize("text", [BOMB, FILE, REMOTE, "<!DOCTYPE p><source name='S'/>"])
def test_document_types_and_entities_are_refused(text: str) -> None:
    error = refused(text)
    assert error.what == "plan files must not declare or use entities: DTDForbidden"
    assert error.fix == "remove the DOCTYPE"


WRONG = [
    ("<plan", "not XML: unclosed token: line 1, column 0", "line 1, column 0"),
    ('<plan version="2"><x/></plan>', "the plan file has version '2', this program reads version 1", None),
    ("<plan/>", "<plan> needs exactly one node, got 0", None),
    ("<wehre/>", "unknown op 'wehre'", "<wehre>"),
    ('<where expr="v"/>', 'where needs the field "in"', "plan"),
    ('<where expr="v"><source name="S"/><source name="R"/></where>', "where takes one input, got another", "<where>"),
    ('<where expr="v" exprs="w"><source name="S"/></where>', 'where has no field "exprs"', "plan"),
    ('<where expr="v">text<source name="S"/></where>', "text stands between the elements: 'text'", "<where>"),
    ('<select><source name="S"/><column name="a"/></select>', '<column> needs the attribute "expr"', None),
    (
        '<select><source name="S"/><column name="a" expr="v"/><column name="a" expr="v"/></select>',
        'two elements <column> are called "a"', None,
    ),
    ("<join><left/></join>", "<left> needs exactly one node, got 0", None),
    (
        '<topk k="x"><source name="S"/><window type="snapshot"/><by expr="v"/></topk>',
        "expected a whole number, got 'x'", "plan.k",
    ),
    (
        '<udo fn="f"><source name="S"/><window type="snapshot"/><param name="a" type="int64" value="x"/></udo>',
        "'x' is not of the type int64", "<param>",
    ),
    (
        '<advance_time every="3" final="maybe"><source name="S"/></advance_time>',
        "expected true or false, got 'maybe'", "plan.final",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "at"), WRONG, ids=[case[1] for case in WRONG])
def test_errors_say_what_and_where(text: str, what: str, at: str | None) -> None:
    error = refused(text)
    assert error.what == what
    assert error.at == at


def test_deep_plans_are_refused() -> None:
    deep = MAX_DEPTH + 1
    error = refused("<to_point>" * deep + '<source name="S"/>' + "</to_point>" * deep)
    assert error.name == "limit_exceeded"
    assert refused("<to_point>" * 150_000).name == "bad_plan"  # not even closed


def test_files_that_are_too_large_are_refused_unread() -> None:
    assert refused(" " * (MAX_SIZE + 1)).name == "limit_exceeded"
