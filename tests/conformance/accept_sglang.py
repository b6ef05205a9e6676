"""SGLang's own parser on exported files; runs without a GPU.

Runs in an environment with SGLang and without this project: `accept_sglang.py CASES RESULT FLAGS`.
It checks names, types and choices; ranges it leaves to the running scheduler.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from sglang.srt.server_args import ServerArgs
from sglang.srt.utils.server_args_config_parser import ConfigArgumentMerger

WORDS = {None: "1", 0: "0", 1: "1", "?": "?", "+": "*", "*": "*"}
"""Words that follow an option, by argparse's `nargs`; as `twin.export.reading.names.arity`."""


def words_of(case):
    """Return the arguments of SGLang's server."""
    if "yaml" in case:
        file = Path(tempfile.mkdtemp()) / "case.yaml"
        file.write_text(case["yaml"], encoding="utf-8")
        return ["--config", str(file)]
    words = case["words"]
    return words[2:] if words[:2] == ["sglang", "serve"] else words[3:]


def judge(case):
    """Return None if SGLang takes a case, else its first complaint."""
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard):
            parser = argparse.ArgumentParser(prog="sglang serve", allow_abbrev=False)
            ServerArgs.add_cli_args(parser)
            words = words_of(case)
            if "--config" in words:
                words = ConfigArgumentMerger(parser).merge_config_with_args(words)
            ServerArgs.from_cli_args(parser.parse_args(words))
    except SystemExit:
        return heard.getvalue().rpartition("error: ")[2].strip()[:160]
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return None


def main():
    """Write what SGLang says of every case."""
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    results = [{"name": c["name"], "right": c["right"], "says": judge(c)} for c in data["cases"]]
    result = {
        "engine": "sglang", "version": version("sglang"), "digests": data["digests"],
        "cases": results,
    }  # fmt: skip
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    rows = {
        o[2:]: WORDS[a.nargs] for a in parser._actions for o in a.option_strings if o[:2] == "--"
    }
    flags = [f"{name} {rows[name]}\n" for name in sorted(rows) if not name.startswith("no-")]
    Path(sys.argv[3]).write_text("".join(flags), encoding="utf-8")


if __name__ == "__main__":
    main()
