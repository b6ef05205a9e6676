"""The forecast page: a knob moves what it should move, A/B, links, keyboard."""

from tests.browser.uploading import csv, upload
from tests.browser.visitor import Visitor


def test_first_visit_shows_a_ready_scenario(visitor: Visitor) -> None:
    visitor.open(charts=2)
    assert "the SLO" in visitor.text
    assert "Try:" in visitor.text
    assert "twin simulate chat-h100" in visitor.text
    assert len(visitor.labels()) == 2


def test_a_knob_moves_the_right_chart_and_is_marked(visitor: Visitor) -> None:
    visitor.open(charts=2)
    before, card = visitor.labels(), visitor.card("TTFT P99")
    visitor.choose("max_num_seqs", "32")
    visitor.page.get_by_text("vs A, worse").first.wait_for()
    after = visitor.labels()
    assert after[0] != before[0]
    assert "A: baseline" in after[0]
    assert visitor.card("TTFT P99") != card
    assert "● scenario: default" in visitor.page.locator("[data-testid=stSidebar]").inner_text()
    assert "policy.max_num_seqs=32" in visitor.text
    visitor.page.wait_for_url("**seqs=32**")
    visitor.shot("forecast-knob")
    visitor.page.get_by_role("button", name="Reset", exact=True).first.click()
    visitor.still()
    visitor.page.get_by_text("B is the same so far").wait_for()
    visitor.page.wait_for_url(lambda address: "seqs" not in address)


def test_pin_as_baseline_and_back(visitor: Visitor) -> None:
    visitor.open("?seqs=32")
    visitor.page.get_by_role("button", name="Pin B as A").click()
    visitor.page.get_by_text("B is the same so far").wait_for()
    visitor.page.wait_for_url("**a.seqs=32**")
    visitor.choose("max_num_seqs", "128")
    visitor.page.get_by_text("vs A, better").first.wait_for()
    visitor.page.get_by_role("button", name="Back to A").click()
    visitor.page.get_by_text("B is the same so far").wait_for()
    assert "policy.max_num_seqs=32" in visitor.text


def test_a_link_shows_the_same_to_another(visitor: Visitor, another: Visitor) -> None:
    visitor.open("?rate=14&seqs=64&a.s=chat-h100&a.rate=14", charts=2)
    shared = visitor.page.url
    another.page.goto(shared)
    another.settle(charts=2)
    assert another.labels() == visitor.labels()
    assert another.card("TTFT P99") == visitor.card("TTFT P99")


def test_what_a_link_asks_in_vain_is_told(visitor: Visitor) -> None:
    visitor.open("?tp=3&nonsense=1&block=16")
    assert "Ignored tp" in visitor.text
    assert "Ignored nonsense" in visitor.text


def test_tab_reaches_every_knob_and_labels_are_unique(visitor: Visitor) -> None:
    visitor.open()
    inputs = visitor.page.locator(
        "[data-testid=stSidebar] input:not([type=file]), [data-testid=stSidebar] [role=combobox]"
    )
    names = [
        one.get_attribute("aria-label") for one in inputs.all() if one.get_attribute("aria-label")
    ]
    assert len(names) > 15
    assert len(names) == len(set(names))
    visitor.page.get_by_role("combobox", name="Scenario").focus()
    seen = set()
    for _ in range(150):
        visitor.page.keyboard.press("Tab")
        label = visitor.page.evaluate("document.activeElement.getAttribute('aria-label')")
        seen.add(label)
    assert set(names[1:]) <= seen


def test_a_chart_can_be_saved(visitor: Visitor) -> None:
    visitor.open(charts=2)
    visitor.page.get_by_role("button", name="Save").first.click()
    with visitor.page.expect_download() as coming:
        visitor.page.get_by_role("button", name="CSV").first.click()
    text = coming.value.path().read_text()
    assert text.startswith("run,latency_ms")
    assert text.count("\n") > 50


def test_what_was_turned_and_brought_stays_on_every_page(visitor: Visitor) -> None:
    visitor.open(charts=2)
    upload(visitor, "mine.csv", csv(400).encode())
    visitor.page.get_by_text("mine.csv: 60 requests").wait_for()
    visitor.number("rate_scale", "2")
    visitor.choose("max_num_seqs", "32")
    visitor.settle(charts=2)
    before = visitor.commands()[-1]
    for name in ("Capacity", "Hardware", "Forecast", "Capacity", "Forecast"):
        visitor.page.get_by_role("link", name=name).first.click()
        visitor.page.wait_for_timeout(500)
        visitor.settle(charts=1)
        assert visitor.commands()[-1] == before
    assert "workload.path=./mine.csv" in before
    assert "workload.rate_scale=2.0" in before
    assert "policy.max_num_seqs=32" in before
