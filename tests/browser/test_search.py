"""A short search in a real browser, to its end; its export downloaded and parsed."""

import io
import re
import zipfile
from typing import Any

import yaml

from tests.browser.visitor import Visitor

ALL_MS = 180_000


def test_a_search_to_its_end_and_its_export(visitor: Visitor, another: Visitor) -> None:
    visitor.open("search?requests=300", charts=0)
    visitor.page.get_by_text("No study yet").wait_for()
    visitor.number("Trials", "10")
    visitor.page.get_by_role("button", name="Start 10 trials").click()
    visitor.page.get_by_text("Done: 10 trials, judged.").wait_for(timeout=ALL_MS)
    visitor.settle(charts=1)
    visitor.check_sound()
    visitor.shot("search-done")
    visitor.page.wait_for_url(re.compile(r"study=[0-9a-f]{32}"))
    address = visitor.page.url

    # Who has the address sees the same study; who has not sees none.
    another.page.goto(address)
    another.page.get_by_text("Done: 10 trials, judged.").wait_for()
    verdict = "[data-testid=stMain] h4"
    assert (
        another.page.locator(verdict).first.inner_text()
        == visitor.page.locator(verdict).first.inner_text()
    )

    visitor.page.get_by_role("tab", name="Validate and export").click()
    visitor.page.get_by_role("button", name="Download everything (ZIP)").wait_for(timeout=ALL_MS)
    visitor.still()
    with visitor.page.expect_download() as coming:
        visitor.page.get_by_role("button", name="Download everything (ZIP)").click()
    _check(coming.value.path().read_bytes())
    visitor.shot("search-export")


def _check(content: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        names = packed.namelist()
        files: dict[str, Any] = {name: packed.read(name).decode() for name in names}
    engine = next(name for name in names if "vllm" in name and name.endswith(".yaml"))
    config = yaml.safe_load(files[engine])
    assert config["model"]
    assert "Forecast, from a simulation" in files[engine]
    policy = next(name for name in names if name.endswith("policy.yaml"))
    assert yaml.safe_load(files[policy])["schema_version"] == 1
    manifests = next(name for name in names if "kubernetes" in name and name.endswith(".yaml"))
    kinds = {one["kind"] for one in yaml.safe_load_all(files[manifests]) if one}
    assert "Deployment" in kinds


def test_a_strangers_visit_lists_nothing(visitor: Visitor) -> None:
    visitor.open("search", charts=0)
    assert "No study yet" in visitor.text
    visitor.open(f"search?study={'0' * 32}", charts=0)
    assert "is not here" in visitor.text
