"""Draw the page Annotate before and after the first Teach, in light and dark.

usage: python docs/pictures/page.py

Needs chromium and `pip install -e ".[serve,test]"`. The texts and decisions are those of the sample
corpus.
"""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
SAMPLE = HERE.parents[1] / "assets" / "sample" / "train.jsonl"
TEXTS, DECIDED = 80, 60


def decide(address: str, records: list[dict[str, Any]]) -> None:
    """Send the decisions about the first texts, as an annotator would make them."""
    for number, record in enumerate(records[:DECIDED], 1):
        end = len(record["words"])
        spans = [
            {"verdict": "accepted", "start": start, "end": stop, "label": label}
            for start, stop, label in record["ents"]
        ]
        rest = {"verdict": "complete", "start": 0, "end": end}
        asked = {"annotator": "ada", "text": number, "decisions": [*spans, rest]}
        ask(f"{address}api/annotation/decide", asked)


def ask(url: str, body: object = None) -> Any:
    """Send a request of JSON, and return the answer."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main() -> None:
    from playwright.sync_api import sync_playwright

    lines = SAMPLE.read_text(encoding="utf8").splitlines()
    records = [json.loads(line) for line in islice(lines, TEXTS)]
    labels = sorted({label for record in records for _, _, label in record["ents"]})
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        texts = Path(folder, "texts.tok")
        texts.write_text("".join(f"{' '.join(record['words'])}\n" for record in records))
        command = [sys.executable, "-m", "spacy_psa", "serve", "--port", "0", "--annotator", "ada"]
        command += ["--labels", ",".join(labels), "--texts", str(texts)]
        command += ["--annotate", str(Path(folder, "names.sqlite"))]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )

        def shoot(name: str) -> None:
            for scheme in ("light", "dark"):
                page = browser.new_page(
                    viewport={"width": 1280, "height": 600},
                    color_scheme=scheme,
                    device_scale_factor=2,
                )
                page.goto(f"{address}annotate")
                page.wait_for_selector("#result .word")
                page.wait_for_timeout(300)
                clip = {"x": 0, "y": 0, "width": 1280, "height": 470}
                page.screenshot(path=str(HERE / f"{name}-{scheme}.png"), clip=clip)
                page.close()

        try:
            start, end, label = records[0]["ents"][0]
            first = {"verdict": "accepted", "start": start, "end": end, "label": label}
            asked = {"annotator": "ada", "text": 1, "decisions": [first]}
            ask(f"{address}api/annotation/decide", asked)
            shoot("begin")
            decide(address, records)
            began = time.monotonic()
            ask(f"{address}api/annotation/teach", {})
            while ask(f"{address}api/annotation/teach")["state"] == "running":
                time.sleep(1)
            message = ask(f"{address}api/annotation/teach")["message"]
            print(f"{message} ({time.monotonic() - began:.0f} s)")
            shoot("taught")
        finally:
            browser.close()
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
