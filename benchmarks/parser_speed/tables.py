"""The tables on the page of this experiment, and the numbers in its text."""

from benchmarks.tables import Records, file_link, percent, table

ROWS = {
    "factored": "`factored.cfg`, the size of the paper",
    "factored-bfloat16": 'the same, `precision = "bfloat16"`',
    "small": "`small.cfg`, trained, bfloat16",
}


def rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def rows_of_speed(records: Records) -> list[list[str]]:
    """The cells of each parser: whole, encoder, chart, the share of the chart, the record."""
    rows = []
    for name, title in ROWS.items():
        results = records[name]["results"]
        rates = [
            rate(results["rows"][part]["per_second"]["median"])
            for part in ("whole", "model", "chart")
        ]
        rows.append([title, *rates, f"{percent(results['chart_share'], 1)}%", file_link(name)])
    return rows


def main_table(records: Records) -> str:
    header = ["sentences a second", "whole", "encoder and span scores", "chart (CKY)"]
    return table([*header, "share of the chart", "record"], rows_of_speed(records))


def long_table(records: Records) -> str:
    asked = {
        "cky": "best tree",
        "confidence": "best tree with posteriors",
        "mbr": '`decode = "mbr"`',
        "kbest": "1,000 best trees",
    }
    rows = [
        [
            asked[row["ask"]],
            f"{row['tokens']:,}",
            f"{row['seconds']:.2f}",
            f"{row['megabytes'] - row['start_megabytes']:,.0f}",
        ]
        for row in records["long_sentences"]["results"]["rows"]
    ]
    return table(["", "tokens", "seconds", "MB more than before"], rows)


def supar_table(records: Records) -> str:
    results = records["beside_supar"]["results"]
    body = []
    other = ""
    for row in reversed(results["parsing"]):
        other = row if row.startswith("SuPar") else other
        cells = []
        for part in ("parsing", "training"):
            rows = results[part]
            mine, theirs = (rows[name]["per_second"]["median"] for name in (row, other))
            cells += [rate(mine) if part == "parsing" else f"{mine:.2f}", f"{mine / theirs:.2f}"]
        body.append([row, f"{results['sizes'][row] / 1e6:.1f}", *cells])
    header = ["", "million parameters", "sentences a second", "× SuPar"]
    return table([*header, "training steps a second", "× SuPar"], body[::-1])


def probabilities_table(records: Records) -> str:
    results = records["probabilities"]["results"]
    body = [
        [
            way,
            f"{row['per_cpu_second']['median']:.1f}",
            f"{results['cost'][way]:.2f}" if way in results["cost"] else "",
        ]
        for way, row in results["rows"].items()
    ]
    return table(["", "sentences a second", "time, ×"], body)


TABLES = {
    "main": main_table,
    "long": long_table,
    "probabilities": probabilities_table,
    "supar": supar_table,
}


def headline(records: Records) -> str:
    found = records["small"]["results"]["rows"]["whole"]["per_second"]["median"]
    return f"{found:,.0f} sentences a second for `small.cfg` on two cores"


def claims(records: Records) -> list[str]:
    results = records["factored"]["results"]
    return [
        f"{results['sentences']:,} sentences of {results['words'] / results['sentences']:.0f} "
        "words on average"
    ]
