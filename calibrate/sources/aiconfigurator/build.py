"""From the package to a profile: which version of which table, and what goes in."""

from collections.abc import Callable
from pathlib import Path

from calibrate.sources.aiconfigurator.archive import Archive, Rows
from calibrate.sources.aiconfigurator.kernels import (
    Found,
    attention_tables,
    engine_all_reduce,
    expert_tables,
    gemm_tables,
    latent_tables,
    nccl_tables,
)
from hwmodels.profile import (
    HardwareProfile,
    Provenance,
    Table,
    nearest_version,
    profile_name,
    version_numbers,
)
from twin.errors import InputError
from twin.llm.engine_version import check_version

ENGINES = ("vllm", "sglang", "trtllm")

_YEARS = {"aiconfigurator 0.4.0": "2025"}  # of releases; the tables name none

# Size from which the engine's own all-reduce hands over to NCCL: vLLM from 8 MiB, SGLang above it
# (its table jumps between 8 and 16 MiB). TensorRT-LLM's strategies cover all sizes; where A100's
# table jumps, between 1 and 2 MiB, isn't documented and is interpolated.
_LIMIT_BYTES = {"vllm": 8 * 2**20, "sglang": 8 * 2**20 + 1, "trtllm": 0}


def import_profile(
    path: Path, gpu: str, engine: str, version: str | None = None
) -> HardwareProfile:
    """Return a profile of measured tables, nothing fitted yet.

    Args:
        path: the wheel, or the folder it was unpacked to.
        version: the engine version wanted; each table is taken from the nearest one there is,
            the newest without. The profile is named after its GEMM table's version.

    Raises:
        InputError: there is no GEMM or attention of that GPU and engine, or `version` is none.
    """
    if version is not None:
        check_version(version, "--version")
    archive = Archive(path)
    importer = _Importer(archive, gpu, engine, version)
    gemm = importer.take("gemm", "gemm", lambda rows: gemm_tables(rows, gpu))
    importer.take("attention", "context_attention", lambda rows: attention_tables(rows, "prefill"))
    importer.take("attention", "generation_attention", lambda r: attention_tables(r, "decode"))
    importer.take("moe", "moe", expert_tables)
    importer.take("comm", "custom_allreduce", lambda rows: engine_all_reduce(rows, engine))
    importer.take_latent("context_mla", lambda rows: latent_tables(rows, "prefill"))
    importer.take_latent("generation_mla", lambda rows: latent_tables(rows, "decode"))
    importer.take("comm", "nccl", nccl_tables, engine="nccl")
    missing = [k for k in ("gemm.bf16",) if k not in importer.tables]
    if gemm is None or missing:
        raise InputError(
            f"no GEMM table of {gpu} under {engine}",
            where=str(path),
            remedy="GPUs with tables: " + ", ".join(archive.gpus()),
        )
    return HardwareProfile(
        name=profile_name(gpu, engine, gemm),
        gpu=gpu,
        engine=engine,
        engine_version=gemm,
        kind="kernels",
        provenance=Provenance(
            source=f"{archive.release} (PyPI), systems/data/{gpu}",
            licence="Apache-2.0",
            date=_YEARS.get(archive.release, "2026"),
            versions=importer.versions,
            notes=tuple(importer.notes),
        ),
        tables=importer.tables,
        parameters={"engine_all_reduce_limit_bytes": _LIMIT_BYTES[engine]},
    )


class _Importer:
    """Collects tables, choosing the version of each."""

    def __init__(self, archive: Archive, gpu: str, engine: str, version: str | None) -> None:
        self._archive, self._gpu, self._engine, self._version = archive, gpu, engine, version
        self.tables: dict[str, Table] = {}
        self.versions: dict[str, str] = {}
        self.notes: list[str] = []

    def take(
        self, family: str, table: str, read: Callable[[Rows], Found], engine: str | None = None
    ) -> str | None:
        """Add what `read` makes of the nearest version that gives anything; return that version."""
        owner = engine or self._engine
        known = self._archive.versions(self._gpu, family, owner, table)
        wanted = self._version if engine is None else None
        for version in _by_nearness(known, wanted):
            found = read(self._archive.rows(self._gpu, family, owner, version, table))
            if found.tables:
                self.tables.update(found.tables)
                self.notes += found.notes
                self.versions[table] = f"{owner} {version}"
                return version
        return None

    def take_latent(self, table: str, read: Callable[[Rows], Found]) -> None:
        """Add latent attention; vLLM's is measured inside its layer alone, so SGLang's stands in.

        Both call FlashAttention-3 and FlashMLA on Hopper.
        """
        if self.take("mla", table, read) is None and self._engine == "vllm":
            version = self.take("mla", table, read, engine="sglang")
            if version is not None:
                self.notes.append(f"{table}: SGLang {version}'s, for want of vLLM's own")


def _by_nearness(known: list[str], wanted: str | None) -> list[str]:
    left = {version_numbers(version): version for version in known}
    ordered = []
    while left:
        target = version_numbers(wanted) if wanted else max(left)
        ordered.append(left.pop(nearest_version(target, left)))
    return ordered
