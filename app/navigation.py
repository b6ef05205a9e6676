"""`PAGES`: every page of the app, in one table; a new one is a file and a line."""

from collections.abc import Callable
from dataclasses import dataclass

from app.pages.capacity import capacity_page
from app.pages.forecast import forecast_page
from app.pages.hardware import hardware_page
from app.pages.memory import memory_page
from app.pages.search import search_page


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        title: in the navigation.
        path: in the address; empty for the first.
        icon: a Material symbol.
        draw: draws it.
    """

    title: str
    path: str
    icon: str
    draw: Callable[[], None]


PAGES: tuple[Page, ...] = (
    Page("Forecast", "", ":material/monitoring:", forecast_page),
    Page("Capacity", "capacity", ":material/inventory_2:", capacity_page),
    Page("Hardware", "hardware", ":material/developer_board:", hardware_page),
    Page("Memory", "memory", ":material/memory:", memory_page),
    Page("Search", "search", ":material/search_insights:", search_page),
)
