"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.tables import Records, file_link, percent, table

SYSTEMS = {"bilstm_crf": "BiLSTM-CRF", "psa": "PSA-BiLSTM-CRF"}


def by_temperature(records: Records) -> str:
    rows = []
    for name, title in SYSTEMS.items():
        results = records[name]["results"]
        pairs = [
            ", ".join(f"{results['data'][part][when][key]:.4f}" for when in ("before", "after"))
            for part, key in (("dev", "ece"), ("test", "ece"), ("test", "brier"))
        ]
        rows.append([title, f"{results['temperature']['after']:.3f}", *pairs, file_link(name)])
    header = ["system", "temperature", "dev ECE before, after", "test ECE before, after"]
    return table([*header, "test Brier before, after", "record"], rows)


def shift(records: Records) -> str:
    rows = []
    for name, title in SYSTEMS.items():
        results = records[f"shift-{name}"]["results"]
        errors = [
            f"{results[by]['test']['ece']:.4f}"
            for by in ("by_temperature", "by_isotonic_regression")
        ]
        both = [
            f"{percent(found['mean_confidence'])}, {percent(found['precision'])}"
            for found in (results["by_temperature"][part] for part in ("dev", "test"))
        ]
        rows.append([title, *errors, *both, file_link(f"shift-{name}")])
    header = ["system", "test ECE by temperature", "by isotonic regression"]
    return table([*header, "mean confidence, precision: dev", "test", "record"], rows)


def coverage(records: Records) -> str:
    rows = [
        [
            f"{row['level']:g}",
            f"{row['least']:.3g}",
            f"{row['dev']:.3f}",
            f"{row['test']:.3f}",
            f"{row['set_size']:.2f}",
            f"{row['mean']:.3f} ({row['least_of_halves']:.3f} to {row['most_of_halves']:.3f})",
        ]
        for row in records["coverage"]["results"]["levels"]
    ]
    header = ["promised", "least probability", "dev", "test", "spans for a gold one"]
    return table([*header, "one half of test by the other: mean (range)"], rows)


TABLES = {"by_temperature": by_temperature, "shift": shift, "coverage": coverage}


def headline(records: Records) -> str:
    fits = records["psa"]["results"]["data"]["test"]
    return f"test ECE of PSA {fits['before']['ece']:.4f} before, {fits['after']['ece']:.4f} after"


def claims(records: Records) -> list[str]:
    falls: dict[str, set[str]] = {"mean_confidence": set(), "precision": set()}
    for name in SYSTEMS:
        found = records[f"shift-{name}"]["results"]["by_temperature"]
        for key, values in falls.items():
            values.add(f"{100 * (found['dev'][key] - found['test'][key]):.1f}")
    (confidence,), (precision,) = falls.values()
    found = records["coverage"]["results"]
    (promised,) = (row for row in found["levels"] if row["level"] == 0.9)
    return [
        f"mean confidence falls by {confidence} points and precision by {precision}",
        f"of a promised 0.9, {promised['test']:.3f} is observed on test data",
        f"{found['halves']:,} times",
    ]
