"""The papers' ablations on a quarter of CoNLL-2003."""
