"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.tables import Records, file_link, table

RULES = {
    "COLLINS.prm": "EVALB",
    "spmrl.prm": "EVALB for SPMRL",
    "nk.prm": "EVALB, with the rules of benepar",
}


def main_table(records: Records) -> str:
    rows = []
    for prm, found in records["evalb"]["results"]["comparisons"].items():
        f1 = found["evalb"]["all"]["Bracketing F1"], found["spacy_psa"]["all"]["Bracketing F1"]
        counts = [
            f"{len(found[f'{what}_that_differ'])} of {found[f'{what}_compared']:,}"
            for what in ("figures", "sentences")
        ]
        rows.append([f"`{prm}`", RULES[prm], *f1, *counts, f"{found['left_out']}"])
    header = ["rules", "program", "F1 by EVALB", "F1 by spacy-psa", "figures that differ"]
    return table([*header, "sentences that differ", "sentences left out"], rows) + (
        f"\n\nRecord: {file_link('evalb')}."
    )


TABLES = {"main": main_table}


def headline(records: Records) -> str:
    found = records["evalb"]["results"]["comparisons"].values()
    differing = sum(len(each["figures_that_differ"]) for each in found)
    return f"{differing} of {sum(each['figures_compared'] for each in found)} figures differ"


def claims(records: Records) -> list[str]:
    results = records["evalb"]["results"]
    return [f"{results['trees']:,} gold trees", f"{results['changed']:,} of them differ"]
