"""Links: a view goes into a query string and comes back; what cannot be used is told."""

from hypothesis import given, settings
from hypothesis import strategies as st

from app.answers.setup import Setup
from app.knobs.table import BY_SHORT, KNOBS
from app.state.link import MOST_TOLD, linked, query
from app.state.view import UPLOADED, View


def test_a_first_visit_has_an_empty_link() -> None:
    assert query(View(), None, "0" * 64) == {}
    assert linked({}).view == View()
    assert linked({}).baseline is None


def test_a_view_and_its_baseline_come_back() -> None:
    view = View("chat-h100", {"policy.max_num_seqs": 64, "slo.ttft_s": None}, 2.5)
    baseline = View("chat-h100", {"policy.enable_prefix_caching": False}, 2.5)
    parameters = query(view, baseline, "ab" * 32)
    assert parameters["seqs"] == "64"
    assert parameters["a.prefix"] == "false"
    assert parameters["h"] == "ab" * 5
    back = linked(parameters)
    assert (back.view, back.baseline, back.ignored) == (view, baseline, ())


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([k.short for k in KNOBS if k.options and k.kind in ("choice", "flag")]),
        st.integers(0, 50),
    )
)
def test_whatever_goes_together_comes_back(picks: dict[str, int]) -> None:
    changes = {}
    for short, pick in picks.items():
        knob = BY_SHORT[short]
        options = knob.options or (True, False)
        changes[knob.key] = options[pick % len(options)]
    back = linked(query(View("chat-h100", changes), None, "0" * 64))
    assert all(changes[key] == value for key, value in back.view.changes.items())
    assert len(back.view.changes) + len(back.ignored) >= len(changes)


def test_what_cannot_be_used_is_told_and_the_rest_is_kept() -> None:
    found = linked(
        {"tp": "3", "seqs": "64", "foo": "1", "block": "twelve", "s": "nowhere", "price": "-1"}
    )
    assert found.view.changes == {"policy.max_num_seqs": 64}
    words = " ".join(found.ignored)
    for name in ("tp", "foo", "block", "s=nowhere", "price"):
        assert f"Ignored {name}" in words


def test_what_does_not_go_together_is_left_out_one_by_one() -> None:
    # A budget below the number of sequences is refused by the policy itself.
    found = linked({"tokens": "256", "seqs": "512"})
    assert len(found.view.changes) == 1
    assert "Ignored" in found.ignored[0]


def test_an_upload_is_in_no_link() -> None:
    found = linked({"s": UPLOADED, "seqs": "64"})
    assert found.view == View()
    assert "upload" in found.ignored[0]


def test_a_link_names_no_file() -> None:
    assert not [knob for knob in KNOBS if "path" in knob.key or knob.key == "profile"]
    found = linked({"llm": "/etc/passwd"})
    assert found.view.changes == {}
    assert "Ignored llm" in found.ignored[0]


def test_digests_tell_setups_apart() -> None:
    one = Setup("chat-h100", None, {"policy.max_num_seqs": 64})
    assert one.digest() == Setup("chat-h100", None, {"policy.max_num_seqs": 64}).digest()
    assert one.digest() != Setup("chat-h100", None, {"policy.max_num_seqs": 65}).digest()
    assert one.digest() != Setup("closed-loop-h100", None, {"policy.max_num_seqs": 64}).digest()


def test_a_link_full_of_nonsense_is_told_in_a_few_sentences() -> None:
    back = linked({f"k{number}": "x" for number in range(10_000)})
    assert len(back.ignored) == MOST_TOLD + 1
    assert "more of this link" in back.ignored[-1]
    long = linked({"seqs": "1" + "0" * 4000})
    assert [len(sentence) < 600 for sentence in long.ignored] == [True]


def test_a_price_that_cannot_be_shown_is_told() -> None:
    for price in ("0.001", "nan", "inf", "-1", "1e-320", "1001"):
        back = linked({"price": price})
        assert back.view.usd_per_gpu_hour is None
        assert "price" in back.ignored[0]
