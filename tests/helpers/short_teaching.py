"""Teach with few updates of the first model."""

from spacy_psa.studio.active_learning import beginning, teach_process

if __name__ == "__main__":
    beginning.MOST_STEPS = 48
    teach_process.main()
