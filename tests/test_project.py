"""project.yml and the commands that it runs; the workflow itself is run in CI."""

import re
import shlex
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import spacy
import srsly
import typer
from spacy.tokens import DocBin
from thinc.api import Config
from weasel.util import load_project_config

from spacy_psa.app import app
from spacy_psa.corpora.layouts import LAYOUTS
from spacy_psa.scoring.provenance import md5
from tests.helpers.commands import assert_one_error, command
from tests.helpers.paths import CONFIGS, ROOT
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import killed_at

run = command()
PROJECT = ROOT / "project.yml"
# The directories that weasel makes when it loads a project.
MADE = ("corpus/", "training/", "metrics/", "assets/", "packages/")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the project file alone, where weasel makes its folders."""
    (tmp_path / "project.yml").write_text(PROJECT.read_text(encoding="utf8"), encoding="utf8")
    return tmp_path


def commands(folder: Path, **variables: str) -> list[dict]:
    """The commands of `all`, in order, with variables filled in."""
    overrides = {f"vars.{name}": value for name, value in variables.items()}
    config = load_project_config(folder, overrides=overrides)
    by_name = {command["name"]: command for command in config["commands"]}
    return [by_name[name] for name in config["workflows"]["all"]]


TASKS = [(corpus, task) for corpus, layout in LAYOUTS.items() for task in layout.tasks]


@pytest.mark.parametrize(("corpus", "task"), [pair for pair in TASKS if pair[1] != "parser"])
def test_each_step_needs_what_a_step_before_it_makes(project, corpus, task):
    made = ["assets/sample"]  # which is in the repository
    for step in commands(project, corpus=corpus, task=task):
        for dep in step.get("deps", []):
            there = (ROOT / dep).exists() if dep.startswith("configs/") else False
            within = any(dep == path or dep.startswith(f"{path}/") for path in made)
            assert there or within, f"{step['name']} needs {dep}"
        made += step.get("outputs", [])
    for output in ("model-best", "model-int8"):
        assert f"training/{corpus}/{output}" in made
    for output in (f"{corpus}.md", f"{corpus}.json", f"{corpus}-int8.md", f"{corpus}-int8.json"):
        assert f"metrics/{output}" in made


@pytest.mark.parametrize("corpus", LAYOUTS)
@pytest.mark.parametrize("mirror", ["", "/a folder/with blanks"])
def test_commands_of_ours_take_the_options_that_the_project_gives(project, corpus, mirror):
    chosen = {"mirror": mirror, "task": LAYOUTS[corpus].tasks[0], "set": "a.b=1 c.d=x"}
    group = typer.main.get_command(app)
    seen = set()
    for step in commands(project, corpus=corpus, **chosen):
        for line in step["script"]:
            assert "${" not in line
            words = shlex.split(line)
            if words[:3] != ["python", "-m", "spacy_psa"]:
                continue
            _, _, _, name, *arguments = words
            # Parses and so checks the arguments, without running the command.
            context = group.commands[name].make_context(name, arguments)
            seen.add(name)
            if name == "assets":
                assert context.params["mirror"] == mirror
                assert context.params["fetch"]
                assert context.params["task"] == chosen["task"]
            if name == "configure":
                assert context.params["values"] == ["a.b=1", "c.d=x"]
                assert context.params["log"] == Path(f"training/{corpus}/log.jsonl")
            if name == "train":
                assert context.params["resume"]
    assert seen == {"assets", "prepare", "configure", "train", "report", "quantize"}


SMALL = [
    "components.ner.model.tok2vec.embed.*.words.width=4",
    "components.ner.model.tok2vec.embed.*.characters.hidden=2",
    "components.ner.model.tok2vec.encode.hidden=2",
    "training.max_steps=4",
    "training.eval_frequency=2",
]


def test_a_workflow_that_was_killed_goes_on_where_it_was(project, monkeypatch):
    (project / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(project)
    scripts = {step["name"]: step["script"] for step in commands(project, set=" ".join(SMALL))}

    def start():
        for line in (*scripts["configure"], *scripts["train"]):
            assert line.startswith("python -m spacy_psa ")
            result = run(*shlex.split(line)[3:])
            assert result.exit_code == 0, result.output
        return result.stdout

    examples = make_examples(spacy.blank("en"))
    (project / "corpus" / "sample").mkdir(parents=True)
    for part in ("train", "dev"):
        docs = [eg.reference for eg in examples]
        DocBin(docs=docs).to_disk(project / "corpus" / "sample" / f"{part}.spacy")
    with killed_at(monkeypatch, 2):
        start()
    assert "Resuming after step 2" in start()
    folder = project / "training" / "sample"
    rows = [srsly.json_loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 2, 4]
    assert spacy.load(folder / "model-best").pipe_names == ["ner"]
    assert "is finished" in start()
    assert (folder / "log.jsonl").exists()


def test_each_file_of_a_corpus_is_an_asset_of_the_project():
    listed = {asset["dest"]: asset for asset in srsly.read_yaml(PROJECT)["assets"]}
    for corpus, layout in LAYOUTS.items():
        for file in layout.files():
            asset = listed[f"assets/{file}"]
            # The sample is in the repository and OntoNotes licensed; all else has an address.
            private = corpus == "sample" or file.name == "conll-2012-en.tar.xz"
            assert ("url" in asset) != private
            assert re.fullmatch(r"[0-9a-f]{32}", asset.get("checksum", "0" * 32))
            assert private or asset["size"] > 0


def write_assets(folder: Path) -> Path:
    """A small project whose assets are to be found in the folder that is returned."""
    mirror = folder / "mirror"
    for name in ("conll2003", "glove"):
        (mirror / name).mkdir(parents=True)
    listed = []
    for name in ("eng.train", "eng.testa", "eng.testb"):
        path = mirror / "conll2003" / name
        path.write_text(f"content of {name}")
        url = f"https://example.org/{name}"
        listed.append({"dest": f"assets/conll2003/{name}", "url": url, "checksum": md5(path)})
    with zipfile.ZipFile(mirror / "glove" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.100d.txt", "the 0.5\n")
    listed.append({"dest": "assets/glove/glove.6B.zip"})
    srsly.write_yaml(folder / "project.yml", {"assets": listed})
    return mirror


def test_missing_assets_are_named_in_one_line(tmp_path):
    write_assets(tmp_path)
    result = run("assets", "conll2003", "--project", tmp_path / "project.yml")
    names = ("eng.train", "eng.testa", "eng.testb", "glove.6B.zip", "--download")
    assert_one_error(result, *names)


def test_assets_are_copied_from_a_mirror_and_then_needed_no_more(tmp_path):
    mirror = write_assets(tmp_path)
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    assert run(*arguments, "--mirror", mirror).exit_code == 0
    copied = tmp_path / "assets" / "conll2003" / "eng.testa"
    assert copied.read_text() == "content of eng.testa"
    assert run(*arguments).exit_code == 0


def test_mirror_may_be_flat_and_lack_what_is_there(tmp_path):
    mirror = write_assets(tmp_path)
    (tmp_path / "assets" / "glove").mkdir(parents=True)
    (mirror / "glove" / "glove.6B.zip").rename(tmp_path / "assets" / "glove" / "glove.6B.zip")
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    assert run(*arguments, "--mirror", mirror / "conll2003").exit_code == 0


def test_wrong_checksum_is_an_error_and_a_mirror_mends_it(tmp_path):
    mirror = write_assets(tmp_path)
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    run(*arguments, "--mirror", mirror)
    damaged = tmp_path / "assets" / "conll2003" / "eng.train"
    damaged.write_text("half")
    result = run(*arguments)
    assert_one_error(result, "eng.train: is damaged")
    assert run(*arguments, "--mirror", mirror).exit_code == 0
    assert damaged.read_text() == "content of eng.train"


def test_archive_that_is_cut_off_is_an_error(tmp_path):
    mirror = write_assets(tmp_path)
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    run(*arguments, "--mirror", mirror)
    archive = tmp_path / "assets" / "glove" / "glove.6B.zip"
    archive.write_bytes(archive.read_bytes()[:-10])
    result = run(*arguments)
    assert result.exit_code == 2 and "glove.6B.zip: is damaged" in result.stderr


def test_file_of_a_mirror_with_a_wrong_checksum_is_not_taken(tmp_path):
    mirror = write_assets(tmp_path)
    (mirror / "conll2003" / "eng.train").write_text("another version")
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml", "--mirror", mirror]
    result = run(*arguments)
    assert result.exit_code == 2
    assert "missing" in result.stderr and "eng.train;" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["assets", "conll2004"], "unknown corpus 'conll2004'"),
        (["assets", "sample", "--mirror", "/no/such/folder"], "no such folder"),
        (["assets", "sample", "--project", "/no/such/project.yml"], "no project file"),
        (["assets", "conll2000", "--task", "ner"], "--vars.task chunker or tagger"),
        (["assets", "resume", "--task", "naming"], "the task 'naming'; give --vars.task ner"),
        (["assets", "wsj", "--task", "tagger"], "conll-2012-en.tar.xz (not for download)"),
        (["prepare", "conll2004", "assets", "corpus"], "unknown corpus 'conll2004'"),
        (["merge-config", "none.cfg", "none.cfg", "out.cfg"], "no such config"),
    ],
)
def test_bad_arguments_give_one_line_and_code_2(tmp_path, monkeypatch, arguments, reason):
    monkeypatch.chdir(write_assets(tmp_path).parent)
    result = run(*arguments)
    assert_one_error(result, reason)


def test_conll2003_is_prepared_with_its_vectors(tmp_path):
    (tmp_path / "assets" / "conll2003").mkdir(parents=True)
    (tmp_path / "assets" / "glove").mkdir()
    lines = "-DOCSTART- -X- O O\n\nRome NNP I-NP I-LOC\nfell VBD I-VP O\n"
    for name in ("eng.train", "eng.testa", "eng.testb"):
        (tmp_path / "assets" / "conll2003" / name).write_text(lines)
    numbers = " ".join(["0.5"] * 100)
    with zipfile.ZipFile(tmp_path / "assets" / "glove" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.100d.txt", f"rome {numbers}\nfell {numbers}\n")
    out = tmp_path / "corpus"
    assert run("prepare", "conll2003", tmp_path / "assets", out).exit_code == 0
    nlp = spacy.load(out / "vectors")
    assert nlp.vocab["rome"].vector.tolist() == [0.5] * 100
    for name in ("train", "dev", "test"):
        (doc,) = spacy.tokens.DocBin().from_disk(out / f"{name}.spacy").get_docs(nlp.vocab)
        assert [(ent.text, ent.label_) for ent in doc.ents] == [("Rome", "LOC")]


BASE = (
    '[paths]\ntrain = null\nvectors = "x"\n\n[training]\ntrain = ${paths.train}\nmax_epochs = 9\n'
)


def test_merged_config_has_the_settings_and_its_variables(tmp_path):
    (tmp_path / "base.cfg").write_text(BASE)
    (tmp_path / "part.cfg").write_text("[paths]\nvectors = null\n\n[training]\nmax_epochs = 2\n")
    out = tmp_path / "new" / "out.cfg"
    assert run("merge-config", tmp_path / "base.cfg", tmp_path / "part.cfg", out).exit_code == 0
    merged = Config().from_disk(out, interpolate=False)
    assert merged["paths"] == {"train": None, "vectors": None}
    assert merged["training"] == {"train": "${paths.train}", "max_epochs": 2}


def test_settings_in_a_section_that_the_base_lacks_are_an_error(tmp_path):
    (tmp_path / "base.cfg").write_text(BASE)
    (tmp_path / "part.cfg").write_text("[training]\n\n[training.optimiser]\nlr = 1\n")
    out = tmp_path / "out.cfg"
    result = run("merge-config", tmp_path / "base.cfg", tmp_path / "part.cfg", out)
    assert result.exit_code == 2 and "[training.optimiser]" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(("corpus", "task"), TASKS)
def test_settings_of_each_corpus_lie_over_each_config(tmp_path, corpus, task):
    for base in sorted((CONFIGS / task).glob("*.cfg")):
        settings = CONFIGS / "corpora" / f"{corpus}.cfg"
        result = run("merge-config", base, settings, tmp_path / "out.cfg")
        assert result.exit_code == 0, result.stderr


TRAINING = """[training]
eval_frequency = 879
max_epochs = 100
patience = 8790

[training.batcher]
size = {size}

[training.optimizer]

[training.optimizer.learn_rate]
steps_per_epoch = 879
total_steps = 87900
"""


def fit(folder: Path, base: str, part: str) -> dict:
    """The [training] section of the merged config."""
    (folder / "base.cfg").write_text(base)
    (folder / "part.cfg").write_text(part)
    out = folder / "out.cfg"
    result = run("merge-config", folder / "base.cfg", folder / "part.cfg", out)
    assert result.exit_code == 0, result.stderr
    merged = Config().from_disk(out)
    assert "corpus" not in merged
    return merged["training"]


def test_epochs_of_the_base_become_epochs_of_the_corpus(tmp_path):
    part = "[corpus]\nsentences = 161\n\n[training]\nmax_epochs = 20\n"
    training = fit(tmp_path, TRAINING.format(size=16), part)
    assert training["eval_frequency"] == 11  # 161 / 16, rounded up
    assert training["patience"] == 10 * 11
    assert training["optimizer"]["learn_rate"] == {"steps_per_epoch": 11, "total_steps": 20 * 11}


def test_a_rate_without_schedule_stays_and_so_do_steps_of_batches_by_words(tmp_path):
    constant = TRAINING.format(size=16).partition("[training.optimizer]")[0]
    constant += "[training.optimizer]\nlearn_rate = 0.001\n"
    assert fit(tmp_path, constant, "[corpus]\nsentences = 161\n")["patience"] == 110
    words = TRAINING.format(size='{"@schedules":"compounding.v1"}')
    assert fit(tmp_path, words, "[corpus]\nsentences = 161\n")["eval_frequency"] == 879


def test_batches_by_words_count_the_words_of_the_corpus(tmp_path):
    base = """
[training]
max_epochs = 0
max_steps = 1000
eval_frequency = 100
patience = 300

[training.batcher]
@batchers = "spacy.batch_by_words.v1"
size = 50

[training.optimizer]
@optimizers = "spacy-psa.AdamW.v1"

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
initial_rate = 0.001
warmup_steps = 30
total_steps = 1000
"""
    training = fit(tmp_path, base, "[corpus]\nsentences = 161\nwords = 1980\n")
    assert training["eval_frequency"] == 40  # 1980 / 50, rounded up
    assert (training["max_steps"], training["patience"]) == (10 * 40, 3 * 40)
    assert training["optimizer"]["learn_rate"]["total_steps"] == 10 * 40


@pytest.mark.parametrize(("batches", "unit"), [("words", "sentences"), ("sequence", "words")])
def test_a_corpus_must_have_the_unit_of_the_batches(tmp_path, batches, unit):
    batcher = f'[training.batcher]\n@batchers = "spacy.batch_by_{batches}.v1"'
    base = TRAINING.format(size=16).replace("[training.batcher]", batcher)
    (tmp_path / "base.cfg").write_text(base)
    (tmp_path / "part.cfg").write_text(f"[corpus]\n{unit} = 161\n")
    result = run("merge-config", tmp_path / "base.cfg", tmp_path / "part.cfg", tmp_path / "out.cfg")
    missing = {"words": "sentences", "sentences": "words"}[unit]
    assert result.exit_code == 2
    assert f"[training.batcher] counts in {missing}: add {missing!r}" in result.stderr
    assert not (tmp_path / "out.cfg").exists()


def test_settings_of_the_command_line_come_last_and_the_schedule_follows_them(tmp_path):
    (tmp_path / "base.cfg").write_text(TRAINING.format(size=16))
    (tmp_path / "part.cfg").write_text("[corpus]\nsentences = 161\n[training]\nmax_epochs = 20\n")
    out = tmp_path / "out.cfg"
    files = [tmp_path / "base.cfg", tmp_path / "part.cfg", out]
    result = run("merge-config", *files, "training.max_epochs=3", "training.patience=7")
    assert result.exit_code == 0, result.stderr
    training = Config().from_disk(out)["training"]
    assert (training["max_epochs"], training["patience"]) == (3, 7)
    assert training["optimizer"]["learn_rate"]["total_steps"] == 3 * 11


def test_labels_of_a_corpus_are_read_from_where_its_settings_say(tmp_path, monkeypatch):
    """Sections 19 to 21 of the Wall Street Journal have a tag that 0 to 18 lack."""
    base, settings = CONFIGS / "tagger" / "psa.cfg", CONFIGS / "corpora/wsj.cfg"
    assert run("merge-config", base, settings, tmp_path / "out.cfg").exit_code == 0
    monkeypatch.chdir(ROOT)
    labels = Config().from_disk(tmp_path / "out.cfg")["initialize"]["components"]["tagger"]
    tags = spacy.registry.resolve(labels)["labels"]
    assert len(tags) == len({*tags}) == 48 and {"XX", "$", "NN", "PRP$"} <= {*tags}


@pytest.mark.parametrize("base", ["ner/psa", "parser/small"])
def test_the_log_goes_where_it_is_asked_for(tmp_path, base):
    """Also where the logger stands inside of one that listens for scores."""
    files = CONFIGS / f"{base}.cfg", CONFIGS / "corpora/sample.cfg"
    result = run("merge-config", *files, tmp_path / "out.cfg", "--log", "a/log.jsonl")
    assert result.exit_code == 0, result.stderr
    logger = Config().from_disk(tmp_path / "out.cfg", interpolate=False)["training"]["logger"]
    assert logger.get("logger", logger)["output_file"] == "a/log.jsonl"
    assert ("output_file" in logger) != ("logger" in logger)


def test_a_section_is_laid_over_the_one_there(tmp_path):
    files = CONFIGS / "ner/psa.cfg", CONFIGS / "corpora/sample.cfg"
    result = run("merge-config", *files, tmp_path / "out.cfg", 'training.optimizer={"momentum":0}')
    assert result.exit_code == 0, result.stderr
    before = Config().from_disk(files[0])["training"]["optimizer"]
    made = Config().from_disk(tmp_path / "out.cfg")["training"]["optimizer"]
    assert before["momentum"] == 0.9 and made["momentum"] == 0
    assert made["@optimizers"] == before["@optimizers"] and made.keys() == before.keys()


def test_a_section_that_names_another_function_takes_the_place_of_the_one_there(tmp_path):
    files = CONFIGS / "ner/psa.cfg", CONFIGS / "corpora/sample.cfg"
    optimizer = {
        "@optimizers": "spacy-psa.Adam.v1",
        "learn_rate": {"@schedules": "constant.v1", "rate": 0.002},
    }
    section = f"training.optimizer={srsly.json_dumps(optimizer)}"
    result = run("merge-config", *files, tmp_path / "out.cfg", section)
    assert result.exit_code == 0, result.stderr
    made = Config().from_disk(tmp_path / "out.cfg")["training"]["optimizer"]
    assert made == optimizer
    assert next(iter(spacy.registry.resolve({"it": made})["it"].schedules["learn_rate"])) == 0.002


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("training.epochs=3", "has no setting 'training.epochs'"),
        ("training.max_epochs", "give a setting and its value"),
        ("training.batcher=3", "give a setting and its value"),
        ("nothing", "nothing: has no '='"),
    ],
)
def test_a_setting_that_is_none_is_an_error(tmp_path, value, reason):
    (tmp_path / "base.cfg").write_text(TRAINING.format(size=16))
    (tmp_path / "part.cfg").write_text("[corpus]\nsentences = 161\n")
    out = tmp_path / "out.cfg"
    result = run("merge-config", tmp_path / "base.cfg", tmp_path / "part.cfg", out, value)
    assert_one_error(result, reason)
    assert not out.exists()


@pytest.mark.parametrize("sentences", ["0", '"many"', "2.5"])
def test_a_corpus_without_a_number_of_sentences_is_an_error(tmp_path, sentences):
    (tmp_path / "base.cfg").write_text(TRAINING.format(size=16))
    (tmp_path / "part.cfg").write_text(f"[corpus]\nsentences = {sentences}\n")
    out = tmp_path / "out.cfg"
    result = run("merge-config", tmp_path / "base.cfg", tmp_path / "part.cfg", out)
    assert result.exit_code == 2 and "[corpus]: sentences is" in result.stderr
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "corpus"),
    [
        ("ner/psa", "conll2003"),
        ("ner/tener", "conll2003"),
        ("ner/cross", "conll2003"),
        ("ner/transformer_crf", "conll2003"),
        ("ner/tok2vec_crf", "conll2003"),
        ("ner/tener_zh", "resume"),
        ("ner/best", "conll2003"),
        ("chunker/psa", "conll2000"),
        ("chunker/best", "conll2000"),
        ("tagger/psa", "wsj"),
        ("tagger/best", "wsj"),
    ],
)
def test_settings_of_the_papers_corpus_change_no_step(tmp_path, name, corpus):
    base = CONFIGS / f"{name}.cfg"
    settings = CONFIGS / "corpora" / f"{corpus}.cfg"
    run("merge-config", base, settings, tmp_path / "out.cfg")
    merged = Config().from_disk(tmp_path / "out.cfg", interpolate=False)
    assert "corpus" not in merged
    assert merged["training"] == Config().from_disk(base, interpolate=False)["training"]


def write_zip(path: Path, members: dict[str, str]) -> None:
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def test_conll2000_is_prepared_without_its_drawn_sentences(tmp_path):
    assets, out = tmp_path / "assets", tmp_path / "corpus"
    numbers = " ".join(["0.5"] * 100)
    write_zip(assets / "glove" / "glove.6B.zip", {"glove.6B.100d.txt": f"a {numbers}\n"})
    train = "".join(f"w{i} NN B-NP\n\n" for i in range(1003))
    write_zip(assets / "conll2000" / "conll2000.zip", {"train.txt": train, "test.txt": "a DT O\n"})
    result = run("prepare", "conll2000", assets, out)
    assert result.exit_code == 0, result.stderr
    words = {}
    for name in ("train", "dev", "test"):
        docs = spacy.tokens.DocBin().from_disk(out / f"{name}.spacy").get_docs(spacy.vocab.Vocab())
        words[name] = [doc[0].text for doc in docs]
    assert [len(words[name]) for name in ("train", "dev", "test")] == [3, 1000, 1]
    assert {*words["train"], *words["dev"]} == {f"w{i}" for i in range(1003)}


def test_an_error_while_preparing_is_one_line(tmp_path):
    (tmp_path / "assets" / "resume").mkdir(parents=True)
    (tmp_path / "assets" / "resume" / "train.char.bmes").write_text("EU NNP I-NP I-ORG\n")
    result = run("prepare", "resume", tmp_path / "assets", tmp_path / "corpus")
    assert_one_error(result, "train.char.bmes:1: 4 column(s)")
    assert not list(tmp_path.glob("corpus/*.spacy"))


class Files(SimpleHTTPRequestHandler):
    """Serves files, without a log."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path):
    """A server of the files in the mirror of `write_assets`, which the project names."""
    mirror = write_assets(tmp_path)
    handler = partial(Files, directory=mirror)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        project = srsly.read_yaml(tmp_path / "project.yml")
        for asset in project["assets"]:
            name = asset["dest"].removeprefix("assets/")
            asset["url"] = f"http://127.0.0.1:{server.server_port}/{name}"
        srsly.write_yaml(tmp_path / "project.yml", project)
        yield mirror
        server.shutdown()


def test_missing_and_damaged_assets_are_downloaded(tmp_path, server):
    (tmp_path / "assets" / "conll2003").mkdir(parents=True)
    damaged = tmp_path / "assets" / "conll2003" / "eng.train"
    damaged.write_text("half")
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    assert_one_error(run(*arguments), "eng.train: is damaged", "--download")
    result = run(*arguments, "--download")
    assert result.exit_code == 0, result.output
    assert damaged.read_text() == "content of eng.train"
    assert "downloading" not in run(*arguments, "--download").output


def test_a_mirror_comes_before_a_download(tmp_path, server):
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    result = run(*arguments, "--mirror", server / "conll2003", "--download")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("downloading") == 1  # glove, which that folder lacks


def test_a_download_of_wrong_bytes_replaces_nothing(tmp_path, server):
    arguments = ["assets", "conll2003", "--project", tmp_path / "project.yml"]
    assert run(*arguments, "--download").exit_code == 0
    there = tmp_path / "assets" / "conll2003" / "eng.train"
    there.write_text("mine")
    (server / "conll2003" / "eng.train").write_text("wrong")
    assert_one_error(run(*arguments, "--download"), "eng.train: the server has another file")
    assert there.read_text() == "mine"


def test_a_folder_of_own_files_becomes_a_model_by_the_steps_of_the_project(project, monkeypatch):
    (project / "my_files").mkdir()
    rows = "".join(f"Ada{i}\tB-PER\nleft\tO\n\n" for i in range(40))
    (project / "my_files" / "all.iob").write_text(rows)
    monkeypatch.chdir(project)
    steps = commands(project, corpus="my_files", set=" ".join(SMALL))
    for step in steps:
        if step["name"] in ("assets", "convert", "configure", "train", "report"):
            for line in step["script"]:
                result = run(*shlex.split(line)[3:])
                assert result.exit_code == 0, result.output
            for output in step["outputs"]:
                assert (project / output).exists(), output
    made = {path.name for path in (project / "corpus" / "my_files").iterdir()}
    assert made == {"train.spacy", "dev.spacy", "test.spacy", "check.json"}
    assert spacy.load(project / "training" / "my_files" / "model-best").pipe_names == ["ner"]
    recorded = srsly.read_json(project / "assets" / "my_files.json")
    assert recorded["my_files/all.iob"]["md5"] == md5(project / "my_files" / "all.iob")


def test_wnut17_and_wikigold_are_prepared_with_their_vectors(tmp_path):
    rows = "".join(f"-DOCSTART- O\n\nRome{i}\tI-LOC\nfell\tO\n\t\n" for i in range(40))
    for layout in (LAYOUTS["wnut17"], LAYOUTS["wikigold"]):
        for file in layout.files():
            (tmp_path / "assets" / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "assets" / file).write_text(rows)
    numbers = " ".join(["0.5"] * 100)
    with zipfile.ZipFile(tmp_path / "assets" / "glove" / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.100d.txt", f"rome {numbers}\nfell {numbers}\n")
    counts = {}
    for corpus in ("wnut17", "wikigold"):
        out = tmp_path / corpus
        assert run("prepare", corpus, tmp_path / "assets", out).exit_code == 0
        nlp = spacy.load(out / "vectors")
        for part in ("train", "dev", "test"):
            docs = list(DocBin().from_disk(out / f"{part}.spacy").get_docs(nlp.vocab))
            assert all([ent.label_ for ent in doc.ents] == ["LOC"] for doc in docs)
            counts[corpus, part] = len(docs)
    assert [*counts.values()] == [40, 40, 40, 32, 4, 4]
