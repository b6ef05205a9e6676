"""Links: a view and its baseline as a query string, and back, with what had to be ignored."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from app.answers.capacity.deployment import problem_but_for_room
from app.answers.search.studies import is_id
from app.answers.setup import Setup
from app.knobs.knob import Value
from app.knobs.table import BY_KEY, BY_SHORT
from app.knobs.values import parsed, written
from app.state.view import FIRST, UPLOADED, View
from twin.errors import InputError
from twin.load.examples import example_names

VERSION = "1"
BASELINE = "a."
"""What keys of the baseline begin with."""

STUDY = "study"
"""Key of the id of a study: whoever has it may watch and stop that study."""

_OWN_KEYS = ("v", "h", "s", "price", STUDY)
LEAST_USD, MOST_USD = 0.01, 1_000.0
"""Prices of a GPU-hour that make sense here."""

MOST_TOLD = 5
"""Sentences about one link; further ones are counted."""
_MOST_KEYS = 200
"""Of a link that are looked at: all knobs of a view and its baseline are far fewer."""

DIGITS = 10
"""Of a scenario's digest that a link carries."""


@dataclass(frozen=True, slots=True)
class Linked:
    """What a link asks for.

    Attributes:
        view: what to show.
        baseline: what to compare with; None: the scenario as its file has it.
        ignored: what could not be used, a sentence each.
        digest: of the view where the link was made; empty: it has none.
        study: id of a study; empty: none.
    """

    view: View
    baseline: View | None
    ignored: tuple[str, ...]
    digest: str
    study: str = ""


def query(view: View, baseline: View | None, digest: str, study: str = "") -> dict[str, str]:
    """Return the query parameters of a view; empty where nothing differs from a first visit.

    Args:
        view: what is on screen.
        baseline: what it is compared with; None: the scenario as its file has it.
        digest: of the view's setup.
        study: id of the visitor's study; empty: none.
    """
    found = _written(view, "")
    if baseline is not None:
        found |= {f"{BASELINE}s": baseline.scenario} | _written(baseline, BASELINE)
    found = {"v": VERSION, **found, "h": digest[:DIGITS]} if found else {}
    return {**found, STUDY: study} if study else found


def _written(view: View, prefix: str) -> dict[str, str]:
    found = {} if view.scenario == FIRST else {f"{prefix}s": view.scenario}
    if view.usd_per_gpu_hour is not None and not prefix:
        found["price"] = written(view.usd_per_gpu_hour)
    for key, value in view.changes.items():
        found[f"{prefix}{BY_KEY[key].short}"] = written(value)
    return found


def linked(parameters: Mapping[str, str]) -> Linked:
    """Return what a link's parameters ask for; whatever cannot be used is left out and told."""
    ignored: list[str] = []
    parameters = dict(islice(parameters.items(), _MOST_KEYS))
    if parameters.get("v", VERSION) != VERSION:
        ignored.append("This link was made for another version of the app; what fits is shown.")
    view = _view(parameters, "", ignored)
    asks = any(key.startswith(BASELINE) for key in parameters)
    baseline = _view(parameters, BASELINE, ignored) if asks else None
    study = parameters.get(STUDY, "")
    if study and not is_id(study):
        ignored.append("Ignored study: it is no study's id.")
        study = ""
    return Linked(view, baseline, _few(ignored), parameters.get("h", ""), study)


def _few(ignored: list[str]) -> tuple[str, ...]:
    more = len(ignored) - MOST_TOLD
    if more <= 0:
        return tuple(ignored)
    return (*ignored[:MOST_TOLD], f"Ignored {more} more of this link.")


def _view(parameters: Mapping[str, str], prefix: str, ignored: list[str]) -> View:
    name = parameters.get(f"{prefix}s", FIRST)
    if name == UPLOADED:
        ignored.append("This link's scenario was an upload, which links do not carry.")
        return View()
    if name not in example_names():
        ignored.append(f"Ignored s={name[:40]}: there is no such scenario.")
        name = FIRST
    changes: dict[str, Value] = {}
    for short, text in _of(parameters, prefix):
        if short not in BY_SHORT:
            ignored.append(f"Ignored {prefix}{short[:40]}: there is no such knob.")
            continue
        try:
            changes[BY_SHORT[short].key] = parsed(BY_SHORT[short], text)
        except InputError as error:
            ignored.append(f"Ignored {prefix}{short}: {error}")
    return View(name, _valid(name, changes, ignored), _price(parameters, ignored))


def _price(parameters: Mapping[str, str], ignored: list[str]) -> float | None:
    text = parameters.get("price")
    if text is None:
        return None
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not LEAST_USD <= price <= MOST_USD:
        ignored.append(f"Ignored price={text[:40]}: write dollars a GPU-hour, for example 2.5")
        return None
    return price


def _of(parameters: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    for key, text in parameters.items():
        if prefix and key.startswith(prefix):
            short = key.removeprefix(prefix)
        elif not prefix and not key.startswith(BASELINE):
            short = key
        else:
            continue
        if short not in _OWN_KEYS and not short.startswith("_"):
            yield short, text


def _valid(scenario: str, changes: Mapping[str, Value], ignored: list[str]) -> dict[str, Value]:
    """Leave out what does not go with the rest, one by one where all together do not go."""
    if not problem_but_for_room(Setup(scenario, None, changes)):
        return dict(changes)
    kept: dict[str, Value] = {}
    for key, value in changes.items():
        problem = problem_but_for_room(Setup(scenario, None, {**kept, key: value}))
        if problem:
            ignored.append(f"Ignored {BY_KEY[key].short}={written(value)[:40]}: {problem[:400]}")
        else:
            kept[key] = value
    return kept
