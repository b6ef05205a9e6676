"""Write the kept files anew, after exports were changed on purpose.

    python -m tests.golden.export.write

Look through the difference, then run `make conformance`: the engines' own parsers judge them.
"""

import shutil

from tests.golden.export.cases import CASES, FOLDER, exported


def main() -> None:
    """Replace every case's folder."""
    for folder in [path for path in FOLDER.iterdir() if path.is_dir()]:
        shutil.rmtree(folder)
    for case in CASES:
        (FOLDER / case).mkdir(parents=True)
        for name, text in exported(case).items():
            (FOLDER / case / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
