"""A process in the place of Teach's, which never gets past its first pass."""

import json
import signal

if __name__ == "__main__":
    print(json.dumps({"epoch": 1, "of": 5, "score": 0.5, "before": 0.25}), flush=True)
    signal.pause()
