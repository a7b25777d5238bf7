"""`torchrun` starts the processes, and starts them again when one is killed."""

import subprocess
import sys
from pathlib import Path

from tests.helpers.paths import ROOT
from tests.helpers.trainings import digests, make_config, run_together

DYING = """
import os
from tests.helpers.trainings import killed_in
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    killed_in(13)
"""


def torchrun(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", *options]
    train = ["-m", "spacy_psa", "train", str(folder / "config.cfg"), "--output", str(folder)]
    further = ["--resume", "--save-every", "5", "--code", str(folder / "code.py")]
    return subprocess.run(
        [sys.executable, "-m", *launch, *train, *further], capture_output=True, text=True, cwd=ROOT
    )


def test_torchrun_goes_on_after_a_process_was_killed(tmp_path, corpus):
    config = make_config(corpus, max_steps=18)
    folder = tmp_path / "torchrun"
    folder.mkdir()
    config["training"]["logger"]["output_file"] = str(folder / "log.jsonl")
    config.to_disk(folder / "config.cfg")
    (folder / "code.py").write_text(DYING, encoding="utf8")

    done = torchrun(folder, "--max-restarts", "1")
    assert done.returncode == 0, done.stderr
    # The other process ends soon after the killed one; torchrun names the first that it looks at.
    assert "failed (exitcode: " in done.stderr
    assert "Resuming after step 10" in done.stdout
    assert done.stdout.count("Saved the pipeline to") == 1

    config["training"]["logger"]["output_file"] = "log.jsonl"
    whole = digests(run_together(tmp_path / "whole", config))
    model = {name: digest for name, digest in whole.items() if name.endswith("ner/model")}
    found = digests(folder)
    assert model and {name: found[name] for name in model} == model
