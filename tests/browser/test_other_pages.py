"""Capacity, hardware and memory in a real browser: a knob changes what they say and draw."""

from tests.browser.visitor import Visitor


def test_capacity_follows_the_model(visitor: Visitor) -> None:
    visitor.open("capacity", charts=2)
    assert "Fits on 1×H100" in visitor.text
    before = visitor.labels()
    visitor.choose("llm", "llama-3.3-70b")
    visitor.page.get_by_text("Does not fit").first.wait_for()
    visitor.settle(charts=1)
    assert visitor.labels() != before
    visitor.check_sound()
    visitor.shot("capacity-does-not-fit")


def test_how_many_gpus_is_answered(visitor: Visitor) -> None:
    visitor.open("capacity?requests=300&rate=30&ttft=1.0", charts=2)
    visitor.page.get_by_role("tab", name="How many GPUs?").click()
    visitor.page.get_by_text("within the forecast's error").first.wait_for(timeout=120_000)
    visitor.check_sound()
    visitor.shot("capacity-how-many")


def test_whether_fp8_kv_is_worth_it_is_answered(visitor: Visitor) -> None:
    visitor.open("capacity?requests=300", charts=2)
    visitor.page.get_by_role("tab", name="KV dtype").click()
    visitor.page.get_by_text("FP8 KV:").first.wait_for(timeout=120_000)
    visitor.check_sound()


def test_every_tab_of_the_hardware_page(visitor: Visitor) -> None:
    visitor.open("hardware", charts=1)
    for tab in ("Kernels", "Memory", "KV layout", "Collectives", "Calibration"):
        visitor.page.get_by_role("tab", name=tab, exact=True).click()
        visitor.still()
        assert "Something went wrong" not in visitor.text
        visitor.shot(f"hardware-{tab.lower().replace(' ', '-')}")
    visitor.check_sound()


def test_what_breaks_first_is_answered(visitor: Visitor) -> None:
    visitor.open("?requests=300", charts=2)
    visitor.page.get_by_role("tab", name="Load").click()
    visitor.page.get_by_text("First to break").first.wait_for(timeout=120_000)
    visitor.settle(charts=1)
    visitor.check_sound()
    visitor.shot("forecast-load")
    for tab in ("Steps", "KV cache", "Queue"):
        visitor.page.get_by_role("tab", name=tab, exact=True).click()
        visitor.settle(charts=1)
        visitor.check_sound()
        visitor.shot(f"forecast-{tab.lower().replace(' ', '-')}")


def test_what_preemptions_cost_is_answered(visitor: Visitor) -> None:
    visitor.open("memory?requests=300&llm=qwen3-32b&len=8192", charts=2)
    visitor.page.get_by_text("of recomputation").first.wait_for(timeout=120_000)
    visitor.settle(charts=2)
    visitor.check_sound()
    visitor.shot("memory-pool")
    before = visitor.labels()
    visitor.choose("tp", "2")
    visitor.page.get_by_text("no request is preempted").first.wait_for(timeout=120_000)
    visitor.settle(charts=2)
    visitor.page.wait_for_function(
        "before => [...document.querySelectorAll('[data-testid=stVegaLiteChart]')]"
        ".some(chart => !before.includes(chart.getAttribute('aria-label')))",
        arg=before,
        timeout=120_000,
    )
    visitor.page.get_by_role("tab", name="Hits and preemptions").click()
    visitor.page.get_by_text("No request was preempted.").wait_for()
    visitor.page.get_by_role("tab", name="Eviction policies").click()
    visitor.page.get_by_text("With this pool (").wait_for(timeout=120_000)
    visitor.settle(charts=2)
    visitor.check_sound()
    visitor.shot("memory-eviction")
