"""The tables on the page of this experiment."""

from statistics import median

from benchmarks.tables import Records, table

RECORD = "bilstm_crf"


def speed_table(records: Records) -> str:
    found = records[RECORD]["results"]
    speed = found["speed"]
    body = []
    for title, key in (("1", "one"), (str(found["processes"]), "several")):
        spread = f"{min(speed[key]):.0f} to {max(speed[key]):.0f}"
        ratio = median(speed[key]) / median(speed["one"])
        body.append([title, f"{median(speed[key]):.0f}", spread, f"{ratio:.2f} ×"])
    return table(["processes", "sentences a second, median", "spread", "of one"], body)


def losses_table(records: Records) -> str:
    losses = records[RECORD]["results"]["losses"]
    body = [
        [str(step), f"{losses['one'][step]:.6f}", f"{losses['several'][step]:.6f}"]
        for step in (0, 1, 5, 10, 20)
    ]
    body.append(["largest difference", f"{losses['difference']:.1e} of the loss", ""])
    return table(["step", "loss, one process with batches twice as large", "several"], body)


def death_table(records: Records) -> str:
    death = records[RECORD]["results"]["death"]
    body = [[str(len(death["seconds"])), f"{max(death['seconds']):.2f}", death["said"][:200]]]
    return table(["kills", "seconds until the other one ended, at most", "it said"], body)


TABLES = {"speed": speed_table, "losses": losses_table, "death": death_table}


def headline(records: Records) -> str:
    speed = records[RECORD]["results"]["speed"]
    ratio = median(speed["several"]) / median(speed["one"])
    return f"{ratio:.2f} × the sentences a second"


def claims(records: Records) -> list[str]:
    return []
