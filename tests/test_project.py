"""project.yml and the commands that it runs; the workflow itself is run in CI."""

import re
import shlex
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import spacy
import srsly
import typer
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab
from typer.testing import Result
from weasel.util import load_project_config

from spacy_psa.app import app
from spacy_psa.corpora.assets import md5
from spacy_psa.corpora.layouts import LAYOUTS
from spacy_psa.training.recipes import project_config
from tests.helpers.commands import assert_one_error, command, succeed
from tests.helpers.corpora import write_gum
from tests.helpers.paths import CONFIGS, ROOT
from tests.helpers.pipelines import make_examples
from tests.helpers.trainings import killed_at

run = command()
PROJECT = ROOT / "project.yml"
TASKS = [(corpus, task) for corpus, layout in LAYOUTS.items() for task in layout.tasks]
PARTS = ("train", "dev", "test")
SMALL = [
    "components.ner.model.tok2vec.embed.*.words.width=4",
    "components.ner.model.tok2vec.embed.*.characters.hidden=2",
    "components.ner.model.tok2vec.encode.hidden=2",
    "training.max_steps=4",
    "training.eval_frequency=2",
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with only the project file, in which weasel makes its folders."""
    (tmp_path / "project.yml").write_text(PROJECT.read_text(encoding="utf8"), encoding="utf8")
    return tmp_path


def commands(folder: Path, **variables: str) -> list[dict]:
    """The commands of `all`, in order, with variables filled in."""
    overrides = {f"vars.{name}": value for name, value in variables.items()}
    config = load_project_config(folder, overrides=overrides)
    by_name = {command["name"]: command for command in config["commands"]}
    return [by_name[name] for name in config["workflows"]["all"]]


def run_steps(steps: list[dict], *names: str) -> str:
    """Run our commands in some steps, and return the output of the last one."""
    for line in (line for step in steps if step["name"] in names for line in step["script"]):
        assert line.startswith("python -m spacy_psa ")
        result = succeed(run(*shlex.split(line)[3:]))
    return result.stdout


@pytest.mark.parametrize(("corpus", "task"), [pair for pair in TASKS if pair[1] != "parser"])
def test_each_step_needs_what_a_step_before_it_makes(project, corpus, task):
    made = ["assets/sample"]  # which is in the repository
    for step in commands(project, corpus=corpus, task=task):
        for dep in step.get("deps", []):
            there = (ROOT / dep).exists() if dep.startswith("configs/") else False
            within = any(dep == path or dep.startswith(f"{path}/") for path in made)
            assert there or within, f"{step['name']} needs {dep}"
        made += step.get("outputs", [])
    assert {f"training/{corpus}/model-{name}" for name in ("best", "int8")} <= {*made}
    reports = [f"{corpus}{kind}" for kind in (".md", ".json", "-int8.md", "-int8.json")]
    assert {f"metrics/{name}" for name in reports} <= {*made}


@pytest.mark.parametrize("corpus", LAYOUTS)
@pytest.mark.parametrize("mirror", ["", "/a folder/with blanks"])
def test_our_commands_accept_the_options_of_the_project(project, corpus, mirror):
    chosen = {"mirror": mirror, "task": LAYOUTS[corpus].tasks[0], "set": "a.b=1 c.d=x"}
    group = typer.main.get_command(app)
    seen = {}
    for line in (
        line for step in commands(project, corpus=corpus, **chosen) for line in step["script"]
    ):
        assert "${" not in line
        if line.startswith("python -m spacy_psa "):
            name, *arguments = shlex.split(line)[3:]
            # Parses and so checks the arguments, without running the command.
            seen.setdefault(name, group.commands[name].make_context(name, arguments).params)
    assert seen.keys() == {"assets", "prepare", "configure", "train", "report", "quantize"}
    assert (seen["assets"]["mirror"], seen["assets"]["task"]) == (mirror, chosen["task"])
    assert seen["assets"]["fetch"] and seen["train"]["resume"]
    assert seen["configure"]["values"] == ["a.b=1", "c.d=x"]
    assert seen["configure"]["log"] == Path(f"training/{corpus}/log.jsonl")


@pytest.mark.parametrize("task", LAYOUTS["gum"].tasks)
def test_each_task_of_a_free_corpus_has_a_config(monkeypatch, task):
    monkeypatch.chdir(CONFIGS.parent)
    config, _, message = project_config("gum", Path("corpus/gum"), task, "", Path("out.cfg"), {})
    assert config["nlp"]["pipeline"] == [task]
    assert f"configs/{task}/{'best' if task == 'spans' else 'psa'}.cfg" in message


def test_a_killed_workflow_continues(project, monkeypatch):
    (project / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(project)
    steps = commands(project, set=" ".join(SMALL))
    docs = [eg.reference for eg in make_examples(spacy.blank("en"))]
    (project / "corpus" / "sample").mkdir(parents=True)
    for part in ("train", "dev"):
        DocBin(docs=docs).to_disk(project / "corpus" / "sample" / f"{part}.spacy")
    with killed_at(monkeypatch, 2):
        run_steps(steps, "configure", "train")
    assert "Resuming after step 2" in run_steps(steps, "configure", "train")
    folder = project / "training" / "sample"
    rows = [srsly.json_loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 2, 4]
    assert spacy.load(folder / "model-best").pipe_names == ["ner"]
    assert "is finished" in run_steps(steps, "configure", "train")
    assert (folder / "log.jsonl").exists()


def test_own_files_become_a_model_by_the_steps_of_the_project(project, monkeypatch):
    (project / "my_files").mkdir()
    rows = "".join(f"Ada{i}\tB-PER\nleft\tO\n\n" for i in range(40))
    (project / "my_files" / "all.iob").write_text(rows)
    monkeypatch.chdir(project)
    names = ("assets", "convert", "configure", "train", "report")
    steps = commands(project, corpus="my_files", set=" ".join(SMALL))
    run_steps(steps, *names)
    outputs = [output for step in steps if step["name"] in names for output in step["outputs"]]
    assert [output for output in outputs if not (project / output).exists()] == []
    made = {path.name for path in (project / "corpus" / "my_files").iterdir()}
    assert made == {"train.spacy", "dev.spacy", "test.spacy", "check.json"}
    assert spacy.load(project / "training" / "my_files" / "model-best").pipe_names == ["ner"]
    recorded = srsly.read_json(project / "assets" / "my_files.json")
    assert recorded["my_files/all.iob"]["md5"] == md5(project / "my_files" / "all.iob")


def test_each_file_of_a_corpus_is_an_asset_of_the_project():
    listed = {asset["dest"]: asset for asset in srsly.read_yaml(PROJECT)["assets"]}
    for corpus, layout in LAYOUTS.items():
        sources = [part for parts in layout.more.values() for part in parts]
        for file in layout.files() + [file for part in sources for file in part.files()]:
            asset = listed[f"assets/{file}"]
            # The sample is in the repository, OntoNotes is licensed, and joined files have the
            # licensed words; all else has an address.
            joined = file.name in ("cleanconll.dev", "cleanconll.test")
            private = corpus == "sample" or file.name == "conll-2012-en.tar.xz" or joined
            assert bool(asset.keys() & {"url", "repository"}) != private
            assert re.fullmatch(r"[0-9a-f]{32}", asset.get("checksum", "0" * 32))
            assert private or asset["size"] > 0


def write_zip(path: Path, members: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with the files of CoNLL-2003, which a small project names as its assets."""
    folder = tmp_path / "mirror"
    write_zip(folder / "glove" / "glove.6B.zip", {"glove.6B.100d.txt": "the 0.5\n"})
    listed = [{"dest": "assets/glove/glove.6B.zip"}]
    for name in ("eng.train", "eng.testa", "eng.testb"):
        path = folder / "conll2003" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"content of {name}")
        url = f"https://example.org/{name}"
        listed.append({"dest": f"assets/conll2003/{name}", "url": url, "checksum": md5(path)})
    srsly.write_yaml(tmp_path / "project.yml", {"assets": listed})
    return folder


@pytest.fixture
def assets(tmp_path: Path) -> Callable[..., Result]:
    """Runs the command `assets` of the small project."""
    return partial(run, "assets", "conll2003", "--project", tmp_path / "project.yml")


@pytest.mark.usefixtures("mirror")
def test_missing_assets_are_named_in_one_line(assets):
    names = ("eng.train", "eng.testa", "eng.testb", "glove.6B.zip", "--download")
    assert_one_error(assets(), *names)


def test_assets_are_copied_from_a_mirror_and_then_no_longer_needed(tmp_path, mirror, assets):
    assert assets("--mirror", mirror).exit_code == 0
    copied = tmp_path / "assets" / "conll2003" / "eng.testa"
    assert copied.read_text() == "content of eng.testa"
    assert assets().exit_code == 0


def test_a_mirror_may_be_flat_and_lack_existing_files(tmp_path, mirror, assets):
    (tmp_path / "assets" / "glove").mkdir(parents=True)
    (mirror / "glove" / "glove.6B.zip").rename(tmp_path / "assets" / "glove" / "glove.6B.zip")
    assert assets("--mirror", mirror / "conll2003").exit_code == 0


def test_a_wrong_checksum_is_an_error_and_a_mirror_corrects_it(tmp_path, mirror, assets):
    assets("--mirror", mirror)
    damaged = tmp_path / "assets" / "conll2003" / "eng.train"
    damaged.write_text("half")
    assert_one_error(assets(), "eng.train: is damaged")
    assert assets("--mirror", mirror).exit_code == 0
    assert damaged.read_text() == "content of eng.train"


def test_an_incomplete_archive_is_an_error(tmp_path, mirror, assets):
    assets("--mirror", mirror)
    archive = tmp_path / "assets" / "glove" / "glove.6B.zip"
    archive.write_bytes(archive.read_bytes()[:-10])
    result = assets()
    assert result.exit_code == 2 and "glove.6B.zip: is damaged" in result.stderr


def test_a_file_of_a_mirror_with_a_wrong_checksum_is_not_used(mirror, assets):
    (mirror / "conll2003" / "eng.train").write_text("another version")
    result = assets("--mirror", mirror)
    assert result.exit_code == 2
    assert "missing" in result.stderr and "eng.train;" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["assets", "conll2004"], "unknown corpus 'conll2004'"),
        (["assets", "sample", "--mirror", "/no/such/folder"], "no such folder"),
        (["assets", "sample", "--project", "/no/such/project.yml"], "is not a project file"),
        (["assets", "conll2000", "--task", "ner"], "--vars.task chunker or tagger"),
        (["assets", "resume", "--task", "naming"], "the task 'naming'; choose --vars.task ner"),
        (["assets", "wsj", "--task", "tagger"], "conll-2012-en.tar.xz (not for download)"),
        (["prepare", "conll2004", "assets", "corpus"], "unknown corpus 'conll2004'"),
    ],
)
@pytest.mark.usefixtures("mirror")
def test_bad_arguments_cause_one_line_and_code_2(tmp_path, monkeypatch, arguments, reason):
    monkeypatch.chdir(tmp_path)
    assert_one_error(run(*arguments), reason)


class Files(SimpleHTTPRequestHandler):
    """Serves files, without a log."""

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server(tmp_path, mirror):
    """A server of the files in the mirror, whose addresses are in the project."""
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


@pytest.mark.usefixtures("server")
def test_missing_and_damaged_assets_are_downloaded(tmp_path, assets):
    (tmp_path / "assets" / "conll2003").mkdir(parents=True)
    damaged = tmp_path / "assets" / "conll2003" / "eng.train"
    damaged.write_text("half")
    assert_one_error(assets(), "eng.train: is damaged", "--download")
    succeed(assets("--download"))
    assert damaged.read_text() == "content of eng.train"
    assert "downloading" not in assets("--download").output


def test_a_mirror_comes_before_a_download(server, assets):
    result = succeed(assets("--mirror", server / "conll2003", "--download"))
    assert result.stdout.count("downloading") == 1  # glove, which that folder lacks


def test_a_download_of_wrong_bytes_replaces_nothing(tmp_path, server, assets):
    assert assets("--download").exit_code == 0
    there = tmp_path / "assets" / "conll2003" / "eng.train"
    there.write_text("mine")
    (server / "conll2003" / "eng.train").write_text("wrong")
    assert_one_error(assets("--download"), "eng.train: the server has another file")
    assert there.read_text() == "mine"


@pytest.mark.usefixtures("server")
def test_further_test_sets_are_optional(tmp_path, mirror, assets):
    result = assets("--download")
    assert result.exit_code == 0 and "4 files" in result.output, result.output
    for name in ("dev_clean", "test_clean", "test_pp", "test_2020"):
        assert f"{name}: left out" in result.output
    listed = srsly.read_yaml(tmp_path / "project.yml")
    url = f"{listed['assets'][0]['url']}/none"
    for name in ("conllpp_test.txt", "conll2020.txt"):
        listed["assets"].append(
            {"dest": f"assets/conllpp/{name}", "url": url, "checksum": "0" * 32}
        )
    srsly.write_yaml(tmp_path / "project.yml", listed)
    (tmp_path / "assets" / "conllpp").mkdir()
    result = assets("--download")
    assert result.exit_code == 0 and "404" in result.output
    (tmp_path / "assets" / "conllpp" / "conll2020.txt").write_text("half")
    assert_one_error(assets(), "conll2020.txt: is damaged")


def write_files(assets: Path, texts: dict[Path, str]) -> None:
    """Write files of corpora, and vectors of the words "rome" and "fell"."""
    for file, text in texts.items():
        (assets / file).parent.mkdir(parents=True, exist_ok=True)
        (assets / file).write_text(text)
    numbers = " ".join(["0.5"] * 100)
    vectors = f"rome {numbers}\nfell {numbers}\n"
    write_zip(assets / "glove" / "glove.6B.zip", {"glove.6B.100d.txt": vectors})


def prepare(corpus: str, assets: Path, out: Path) -> dict[str, list[Doc]]:
    """The documents of each part of a prepared corpus."""
    succeed(run("prepare", corpus, assets, out))
    assert spacy.load(out / "vectors").vocab["rome"].vector.tolist() == [0.5] * 100
    return {
        part: list(DocBin().from_disk(out / f"{part}.spacy").get_docs(Vocab())) for part in PARTS
    }


def test_conll2003_is_prepared_with_its_vectors(tmp_path):
    lines = "-DOCSTART- -X- O O\n\nRome NNP I-NP I-LOC\nfell VBD I-VP O\n"
    write_files(tmp_path, dict.fromkeys(LAYOUTS["conll2003"].files()[:3], lines))
    for docs in prepare("conll2003", tmp_path, tmp_path / "corpus").values():
        assert [[(e.text, e.label_) for e in doc.ents] for doc in docs] == [[("Rome", "LOC")]]


def test_further_test_sets_are_prepared_from_the_files_that_are_there(tmp_path):
    lines = "-DOCSTART- -X- O O\n\nRome NNP I-NP I-LOC\nfell VBD I-VP O\n"
    write_files(tmp_path, dict.fromkeys(LAYOUTS["conll2003"].files()[:3], lines))
    masked = "[TOKEN]\t-X-\tO\tO\tO\n\n[TOKEN]\tNNP\tB-Rome\tB-LOC\tB-ORG\n[TOKEN]\tVBD\tO\tO\tO"
    more = {
        "cleanconll/cleanconll_annotations.test": masked,
        "cleanconll/test_tokens.patch": "4c4\n< fell\n---\n> won\n",
        "conllpp/conll2020.txt": "-DOCSTART- - - O\n\nRome 0 4 I-LOC\nfell 5 9 O\n",
    }
    write_files(tmp_path, {Path(name): text for name, text in more.items()})
    prepare("conll2003", tmp_path, tmp_path / "corpus")
    made = {path.stem for path in (tmp_path / "corpus").glob("*.spacy")}
    assert made == {*PARTS, "test_clean", "test_2020"}
    for part, text in (("test_clean", "Rome won "), ("test_2020", "Rome fell ")):
        (doc,) = DocBin().from_disk(tmp_path / "corpus" / f"{part}.spacy").get_docs(Vocab())
        assert (doc.text, len(doc.ents)) == (text, 1)


def test_conll2000_is_prepared_without_its_drawn_sentences(tmp_path):
    write_files(tmp_path, {})
    train = "".join(f"w{i} NN B-NP\n\n" for i in range(1003))
    members = {"train.txt": train, "test.txt": "a DT O\n"}
    write_zip(tmp_path / "conll2000" / "conll2000.zip", members)
    docs = prepare("conll2000", tmp_path, tmp_path / "corpus")
    assert [len(docs[part]) for part in PARTS] == [3, 1000, 1]
    assert {doc[0].text for doc in docs["train"] + docs["dev"]} == {f"w{i}" for i in range(1003)}


def test_wnut17_and_wikigold_are_prepared_with_their_vectors(tmp_path):
    rows = "".join(f"-DOCSTART- O\n\nRome{i}\tI-LOC\nfell\tO\n\t\n" for i in range(40))
    for corpus, counts in (("wnut17", [40, 40, 40]), ("wikigold", [32, 4, 4])):
        files = [file for file in LAYOUTS[corpus].files() if "glove" not in str(file)]
        write_files(tmp_path, dict.fromkeys(files, rows))
        docs = prepare(corpus, tmp_path, tmp_path / "corpus" / corpus)
        assert [len(docs[part]) for part in PARTS] == counts
        everything = [doc for part in PARTS for doc in docs[part]]
        assert all([ent.label_ for ent in doc.ents] == ["LOC"] for doc in everything)


def test_gum_is_prepared_with_its_second_test_set(tmp_path):
    write_files(tmp_path, {})
    with tarfile.open(tmp_path / "gum.tar.xz", "w:xz") as archive:
        archive.add(write_gum(tmp_path / "files"), "")
    (tmp_path / "gum").mkdir()
    (tmp_path / "gum.tar.xz").rename(tmp_path / "gum" / "gum.tar.xz")
    docs = prepare("gum", tmp_path, tmp_path / "corpus")
    assert [len(docs[part]) for part in PARTS] == [2, 1, 1]
    assert (tmp_path / "corpus" / "test2.spacy").exists()


def test_an_error_while_preparing_is_one_line(tmp_path):
    write_files(tmp_path, {Path("resume/train.char.bmes"): "EU NNP I-NP I-ORG\n"})
    result = run("prepare", "resume", tmp_path, tmp_path / "corpus")
    assert_one_error(result, "train.char.bmes:1: 4 column(s)")
    assert not list(tmp_path.glob("corpus/*.spacy"))
