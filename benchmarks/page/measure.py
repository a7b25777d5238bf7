"""Measure how fast the page Annotate answers, in Chromium, with many texts.

A server of `spacy-psa serve` has TEXTS texts, of which two annotators have decided some. They are
the sentences of DATA.jsonl (the sample corpus), with numbers. The server computes the order of
the texts meanwhile, as after each start.

Results (kind "figures"): `texts`; `decided` texts of each annotator; `paint`, the seconds from the
address to the first paint and to the first text; `rows`, for each action the milliseconds from the
click or key to a frame with a busy sign or the answer (`sign`) and to one with the answer
(`answer`), each with `median` and `max` of the repeats.
"""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from typing import Any

import srsly

from benchmarks.record import write_record
from benchmarks.script import script_parser
from spacy_psa.child_processes import child_command, child_environment
from spacy_psa.loading import confident_pipe, load_pipeline
from spacy_psa.studio.active_learning.decisions import Decision
from spacy_psa.studio.active_learning.store import open_store
from spacy_psa.studio.server.annotate_plan import read_texts
from spacy_psa.studio.server.annotating import component_of

SUGGESTED = ".span:not(.required)"
DECIDED = 1000
"""Texts that each annotator has decided."""
ACTIONS = {
    "accept a suggestion": ("annotate", "key('y')", "text('#status') === 'Saved.'"),
    "reject a suggestion": ("annotate", "key('x')", "text('#status') === 'Saved.'"),
    "undo": ("annotate", "key('u')", "text('#counts') !== before"),
    "complete a sentence": ("annotate", "key('d')", "text('#result') !== shown"),
    "next text": ("annotate", "click('#skip')", "text('#result') !== shown"),
    "search": ("annotate", "type('#search', TERM)", "text('#texts') !== found"),
    "later texts": ("annotate", "click('#later')", "text('#texts') !== found"),
    "export": ("project", "click('[data-form=jsonl]')", "text('#exported').startsWith('Saved')"),
    "teach": ("project", "click('#teach')", "!$('#stop').hidden"),
}
"""The page, the action, and how its answer is recognised."""
SCRIPT = """([act, done, TERM]) => new Promise((resolve) => {
    const $ = (place) => document.querySelector(place);
    const text = (place) => $(place)?.innerText ?? '';
    const key = (name) => document.activeElement.dispatchEvent(
        new KeyboardEvent('keydown', {key: name, bubbles: true, cancelable: true}));
    const click = (place) => $(place).click();
    const type = (place, value) => {
        $(place).value = value;
        $(place).dispatchEvent(new Event('input'));
    };
    const [before, shown, found] = ['#counts', '#result', '#texts'].map(text);
    const answered = () => eval(done);
    const signed = () => $('body.busy, [aria-busy=true]') || ['#status', '#exported', '#taught']
        .some((place) => /…/.test(text(place)));
    if ($('#status')) $('#status').textContent = '';
    const start = performance.now();
    const [sign, end] = [[], start + 30000];
    eval(act);
    const look = () => {
        const now = performance.now();
        if (!sign.length && (signed() || answered())) sign.push(now - start);
        if (answered() || now > end) resolve([sign[0] ?? 30000, now - start]);
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
})"""


def fill(path: Path, model: str, sentences: list[str], size: int) -> None:
    """Make a file of decisions with some texts, the first of which two annotators have decided."""
    nlp = load_pipeline(model)
    pipe = confident_pipe(nlp, None)
    texts = path.with_suffix(".txt")
    lines = (f"{text} {number}" for text, number in zip(cycle(sentences), count()))
    texts.write_text("\n".join(islice(lines, size)) + "\n", encoding="utf8")
    with open_store(path) as store:
        store.use(component_of(pipe))
        store.add(read_texts(nlp, pipe.name, texts))
        for number, length in islice(store.lengths().items(), DECIDED):
            for name in ("ann", "eve"):
                other = name == "eve" and number % 3 == 1  # eve often has another label
                span = Decision("accepted", 0, 1, pipe.labels[other])
                store.decide(number, name, pipe.name, [span, Decision("complete", 0, length)])


@contextmanager
def server(model: str, path: Path) -> Iterator[str]:
    """The address of a server."""
    options = ("--annotate", str(path), "--port", "0", "--annotator", "ann")
    command = child_command("spacy_psa", "serve", model, *options)
    with Popen(command, stdout=PIPE, text=True, env=child_environment()) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()


def summary(values: list[float]) -> dict[str, float]:
    return {"median": round(median(values), 3), "max": round(max(values), 3)}


def measure(address: str, actions: Collection[str], repeats: int, chromium: str) -> dict[str, Any]:
    """The figures of some actions."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        paints: list[tuple[float, float]] = []
        for _ in range(repeats):
            page = browser.new_context().new_page()
            page.goto(f"{address}annotate")
            page.wait_for_selector("#result .word")
            first = page.evaluate(
                "[performance.getEntriesByName('first-contentful-paint')[0].startTime, "
                "performance.now()]"
            )
            paints.append((first[0] / 1000, first[1] / 1000))
            page.context.close()
        rows = {}
        context = browser.new_context(bypass_csp=True)
        for name, (view, act, done) in ((name, ACTIONS[name]) for name in actions):
            page = context.new_page()
            page.goto(f"{address}{view}")
            page.wait_for_selector("#result .word" if view == "annotate" else "#agreement article")
            times = []
            for i in range(repeats):
                page.wait_for_selector("body:not(.busy)", state="attached")
                while "suggestion" in name:  # in a text that has some
                    page.keyboard.press("s")
                    page.wait_for_timeout(300)
                    page.wait_for_selector("body:not(.busy)", state="attached")
                    if page.query_selector(SUGGESTED):
                        page.focus(SUGGESTED)
                        break
                times.append(page.evaluate(SCRIPT, [act, done, f"1{i}"]))
                if name == "teach":
                    page.click("#stop")
                    page.wait_for_selector("#teach:not([disabled])")
            rows[name] = {
                key: summary(list(values)) for key, values in zip(("sign", "answer"), zip(*times))
            }
            print(name, rows[name], flush=True)
            page.close()
        browser.close()
    shown = dict(zip(("paint", "text"), map(summary, map(list, zip(*paints)))))
    return {"paint": shown, "rows": rows}


def texts_of(data: Path) -> list[str]:
    """The sentences of a file with words and spaces."""
    return [
        "".join(word + " " * space for word, space in zip(row["words"], row["spaces"])).strip()
        for row in srsly.read_jsonl(data)
    ]


def main() -> None:
    options = script_parser(globals(), "MODEL", "DATA.jsonl")
    options.add_argument("--texts", type=int, default=20_000, help="texts of the work (20000)")
    options.add_argument("--repeats", type=int, default=15, help="of each action (15)")
    options.add_argument("--only", choices=ACTIONS, help="one action, for a record of its own")
    given = options.parse_args()
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or ""
    sentences = texts_of(given.data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.sqlite"
        fill(path, given.model, sentences, given.texts)
        with server(given.model, path) as address:
            actions = [given.only] if given.only else ACTIONS
            figures = measure(address, actions, given.repeats, chromium)
    results = {"texts": given.texts, "decided": DECIDED, **figures}
    write_record(given.only or "annotate", "page", results, data=[given.data])


if __name__ == "__main__":
    main()
