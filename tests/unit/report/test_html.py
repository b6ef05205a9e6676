import html.parser
import json
import re

import pytest
import yaml

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import empty_result, toy_result
from twin.report.html import html_report, scenario_yaml
from twin.report.metrics import summarise

pytest.importorskip("vl_convert")

ATTACK = "<script>alert('x')</script>\"'&<!--"


class _Page(html.parser.HTMLParser):
    """Collects tags, attributes, text and script bodies of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.scripts, self._open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._open[-1] if self._open else ""
        (self.scripts if inside == "script" else self.words).append(data)


@pytest.fixture(scope="module")
def page_text():
    result = toy_result(200, horizon_s=8.0, name=ATTACK, command=f"twin simulate '{ATTACK}'")
    return html_report(result, summarise(result))


def test_the_page_is_self_contained_and_small(page_text):
    assert len(page_text.encode()) <= 1.5e6
    page = _Page(page_text)
    loaded = [a for _, a in page.tags if "src" in a or "href" in a]
    assert loaded == []
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "object", "img")]
    policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
    assert "default-src 'none'" in policy


def test_strings_of_the_inputs_are_text_everywhere(page_text):
    page = _Page(page_text)
    scripts = [a for tag, a in page.tags if tag == "script"]
    assert len(scripts) == 3
    assert ATTACK not in page_text
    assert "<script>alert" not in page_text
    assert any(ATTACK in words for words in page.words)
    payload = json.loads(page.scripts[0])
    assert {chart["id"] for chart in payload["charts"]} >= {"chart-ttft", "chart-steps"}
    assert payload["charts"][0]["spec"]["data"]["values"][0]["run"] == ATTACK


def test_charts_have_text_and_tables(page_text):
    page = _Page(page_text)
    labels = {a["id"] for _, a in page.tags if "id" in a}
    figures = [a for tag, a in page.tags if tag == "figure"]
    assert len(figures) == 7
    assert {a["aria-labelledby"] for a in figures} <= labels
    assert sum(tag == "table" for tag, _ in page.tags) == 8
    assert sum(tag == "details" for tag, _ in page.tags) == 8
    assert ("html", {"lang": "en"}) in page.tags


def test_it_follows_the_readers_theme(page_text):
    assert "prefers-color-scheme: dark" in page_text
    payload = json.loads(_Page(page_text).scripts[0])
    assert payload["themes"]["dark"]["config"]["background"] == "#0E1117"


def test_command_and_scenario_are_shown(page_text):
    words = "".join(_Page(page_text).words)
    assert "Run it again" in words
    assert f"twin simulate '{ATTACK}'" in words
    result = hand_result(name="n")
    assert "Run it again" not in html_report(result, summarise(result))


def test_scenario_yaml_is_the_inputs_without_what_is_no_key_of_it():
    text = scenario_yaml(
        {"name": "ü", "slo": {"ttft_s": 1.0}, "command": "x", "warmup_requests": 3, "sizes": (1, 2)}
    )
    assert yaml.safe_load(text) == {"name": "ü", "slo": {"ttft_s": 1.0}, "sizes": [1, 2]}
    assert text.index("name") < text.index("slo")


def test_an_empty_run_has_words_instead_of_charts():
    text = html_report(empty_result(), summarise(empty_result()))
    assert "No request reached the engine" in text
    assert "<script" not in text
    assert len(text) < 20_000


def test_equal_runs_give_equal_bytes():
    result = hand_result(name="n", slo={"ttft_s": 0.5})
    assert html_report(result, summarise(result)) == html_report(result, summarise(result))


def test_numbers_keep_their_unit_on_the_line(page_text):
    assert re.search(r"\d\u00a0(ms|s)\b", page_text)
