"""Python code in a process of its own."""

import json
import os
import subprocess
import sys
from typing import Any


def run_elsewhere(code: str, *arguments: object, timeout: float = 120, **environ: str) -> Any:
    """Run Python code in a new process and return what it prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
