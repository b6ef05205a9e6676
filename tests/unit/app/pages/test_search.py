"""The Search page: from an empty one to a study that is judged and exported."""

import json
import os
import signal

import pytest
from streamlit.testing.v1 import AppTest

from app.answers.search import studies
from app.answers.search.studies import Launch, find_study, new_study
from app.answers.search.study import Watched
from app.state.link import linked, query
from app.state.view import View
from tests.app_studies import finished, order, wait_for


def framed_page():
    from app.pages.search import search_page
    from app.parts.frame import framed

    framed(search_page)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def kept_there(home, monkeypatch):
    monkeypatch.setenv(studies.HOME, str(home))


@pytest.fixture(scope="module")
def done(home):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(studies.HOME, str(home))
        yield finished()


def page(study=None, **parameters):
    at = AppTest.from_function(framed_page, default_timeout=120)
    if study is not None:
        at.query_params["study"] = study.id
    for key, value in parameters.items():
        at.query_params[key] = value
    at.run()
    assert not at.exception
    return at


def texts(at):
    shown = [
        one.value for kind in ("markdown", "caption", "warning", "info") for one in at.get(kind)
    ]
    # What others wrote is escaped.
    return "\n".join([*shown, *(one.value for one in at.code)]).replace("\\", "")


def button(at, label):
    return next((one for one in at.button if one.label == label), None)


def charts(at):
    return [json.loads(one.proto.spec) for one in at.get("vega_lite_chart")]


def test_a_first_visit_is_told_what_to_do():
    at = page()
    assert "#### No study yet. Start with 50 trials." in texts(at)
    assert "twin search chat-h100 --trials 50 --out search" in texts(at)
    start = button(at, "Start 50 trials")
    assert not start.disabled
    assert f"at most {studies.MOST_RUNNING} on this server" in texts(at)


def test_the_command_follows_the_form_and_the_sidebar():
    at = page(rate="8", price="2.5")
    at.multiselect(key="search-objectives").set_value(["usd_per_mtok", "p99_ttft_s"])
    at.number_input(key="search-trials").set_value(20)
    at.number_input(key="search-gpus").set_value(4)
    at.toggle(key="search-engine").set_value(True)
    at.run()
    assert (
        "twin search chat-h100 --set workload.arrivals.rate=8.0 --objective usd_per_mtok "
        "--objective p99_ttft_s --trials 20 --engine any --gpus 4 --price 2.5 --out search"
    ) in texts(at)


def test_knobs_can_be_chosen():
    at = page()
    at.toggle(key="search-every").set_value(False).run()
    at.multiselect(key="search-knobs").set_value(["policy.max_num_seqs"]).run()
    assert "--knob policy.max_num_seqs --out" in texts(at)
    at.multiselect(key="search-knobs").set_value([]).run()
    assert "No knob is chosen" in texts(at)
    assert button(at, "Start 50 trials").disabled


def test_a_contradiction_is_one_calm_line_and_nothing_starts():
    at = page(ttft="default", tpot="default")
    assert "goodput_per_gpu_hour counts requests within the SLO, and the scenario has none" in (
        texts(at)
    )
    assert button(at, "Start 50 trials").disabled
    assert not at.exception


def test_a_study_starts_pauses_and_is_found_again(home):
    before = set(home.rglob("order.json"))
    at = page(requests="300")
    at.number_input(key="search-trials").set_value(30).run()
    button(at, "Start 30 trials").click().run()
    (made,) = {path.parent.name for path in set(home.rglob("order.json")) - before}
    study = find_study(made)
    try:
        assert at.query_params["study"] == made
        assert button(at, "Pause") is not None
        assert any(one.label.startswith("Start") and one.disabled for one in at.button)
        wait_for(lambda: Watched(study).look().done >= 1)
        at.run()
        button(at, "Pause").click().run()
        wait_for(lambda: not study.alive)
        again = page(study)  # another browser, with the address alone
        assert "Paused after" in json.dumps([one.proto.text for one in again.get("progress")])
        assert button(again, "Resume") is not None
        assert button(again, "Judge what is there") is not None
        assert charts(again)
        assert study.id not in texts(page())  # nobody else is told of it
    finally:
        if study.alive:
            os.kill(study.launch.pid, signal.SIGKILL)
            wait_for(lambda: not study.alive)


def test_a_judged_study_says_its_verdict_first(done):
    at = page(done)
    sentence = json.loads((done.out / "summary.json").read_text())["sentence"]
    assert sentence in at.markdown[0].value
    assert len(charts(at)) == 2
    assert {one.label: one.value for one in at.metric}["Trials"] == "4 of 4"
    assert "The sidebar shows another setup" in texts(at)
    assert done.order.command() in texts(at)


def test_details_and_export(done):
    at = page(done)
    for name in ("Importance", "Gains", "Sensitivity", "What binds"):
        at.session_state["search-tabs"] = name
        at.run()
        assert not at.exception
    assert "Default: " in texts(at)
    at.session_state["search-tabs"] = "Validate and export"
    at.run()
    wait_for(lambda: at.run() and any(one.key == "search-target" for one in at.selectbox), 120)
    assert "twin-calibrate validate scenario.yaml" in texts(at)
    assert "twin export search --to vllm --out deploy" in texts(at)
    assert "model:" in texts(at)
    at.selectbox(key="search-target").set_value("kubernetes").run()
    assert "kind: Deployment" in texts(at)
    assert done.id not in "\n".join(one.value for one in at.code)


def test_a_failed_one_shows_its_line():
    study = new_study(order())
    study._note(Launch(0, 1.0, 8))
    (study.folder / "log.txt").write_text("error: chat-h100: something; do this\n")
    at = page(study)
    shown = json.dumps([one.proto.text for one in at.get("progress")])
    assert "Failed after 0 of 8 trials: chat-h100: something; do this" in shown
    assert button(at, "Resume") is not None


def test_a_study_can_be_deleted():
    study = new_study(order())
    study._note(Launch(0, 1.0, 8, "pause"))
    at = page(study)
    button(at, "Delete this study").click().run()
    assert find_study(study.id) is None
    assert "No study yet" in texts(at)
    assert "study" not in at.query_params


def test_an_address_of_a_study_that_is_gone_is_told():
    at = AppTest.from_function(framed_page, default_timeout=120)
    at.query_params["study"] = "0" * 32
    at.run()
    assert "is not here" in texts(at)
    assert "No study yet" in texts(at)


def test_links_carry_a_study_and_nothing_that_is_none():
    study = "0123456789abcdef" * 2
    assert query(View(), None, "d" * 64, study) == {"study": study}
    assert query(View(), None, "d" * 64) == {}
    assert linked({"study": study}).study == study
    bad = linked({"study": "../../etc"})
    assert bad.study == ""
    assert bad.ignored == ("Ignored study: it is no study's id.",)
