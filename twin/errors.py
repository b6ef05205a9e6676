"""The error tree: one line each, saying what is wrong, where, and what would be right."""


class ServetwinError(Exception):
    """Root of every error raised on purpose; `str()` is always a single line."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputError(ServetwinError):
    """What the user gave cannot be used.

    Args:
        problem: what is wrong, with the offending value.
        where: file, row or key it stands in, for example `trace.csv, row 18`.
        remedy: what would be right.
    """

    exit_code = 2

    def __init__(self, problem: str, *, where: str = "", remedy: str = "") -> None:
        self.problem = problem
        self.where = where
        self.remedy = remedy
        head = f"{where}: {problem}" if where else problem
        super().__init__(f"{head}; {remedy}" if remedy else head)
