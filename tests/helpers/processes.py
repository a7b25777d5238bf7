"""Python code in a process of its own."""

import json
import os
import subprocess
import sys
from typing import Any

from tests.helpers.patience import PATIENCE


def run_elsewhere(code: str, *arguments: object, **environ: str) -> Any:
    """Run Python code in a new process and return what it prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
