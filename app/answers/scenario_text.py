"""A setup as a scenario file that anybody can run."""

import yaml

from app.answers.setup import Setup


def scenario_text(setup: Setup) -> str:
    """Return the YAML of a setup, changes applied; uploads stand as file names.

    Raises:
        InputError: its parts do not go together.
    """
    file, _ = setup.file()
    data = file.model_dump(mode="json", exclude_unset=True)
    lines = ["# Written by the what-if app. Run: twin simulate scenario.yaml"]
    if "workload.path" in setup.private:
        data["workload"]["path"] = "trace.csv"
        lines.append("# trace.csv: put the trace that was uploaded beside this file.")
    if "llm" in setup.private:
        data["llm"] = "./config.json"
        lines.append("# config.json: put the model's file that was uploaded beside this one.")
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return "\n".join(lines) + "\n" + str(text)
