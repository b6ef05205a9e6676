"""What a refusal is: one line naming file, row or key and the remedy, exit 2, nothing left."""

from pathlib import Path

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROW = "2023-11-16 18:15:46.6805900,374,44\n"


def assert_one_line(outcome, *says):
    code, out, err = outcome
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for text in says:
        assert text in err, err


def simulate(twin, *assignments):
    arguments = [part for assignment in assignments for part in ("--set", assignment)]
    outcome = twin("simulate", "chat-h100", *arguments, "--out", "out", "--json", "f.json")
    assert not Path("out").exists()
    assert not Path("f.json").exists()
    assert not [path for path in Path(".").iterdir() if path.name.startswith(".")]
    return outcome
