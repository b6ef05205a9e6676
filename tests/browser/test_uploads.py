"""Uploads in a real browser: a good one changes the figures, bad ones are refused in words."""

import gzip
import io
import zipfile
from pathlib import Path

from tests.browser.uploading import csv, files_of, upload
from tests.browser.visitor import Visitor

GOOD = csv(400)


def test_a_good_trace_is_simulated_and_in_no_link(visitor: Visitor, another: Visitor) -> None:
    visitor.open(charts=2)
    before = visitor.card("TTFT P99")
    upload(visitor, "mine.csv", GOOD.encode())
    visitor.page.get_by_text("mine.csv: 60 requests").wait_for()
    visitor.settle(charts=2)
    assert visitor.card("TTFT P99") != before
    assert "workload.path=./mine.csv" in visitor.text
    visitor.page.get_by_role("button", name="Share").click()
    visitor.page.get_by_text("This view uses an upload").wait_for()
    # Another visitor at the same time sees the example, not this trace.
    another.open(charts=2)
    assert another.card("TTFT P99") == before
    assert "mine.csv" not in another.page.content()


def test_two_visitors_with_different_uploads(visitor: Visitor, another: Visitor) -> None:
    other = csv(4000)
    visitor.open(charts=2)
    another.open(charts=2)
    upload(visitor, "one.csv", GOOD.encode())
    upload(another, "two.csv", other.encode())
    visitor.page.get_by_text("one.csv: 60 requests").wait_for()
    another.page.get_by_text("two.csv: 60 requests").wait_for()
    visitor.settle(charts=2)
    another.settle(charts=2)
    assert "two.csv" not in visitor.page.content()
    assert "one.csv" not in another.page.content()
    assert visitor.card("TTFT P99") != another.card("TTFT P99")


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("trace.csv", b"0" * 50_000_000)
    return out.getvalue()


BAD = {
    "empty.csv": (b"", "empty"),
    "page.csv": (b"<!DOCTYPE html><html><script>alert(1)</script></html>", "web page"),
    "formula.csv": (
        b'TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,"=1+1",5\n',
        "Not taken",
    ),
    "bomb.csv": (_zip_bomb(), "packed (ZIP)"),
    "packed.csv": (gzip.compress(b"0" * 1_000_000), "packed (gzip)"),
    "noise.jsonl": (bytes(range(256)), "Not taken"),
}


def test_bad_traces_are_refused_in_words(visitor: Visitor) -> None:
    visitor.open(charts=2)
    before = visitor.card("TTFT P99")
    told = visitor.page.locator("[data-testid=stSidebar] [data-testid=stAlert]")
    for name, (content, words) in BAD.items():
        upload(visitor, name, content)
        told.filter(has_text=name).first.wait_for()
        sentence = told.first.inner_text()
        assert words in sentence
        assert "servetwin-" not in sentence, "no path of the server is told"
        assert visitor.card("TTFT P99") == before


def test_300_megabytes_are_refused_in_words(visitor: Visitor, tmp_path: Path) -> None:
    large = tmp_path / "large.csv"
    with large.open("wb") as out:
        out.truncate(300_000_000)
    visitor.open(charts=2)
    files_of(visitor).first.set_input_files(str(large))
    visitor.page.get_by_text("64").first.wait_for()
    sidebar = visitor.page.locator("[data-testid=stSidebar]").inner_text()
    assert "must be" in sidebar or "exceeds" in sidebar, sidebar


def test_a_scenario_that_names_a_file_of_the_server_is_refused(visitor: Visitor) -> None:
    text = (
        "schema_version: 1\nllm: llama-3.1-8b\ngpu: h100_sxm\n"
        "workload: {kind: trace, path: /etc/passwd}\n"
    )
    visitor.open()
    upload(visitor, "mine.yaml", text.encode(), place=1)
    told = visitor.page.locator("[data-testid=stSidebar] [data-testid=stAlert]")
    told.first.wait_for()
    assert "names a file" in told.first.inner_text()
    assert "root:" not in visitor.page.content()


def test_an_own_scenario_is_shown_and_downloaded_again(visitor: Visitor) -> None:
    text = (
        "schema_version: 1\nname: ours\nllm: llama-3.1-8b\ngpu: h200_sxm\n"
        "workload: {kind: closed_loop, concurrency: 8, num_requests: 64,\n"
        "  prompt_tokens: 500, output_tokens: 60}\n"
    )
    visitor.open()
    upload(visitor, "ours.yaml", text.encode(), place=1)
    visitor.page.get_by_text("(uploaded scenario)").first.wait_for()
    visitor.settle(charts=2)
    visitor.choose("concurrency", "16")
    with visitor.page.expect_download() as coming:
        visitor.page.get_by_role("button", name="Download", exact=True).click()
    saved = coming.value.path().read_text()
    assert "concurrency: 16" in saved
    assert "gpu: h200_sxm" in saved
