"""Keep what the engines' parsers said: `python -m tests.conformance.record FOLDER`.

Fails where a parser refuses a right case or takes a bad one; then nothing is kept.
"""

import json
import sys
from pathlib import Path

from tests.conformance.cases import ENGINES

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "golden" / "conformance"
FLAGS = ROOT / "twin" / "export" / "reading" / "flags"


def main() -> None:
    """Write `tests/golden/conformance/ENGINE-VERSION.json`, and the engines' lists of options."""
    folder, wrong = Path(sys.argv[1]), 0
    for engine in ENGINES:
        result = json.loads((folder / f"{engine}.result").read_text(encoding="utf-8"))
        for case in result["cases"]:
            if case["right"] == (case["says"] is not None):
                wrong += 1
                print(f"{engine}: {case['name']}: {case['says'] or 'taken, and is bad'}")
    if wrong:
        raise SystemExit(f"{wrong} cases are not judged as they should be")
    KEPT.mkdir(exist_ok=True)
    for engine in ENGINES:
        result = json.loads((folder / f"{engine}.result").read_text(encoding="utf-8"))
        name = f"{engine}-{result['version']}.json"
        (KEPT / name).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        flags = (folder / f"{engine}.flags").read_text(encoding="utf-8")
        (FLAGS / f"{engine}.txt").write_text(flags, encoding="utf-8")
        print(f"wrote {KEPT.name}/{name}: {len(result['cases'])} cases")


if __name__ == "__main__":
    main()
