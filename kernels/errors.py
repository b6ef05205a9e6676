"""What a kernel's caller did wrong, in one line."""


class KernelInputError(ValueError):
    """A tensor or number that a kernel cannot take: which, what it is, what would be right."""
