"""`Visitor`: what a person does in the app, and what must hold wherever they go."""

from pathlib import Path
from typing import Any

CHART = "[data-testid=stVegaLiteChart]"
# Vega's warning while a chart has no data yet is normal; nothing else is.
_NORMAL = ("Infinite extent",)


class Visitor:
    """A browser context of its own: no cookies or uploads of anybody else."""

    def __init__(self, address: str, chromium: Any, shots: Path, **context: Any) -> None:
        self.address, self.shots = address, shots
        settings: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, **context}
        self._context = chromium.new_context(accept_downloads=True, **settings)
        self.page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self.wrong: list[str] = []
        self.outside: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: Any) -> None:
        text = message.text
        bad = message.type == "error" or "Cannot project" in text
        # On a page below the root, Streamlit first asks for its server there, in vain.
        asked = str(message.location.get("url", ""))
        if asked.endswith(("/_stcore/health", "/_stcore/host-config")):
            return
        if bad and not any(normal in text for normal in _NORMAL):
            self.wrong.append(f"{message.type}: {text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:", "ws:")):
            self.outside.append(request.url)

    def open(self, path: str = "", *, charts: int = 1) -> "Visitor":
        """Go to a page and wait until it is drawn, with so many charts at least."""
        self.page.goto(f"{self.address}/{path}")
        return self.settle(charts=charts)

    def settle(self, *, charts: int = 1) -> "Visitor":
        """Wait until the app stands still and so many charts are drawn."""
        # The footer is drawn last.
        self.page.get_by_text("The same on the command line").last.wait_for()
        if charts:
            self.page.locator(f"{CHART} canvas, {CHART} svg.marks").nth(charts - 1).wait_for()
        self.still()
        return self

    def still(self) -> None:
        """Wait until no script runs."""
        self.page.wait_for_function(
            "() => {const app = document.querySelector('[data-testid=stApp]');"
            " return app && app.dataset.testScriptState !== 'running';}"
        )
        self.page.wait_for_timeout(150)

    @property
    def text(self) -> str:
        """Return what stands in the main part of the page."""
        return str(self.page.locator("[data-testid=stMain]").inner_text())

    def commands(self) -> list[str]:
        """Return the command lines on the page; the last is that of the forecast."""
        return list(self.page.locator("[data-testid=stCode]").all_inner_texts())

    def labels(self) -> list[str]:
        """Return what charts are called for those who do not see them."""
        # The element itself or something in it carries the label, by the version of Streamlit.
        return list(
            self.page.eval_on_selector_all(
                CHART,
                "found => found.map(one => one.getAttribute('aria-label') || "
                "one.querySelector('[aria-label]')?.getAttribute('aria-label') || '')",
            )
        )

    def choose(self, label: str, value: str) -> None:
        """Choose a value of a knob, with the keyboard."""
        box = self.page.get_by_role("combobox", name=label)
        box.click()
        box.fill(value)
        box.press("Enter")
        self.still()

    def number(self, label: str, value: str) -> None:
        """Type a number into a knob."""
        box = self.page.get_by_label(label, exact=True)
        box.fill(value)
        box.press("Enter")
        self.still()

    def card(self, title: str) -> str:
        """Return what a card says."""
        cards = self.page.locator("[data-testid=stMetric]")
        return str(cards.filter(has_text=title).first.inner_text())

    def shot(self, name: str) -> None:
        """Keep a picture of the page."""
        self.shots.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(self.shots / f"{name}.png"), full_page=True)

    def check_sound(self) -> None:
        """Nothing broke, every chart is drawn and has words, nobody outside was asked."""
        assert not self.page.locator("[data-testid=stException]").count()
        assert "Something went wrong" not in self.text
        # Charts come a moment after the words around them.
        self.page.wait_for_function(
            "chart => [...document.querySelectorAll(chart)].every(one => {"
            " const drawn = one.querySelector('canvas, svg.marks');"
            " return drawn && drawn.getBoundingClientRect().width > 50; })",
            arg=CHART,
        )
        labels = self.labels()
        assert all(labels), labels
        sizes = self.page.eval_on_selector_all(
            f"{CHART} canvas, {CHART} svg.marks",
            "found => found.map(one => [one.clientWidth || one.getBoundingClientRect().width,"
            " one.clientHeight || one.getBoundingClientRect().height])",
        )
        assert len(sizes) >= len(labels)
        assert all(width > 50 and height > 20 for width, height in sizes), sizes
        assert not self.wrong, self.wrong
        assert not self.outside, self.outside

    def leave(self) -> None:
        """Close the browser's context; nothing may have gone wrong meanwhile."""
        self._context.close()
        assert not self.wrong, self.wrong
        assert not self.outside, self.outside
