"""How a network is spread over GPUs, and which spreads it allows."""

from dataclasses import dataclass

from twin.errors import InputError
from twin.llm.arch import ModelArch

_USUAL_SIZES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Tensor, pipeline, data and expert parallel sizes of one deployment.

    `ep` is the number of GPUs that the experts of a layer are spread over whole; 1: experts are
    cut by tensor parallelism like every other matrix. `tp × pp × dp` GPUs are used in all.
    """

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp", "ep"):
            size = getattr(self, name)
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise InputError(f"{name} is {size!r}", remedy="give a whole number of at least 1")

    @property
    def num_gpus(self) -> int:
        """GPUs in use."""
        return self.tp * self.pp * self.dp

    def validate(self, arch: ModelArch) -> None:
        """Raise an InputError that names the sizes which work, if these do not fit `arch`."""
        if not tp_divides(arch, self.tp):
            working = ", ".join(str(tp) for tp in _USUAL_SIZES if tp_divides(arch, tp))
            raise InputError(
                f"tp {self.tp} does not divide {arch.name} ({arch.num_heads} attention heads, "
                f"{arch.num_kv_heads} KV heads)",
                remedy=f"tp can be {working}",
            )
        if self.pp > arch.num_layers:
            raise InputError(
                f"pp {self.pp} exceeds the {arch.num_layers} layers of {arch.name}",
                remedy=f"pp can be 1 to {arch.num_layers}",
            )
        self._validate_experts(arch)

    def _validate_experts(self, arch: ModelArch) -> None:
        if self.ep == 1:
            return
        if arch.moe is None:
            raise InputError(f"ep {self.ep} asked of {arch.name}, which has no experts")
        if arch.moe.num_experts % self.ep or (self.tp * self.dp) % self.ep:
            ranks = self.tp * self.dp
            working = [
                str(ep)
                for ep in range(1, ranks + 1)
                if ranks % ep == 0 and arch.moe.num_experts % ep == 0
            ]
            raise InputError(
                f"ep {self.ep} does not divide {arch.moe.num_experts} experts over "
                f"tp × dp = {ranks} GPUs",
                remedy="ep can be " + ", ".join(working),
            )


def tp_divides(arch: ModelArch, tp: int) -> bool:
    """Whether vLLM can cut `arch` into `tp` ranks.

    Query heads must divide. KV heads are either dealt out evenly or, when there are fewer than
    ranks, replicated evenly. MLA has no KV heads to deal out.
    """
    if arch.num_heads % tp:
        return False
    if arch.mla is not None:
        return True
    return arch.num_kv_heads % tp == 0 or tp % arch.num_kv_heads == 0
