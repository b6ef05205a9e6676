"""How many examples a property test tries: its usual number, scaled by hypothesis's profile."""

from hypothesis import settings

_DEFAULT_EXAMPLES = 100
"""What hypothesis tries unless told: the profile in which the usual number applies."""


def examples(usual: int) -> int:
    """Return the number to try under the loaded profile."""
    return usual * settings.default.max_examples // _DEFAULT_EXAMPLES
