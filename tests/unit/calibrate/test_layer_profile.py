import pytest
from typer.testing import CliRunner

from calibrate.cli import app
from calibrate.sources.layer_profile import network_of, read_layer_profile
from hwmodels.profile import read_profile
from twin.errors import InputError

META = """
vllm_version: 0.19.0
hardware: RTX4090
model: meta-llama/Llama-3.1-8B
variant: bf16
tp_degrees: [1, 2]
skew_fit:
  enabled: true
  per_tp:
    1: {alpha_default: 0.05}
"""
FILES = {
    "meta.yaml": META,
    "dense.csv": "layer,tokens,time_us\nqkv_proj,1,50\nqkv_proj,2,51.5\n",
    "per_sequence.csv": "layer,sequences,time_us\nlm_head,1,1000\nsampler,1,20\n",
    "attention.csv": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n"
    "0,0,1,16,9\n16,0,0,0,8\n",
    "skew_fit.csv": "pc,n_label,skew_rate_label,kv_big_label,kp_label,alpha,n_samples\n"
    "0,n<=8,sr<=15%,kvB<=1k,kp=0,0.03,4\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_folder_becomes_a_profile(folder):
    profile = read_layer_profile(folder)
    assert (profile.kind, profile.name) == ("layers", "rtx_4090-vllm-0.19.0")
    assert profile.facts == {
        "llm": "llama-3.1-8b", "model": "meta-llama/Llama-3.1-8B", "variant": "bf16", "tp": 1,
        "skew_default": 0.05,
    }  # fmt: skip
    assert profile.tables["dense"]["seconds"].tolist() == pytest.approx([50e-6, 51.5e-6])
    assert profile.tables["attention"]["n_decode"].tolist() == [1, 0]
    assert profile.tables["skew"]["sequences"].tolist() == ["n<=8"]
    assert "moe" not in profile.tables


def test_a_folder_a_rank_size_is_read_from_its_own_place(folder):
    (folder / "tp2").mkdir()
    for name, text in FILES.items():
        if name != "meta.yaml":
            (folder / "tp2" / name).write_text(text.replace(",50\n", ",25\n"))
    assert read_layer_profile(folder, 2).tables["dense"]["seconds"][0] == pytest.approx(25e-6)
    assert read_layer_profile(folder, 1).tables["dense"]["seconds"][0] == pytest.approx(50e-6)


def test_a_correction_that_its_authors_switched_off_is_left_out(folder):
    (folder / "meta.yaml").write_text(META.replace("enabled: true", "enabled: false"))
    assert "skew" not in read_layer_profile(folder).tables


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("dense.csv", "51.5", "soon", r"dense.csv, row 3: time_us is 'soon'"),
        ("dense.csv", "51.5", "-1", r"row 3: time_us"),
        ("dense.csv", "51.5", "nan", r"row 3: time_us"),
        ("dense.csv", "tokens", "rows", "has no column tokens"),
        ("attention.csv", "16,0,0,0,8", "-16,0,0,0,8", "prefill_chunk is '-16'"),
        ("meta.yaml", "RTX4090", "RTX4091", "unknown hardware"),
        ("meta.yaml", "Llama-3.1-8B", "Llama-9-8B", "unknown network"),
        ("meta.yaml", "vllm_version: 0.19.0", "", "has no vllm_version"),
        ("meta.yaml", META, "- 1", "is not a mapping"),
        ("meta.yaml", META, "a: [", "is not valid YAML"),
    ],
)
def test_damage_is_named(folder, name, old, new, message):
    path = folder / name
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        read_layer_profile(folder)


def test_missing_parts_are_named(folder):
    with pytest.raises(InputError, match="tensor parallelism 4"):
        read_layer_profile(folder, 4)
    (folder / "dense.csv").write_text("layer,tokens,time_us\n")
    with pytest.raises(InputError, match="holds no row"):
        read_layer_profile(folder)
    (folder / "dense.csv").unlink()
    with pytest.raises(InputError, match="no such file"):
        read_layer_profile(folder)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
    ],
)
def test_fine_tunes_have_the_layers_of_their_network(model, name):
    assert network_of(model, "here") == name


def test_the_command_writes_equal_files(folder, tmp_path):
    out = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path in out:
        done = CliRunner().invoke(app, ["import-layers", str(folder), "--out", str(path)])
        assert done.exit_code == 0, done.output
        assert "llama-3.1-8b on rtx_4090" in done.output
    assert out[0].read_bytes() == out[1].read_bytes()
    assert read_profile(out[0]).kind == "layers"


def test_the_shipped_profiles_are_those_of_the_recorded_runs(data_dir):
    from hwmodels.profile import FOLDER, write_profile

    for run, name in (
        ("rtx4090-llama-3.1-8b", "rtx_4090-vllm-0.19.0"),
        ("rtxpro6000-qwen3-30b-a3b-dp2ep2", "rtx_pro_6000-vllm-0.19.0"),
    ):
        profile = read_layer_profile(data_dir / "vllm_runs" / run / "layer_profile")
        assert write_profile(profile) == (FOLDER / f"{name}.npz").read_bytes()
