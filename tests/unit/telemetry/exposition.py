"""A strict reader of Prometheus text exposition format 0.0.4, for tests."""

import re
from dataclasses import dataclass, field

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{({_LABEL}(?:,{_LABEL})*)?\}})? (\S+)")
_SUFFIXES = {"histogram": ("_bucket", "_count", "_sum"), "counter": ("",), "gauge": ("",)}


@dataclass
class Family:
    """A metric: its type and {(sample name, sorted labels): value}."""

    kind: str
    samples: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(default_factory=dict)

    def value(self, name, **labels):
        """The value of the one sample with these labels among others."""
        wanted = set(labels.items())
        found = [v for (n, pairs), v in self.samples.items() if n == name and wanted <= set(pairs)]
        assert len(found) == 1, (name, labels, found)
        return found[0]


def read_exposition(text):
    """Return {family: Family}; anything the format forbids is an AssertionError."""
    assert text.endswith("\n")
    families, current, helped = {}, None, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped = line.split(" ", 3)[2]
            assert helped not in families, f"{helped} comes twice"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped, f"TYPE {current} after HELP {helped}"
            assert kind in _SUFFIXES, kind
            families[current] = Family(kind)
        elif not line.startswith("#"):
            _add(families, current, line)
    for name, family in families.items():
        assert family.samples, f"{name} has no sample"
        if family.kind == "histogram":
            _check_histogram(name, family)
    return families


def _add(families, current, line):
    match = _SAMPLE.fullmatch(line)
    assert match, f"not a sample: {line!r}"
    family = families[current]
    allowed = {current + suffix for suffix in _SUFFIXES[family.kind]}
    assert match.group(1) in allowed, f"{match.group(1)} inside {current}"
    pairs = re.findall(_LABEL, match.group(2) or "")
    assert len({name for name, _ in pairs}) == len(pairs), "a label comes twice"
    key = match.group(1), tuple(sorted((n, _unescape(v)) for n, v in pairs))
    assert key not in family.samples, f"sample comes twice: {line!r}"
    family.samples[key] = float(match.group(match.lastindex))


def _unescape(text):
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), text)


def _check_histogram(name, family):
    series = {}
    for (sample, pairs), value in family.samples.items():
        labels = dict(pairs)
        bound = labels.pop("le", None)
        entry = series.setdefault(tuple(sorted(labels.items())), {"buckets": []})
        if sample.endswith("_bucket"):
            entry["buckets"].append((float(bound), value))
        else:
            assert bound is None
            entry[sample.removeprefix(name)] = value
    for entry in series.values():
        bounds = [bound for bound, _ in entry["buckets"]]
        counts = [count for _, count in entry["buckets"]]
        assert bounds == sorted(set(bounds)), "bounds increase"
        assert bounds[-1] == float("inf")
        assert counts == sorted(counts), "buckets are cumulative"
        assert counts[-1] == entry["_count"]
        assert "_sum" in entry
