"""The recommended policy as files."""

import io
import zipfile

import pytest
import yaml

from app.answers.search import studies
from app.answers.search.exports import caveats_in, exports, packed
from tests.app_studies import finished
from twin.errors import InputError


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(studies.HOME, str(tmp_path_factory.mktemp("home")))
        study = finished()
        yield study, exports(study.id)


def test_every_target_of_the_engine_is_there(done):
    _, answer = done
    assert set(answer["targets"]) == {"vllm", "kubernetes", "llm_d", "dynamo"}
    for row in answer["targets"].values():
        assert row["files"] or row["problem"]
        assert row["about"]
    main = answer["targets"]["vllm"]["files"]["vllm.yaml"]
    assert yaml.safe_load(main)["model"]
    assert "Forecast, from a simulation" in main


def test_no_folder_of_the_server_is_told(done):
    study, answer = done
    texts = [*answer["results"].values()]
    texts += [text for row in answer["targets"].values() for text in row["files"].values()]
    assert texts
    assert all(study.id not in text and str(study.folder) not in text for text in texts)
    main = answer["targets"]["vllm"]["files"]["vllm.yaml"]
    words = " ".join(main.replace("#", " ").split())
    assert "run: twin-calibrate validate policy.yaml --scenario scenario.yaml" in words


def test_caveats_are_those_of_the_head(done):
    _, answer = done
    row = answer["targets"]["vllm"]
    assert any(one.startswith("Of the forecast: ") for one in row["caveats"])
    assert all("#" not in one for one in row["caveats"])


def test_everything_fits_in_one_archive(done):
    _, answer = done
    data = packed(answer)
    assert data == packed(answer)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        assert {"policy.yaml", "scenario.yaml", "report.html", "vllm/vllm.yaml"} <= set(names)
        assert not any(name.startswith("/") or ".." in name for name in names)
        assert (
            archive.read("vllm/vllm.yaml").decode()
            == answer["targets"]["vllm"]["files"]["vllm.yaml"]
        )


def test_a_study_that_is_gone_is_one_line():
    with pytest.raises(InputError, match="not here any more"):
        exports("0" * 32)


def test_caveats_run_over_several_lines():
    text = "# x\n# Caveats:\n# - one\n#   goes on\n# - two\nkey: 1\n# - not this\n"
    assert caveats_in(text) == ["one goes on", "two"]
    assert caveats_in("# Caveats: none\nkey: 1\n") == []
