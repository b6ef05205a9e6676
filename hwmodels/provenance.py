"""In one phrase: what the durations of a GPU rest on."""

from hwmodels.efficiency import EFFICIENCIES

_FAMILIES = ("gemm", "prefill", "decode", "launch")


def durations_rest_on(gpu_name: str) -> str:
    """Return for example `roofline, fitted on this GPU: gemm, decode; borrowed: launch (h200_sxm)`.

    Raises:
        KeyError: there is no such GPU.
    """
    fits = {family: getattr(EFFICIENCIES[gpu_name], family) for family in _FAMILIES}
    own = [family for family, fit in fits.items() if fit.measured]
    borrowed = [f"{family} ({fit.fitted_on})" for family, fit in fits.items() if not fit.measured]
    if not own:
        lenders = sorted({fit.fitted_on for fit in fits.values()})
        return f"roofline, unmeasured: datasheet with efficiencies of {', '.join(lenders)}"
    text = "roofline, fitted on this GPU: " + ", ".join(own)
    return f"{text}; borrowed: {', '.join(borrowed)}" if borrowed else text
