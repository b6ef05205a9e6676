"""Releases before aiconfigurator-core keep an engine version's tables in one folder, as CSV."""

import pytest

from calibrate.sources.aiconfigurator import import_profile
from calibrate.sources.aiconfigurator.archive import Archive

TABLES = {
    "trtllm/1.0.0rc3/gemm_perf.txt": "gemm_dtype,kernel_source,m,n,k,latency\n"
    "float16,torch_flow,1,1024,1024,0.010\nfp8,torch_flow,1,1024,1024,0.012\n",
    "nccl/2.27.3/nccl_perf.txt": "op_name,nccl_dtype,num_gpus,message_size,latency\n"
    "all_reduce,half,2,1024,0.006\n",
    "trtllm/1.0.0rc3/wideep_moe_perf.txt": "not,read\n1,2\n",
}


def old_release(root):
    for name, text in TABLES.items():
        path = root / "aiconfigurator" / "systems" / "data" / "h100_sxm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "aiconfigurator-0.4.0.dist-info").mkdir()
    return root


def test_tables_are_found_without_their_family(tmp_path):
    archive = Archive(old_release(tmp_path))
    assert archive.release == "aiconfigurator 0.4.0"
    assert archive.versions("h100_sxm", "gemm", "trtllm", "gemm") == ["1.0.0rc3"]
    assert archive.versions("h100_sxm", "comm", "nccl", "nccl") == ["2.27.3"]


def test_sixteen_bit_products_are_one_kind(tmp_path):
    profile = import_profile(old_release(tmp_path), "h100_sxm", "trtllm")
    assert set(profile.tables) == {"gemm.bf16", "gemm.fp8", "nccl.all_reduce"}
    assert profile.tables["gemm.bf16"]["seconds"].tolist() == pytest.approx([10e-6], rel=1e-3)
    assert profile.provenance.source.startswith("aiconfigurator 0.4.0 (PyPI)")
    assert profile.provenance.date == "2025"
