"""Words that somebody else wrote, such as file names, shown as text and as nothing else."""

import re

# Within a word an underscore means nothing: names of knobs stay as they are.
_MARKS = re.compile(r"([\\*\[\]<>$~|#]|(?<!\w)_|_(?!\w))")
_MOST = 600


def plain(text: str) -> str:
    """Return text as Markdown that shows it letter by letter, on one line.

    A link's values, file names and names in scenarios stand in messages. As Markdown they could
    be links, or images that a browser would fetch from elsewhere.

    Args:
        text: anything; what is too long to be read ends in an ellipsis.
    """
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    line = " ".join(printable.split())
    if len(line) > _MOST:
        line = f"{line[: _MOST - 1]}…"
    return _MARKS.sub(r"\\\1", line)
