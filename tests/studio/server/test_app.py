"""The HTTP interface: answers, limits, strangers, counters, memory."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import spacy
from fastapi import APIRouter
from starlette.testclient import TestClient

from spacy_psa.studio.server.app import View, create_app
from spacy_psa.studio.server.guard import COOKIE, Settings
from spacy_psa.studio.server.models import KEPT, ServedModel
from tests.helpers.patience import PATIENCE
from tests.helpers.served import TEXT

LINES = {"Content-Type": "application/x-ndjson"}


def blank_client(settings=None, model=None, **kwargs):
    model = model or ServedModel("blank", spacy.blank("en"))
    return TestClient(create_app([model], settings), "http://localhost", **kwargs)


def test_texts_get_annotation_with_probabilities_as_the_pipeline_gives_it(client, served):
    answer = client.post("/api/annotate", json={"texts": [TEXT, ""]})
    assert answer.status_code == 200
    first, second = answer.json()["docs"]
    doc = served.nlp(TEXT)
    assert [(e["start"], e["end"], e["label"]) for e in first["ents"]] == [
        (ent.start_char, ent.end_char, ent.label_) for ent in doc.ents
    ]
    scores = [span["score"] for span in first["spans"]["ner"]]
    assert scores == pytest.approx([ent._.confidence for ent in doc.ents], abs=1e-6)
    assert all("score" in span for span in first["spans"]["constituents"])
    assert {token["tag"] for token in first["tokens"]} <= {"NAME", "WORD", "MARK"}
    assert second["ents"] == []


def test_lines_get_lines_in_the_same_order(client):
    texts = [f"Ada met Evans {i} times ." for i in range(150)]
    body = "\n".join(json.dumps({"text": text, "id": 1}) for text in texts) + "\n\n"
    answer = client.post("/api/annotate", content=body, headers=LINES)
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line)["text"] for line in answer.text.splitlines()] == texts


def test_concurrent_requests_share_batches():
    """The first text holds the model until all the others wait."""
    sizes, waiting = [], threading.Event()
    model = ServedModel("blank", spacy.blank("en"))
    annotate = model.annotate

    def slow(texts):
        sizes.append(len(texts))
        assert waiting.wait(PATIENCE)
        return annotate(texts)

    model.annotate = slow
    with blank_client(model=model) as client, ThreadPoolExecutor(8) as pool:
        asked = []
        for i in range(8):
            asked.append(pool.submit(client.post, "/api/annotate", json={"texts": [f"text {i}"]}))
            while not sizes:  # the first text is with the model
                time.sleep(0.01)
        while "spacy_psa_waiting_texts 7.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        waiting.set()
        answers = [future.result().json()["docs"][0]["text"] for future in asked]
    assert answers == [f"text {i}" for i in range(8)]
    assert sizes == [1, 7]


def test_a_text_that_fails_does_not_spoil_the_others():
    model = ServedModel("blank", spacy.blank("en"))
    annotate = model.annotate

    def fail(texts):
        if "bad" in texts:
            raise RuntimeError("no")
        return annotate(texts)

    model.annotate = fail
    with blank_client(model=model, raise_server_exceptions=False) as client:
        with ThreadPoolExecutor(2) as pool:
            bad = pool.submit(client.post, "/api/annotate", json={"texts": ["bad"]})
            good = pool.submit(client.post, "/api/annotate", json={"texts": ["good"]})
        assert (bad.result().status_code, good.result().status_code) == (500, 200)


SMALL = Settings(max_bytes=300, max_texts=3, max_chars=20)


@pytest.mark.parametrize(
    ("body", "kind", "status", "why"),
    [
        ("{", "application/json", 400, "The body is not JSON"),
        ("[" * 250, "application/json", 400, "is not JSON"),
        ('["a"]', "application/json", 422, "must be an object"),
        ('{"texts": "a"}', "application/json", 422, "must be an object"),
        ('{"texts": [1]}', "application/json", 422, "must be an object"),
        ('{"text": "a"}\n{"txt": "b"}', "application/x-ndjson", 422, "Line 2 must be an object"),
        ('{"text": "a"}\nb', "application/x-ndjson", 400, "Line 2 is not JSON"),
        ("a", "text/plain", 415, "text/plain"),
        ("a", "", 415, "missing"),
        ('{"texts": ["a", "a", "a", "a"]}', "application/json", 413, "4 texts, more than 3"),
        (
            '{"texts": ["a", "' + "b" * 21 + '"]}',
            "application/json",
            413,
            "Text 1 has more than 20",
        ),
        (" " * 301, "application/json", 413, "more than 300 bytes"),
        ('{"texts": ["a\\ud800"]}', "application/json", 422, "half of a surrogate pair"),
        ('{"text": "\\udfff"}', "application/x-ndjson", 422, "half of a surrogate pair"),
    ],
)
def test_a_bad_request_is_one_clear_sentence(body, kind, status, why):
    with blank_client(SMALL) as client:
        answer = client.post("/api/annotate", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert why in answer.json()["detail"]


def test_a_body_without_a_length_is_cut_off_at_the_limit():
    def endless():
        for _ in range(1000):
            yield b" " * 100

    with blank_client(SMALL) as client:
        answer = client.post("/api/annotate", content=endless(), headers=LINES)
    assert (answer.status_code, "300 bytes" in answer.json()["detail"]) == (413, True)


def test_an_answer_that_takes_too_long_and_a_full_queue_are_4xx():
    held = threading.Event()
    model = ServedModel("blank", spacy.blank("en"))
    model.annotate = lambda texts: held.wait(PATIENCE) and []
    with blank_client(Settings(max_seconds=0.05, waiting=2), model) as client:
        answer = client.post("/api/annotate", json={"texts": ["a"]})
        assert (answer.status_code, answer.json()["detail"][:9]) == (408, "This took")
        full = client.post("/api/annotate", json={"texts": ["a", "b", "c"]})
        assert (full.status_code, full.headers["retry-after"]) == (429, "5")
        held.set()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Origin": "http://["}, 403),
    ],
)
def test_requests_of_other_sites_are_refused(headers, status):
    with blank_client() as client:
        assert client.get("/api/models", headers=headers).status_code == status
        answer = client.post("/api/annotate", json={"texts": ["a"]}, headers=headers)
        assert answer.status_code == status


def test_every_answer_has_a_strict_policy():
    with blank_client() as client:
        for path in ("/", "/docs", "/static/app.js", "/api/models", "/nowhere", "/openapi.json"):
            policy = client.get(path).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


def test_a_token_is_needed_and_moves_to_a_cookie():
    settings = Settings(token="secret", hosts=None)
    with blank_client(settings, follow_redirects=False) as client:
        assert client.get("/health").status_code == 200
        for path in ("/", "/api/models", "/metrics", "/static/app.js", "/?token=wrong"):
            assert client.get(path).status_code == 401
        bearer = {"Authorization": "Bearer secret"}
        assert client.get("/api/models", headers=bearer).status_code == 200
        moved = client.get("/?token=secret")
        assert (moved.status_code, moved.headers["location"]) == (303, "./")
        assert "HttpOnly" in moved.headers["set-cookie"]
        assert "SameSite=strict" in moved.headers["set-cookie"]
        assert client.get("/api/models").status_code == 200  # by the cookie


@pytest.mark.parametrize("other", ["user[name]=bob", 'a={"x":1}'])
def test_cookies_of_other_programs_do_not_matter(other):
    with blank_client(Settings(token="secret", hosts=None)) as client:
        cookie = {"Cookie": f"{other}; {COOKIE}=secret"}
        assert client.get("/api/models", headers=cookie).status_code == 200


def test_health_metrics_and_the_description_of_the_interface(client):
    client.post("/api/annotate", json={"texts": ["Ada", "left"]})
    assert client.get("/health").json()["status"] == "ok"
    metrics = client.get("/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "spacy_psa_texts_total 2.0" in metrics.text
    assert 'spacy_psa_requests_total{path="/api/annotate",status="200"} 1.0' in metrics.text
    client.get("/some/path")
    assert "/some/path" not in client.get("/metrics").text
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/api/annotate", "/api/analyse", "/api/attention", "/health"} <= set(paths)


def test_analyses_under_evidence_are_those_of_the_component(client, served):
    evidence = [{"component": "ner", "start": 0, "end": 2, "label": "PER", "required": False}]
    asked = {"text": TEXT, "evidence": evidence, "sentences": [0], "k": 3}
    answer = client.post("/api/analyse", json=asked).json()
    (sentence,) = answer["sentences"]
    assert (answer["count"], sentence["number"], sentence["tokens"][0]) == (2, 0, ["Ada", " "])
    doc = served.nlp.get_pipe("sentencizer")(served.nlp.make_doc(TEXT))
    ner = served.nlp.get_pipe("ner")
    analyses = ner.analyses([doc])[0].given(forbid=[(0, 2, "PER")])
    answered = sentence["components"]["ner"]
    best = [tuple(item[:3]) for item in answered["analyses"][0]["items"]]
    end = next(iter(doc.sents)).end
    assert best == [(e.start, e.end, e.label_) for e in analyses.best if e.start < end]
    assert len(answered["analyses"]) == 3
    assert len(answered["entropies"]) == len(sentence["tokens"])
    assert 0 < answered["evidence"] < 1


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        ({"evidence": [{"component": "ner", "start": 0, "end": 1, "label": "ART"}]}, 422, "ART"),
        ({"evidence": [{"component": "x", "start": 0, "end": 1}]}, 422, "no component 'x'"),
        ({"evidence": [{"component": "ner", "start": 0, "end": 99}]}, 422, "is not a span"),
        ({"evidence": [{"component": "tagger", "start": 0, "end": 99}]}, 422, "is not a span"),
        ({"evidence": [{"component": "tagger", "start": 2, "end": 1}]}, 422, "is not a span"),
        ({"evidence": [{"component": "parser", "start": 2, "end": 99}]}, 422, "is not a span"),
        ({"evidence": [{"component": "parser", "start": 3, "end": 3}]}, 422, "is not a span"),
        (
            {"evidence": [{"component": "parser", "start": 0, "end": 12}]},
            422,
            "a sentence ends inside of it",
        ),
        (
            {
                "evidence": [
                    {"component": "tagger", "start": 0, "end": 2, "label": "NAME"},
                    {"component": "tagger", "start": 1, "end": 3, "label": "WORD"},
                ]
            },
            422,
            "'Ada Lovelace' (NAME) and 'Lovelace met' (WORD) overlap and are both required",
        ),
        ({"sentences": [7]}, 422, "has 2 sentences"),
        ({"k": 0}, 422, "k: Input should be"),
        ({"model": "other"}, 404, "no model 'other': use one of small"),
        ({"text": "a" * 100_001}, 413, "more than 100,000 characters"),
    ],
)
def test_what_cannot_be_analysed_is_named(client, change, status, why):
    answer = client.post("/api/analyse", json={"text": TEXT, **change})
    assert answer.status_code == status
    assert why in answer.json()["detail"]


def test_attention_is_that_of_the_encoder_and_is_named_where_there_is_none(client):
    answer = client.post("/api/attention", json={"text": "Ada met Evans", "sentence": 0}).json()
    (first, _) = answer["components"]["ner"]
    assert [len(row) for row in first["attention"]] == [3, 3, 3]
    assert sum(first["attention"][0]) == pytest.approx(1.0, abs=1e-3)
    with blank_client() as other:
        answer = other.post("/api/attention", json={"text": "Ada", "sentence": 0})
    assert (answer.status_code, "has a layer with attention" in answer.text) == (422, True)


def test_half_of_a_character_is_refused(client):
    body = b'{"text": "a \\ud800 b"}'
    answer = client.post("/api/analyse", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "half of a surrogate pair" in answer.json()["detail"]


def test_words_of_requests_do_not_stay_in_memory(client, served):
    strings = len(served.nlp.vocab.strings)
    words = len(served.nlp.vocab)
    for i in range(40):
        text = f"Ada met Xy{i}q{i}lbrq ."
        assert client.post("/api/annotate", json={"texts": [text] * 3}).status_code == 200
        assert client.post("/api/analyse", json={"text": text}).status_code == 200
        assert client.post("/api/attention", json={"text": text, "sentence": 0}).status_code == 200
    assert len(served.nlp.vocab.strings) == strings
    assert len(served.nlp.vocab) <= words + 3 * 40 * 5
    assert len(served._scored) == KEPT


@pytest.mark.parametrize("text", ["", " ", "\n\n", "🙂", "a\u0000b", "שלום"])
def test_odd_texts_are_analysed(client, text):
    assert client.post("/api/analyse", json={"text": text}).status_code == 200


def test_a_view_adds_a_page_with_requests_to_the_model():
    def routes(with_model):
        router = APIRouter()

        @router.get("/api/named")
        async def named():
            return await with_model(None, lambda model: model.name)

        return router

    app = create_app(
        [ServedModel("one", spacy.blank("en"))], views=[View("Named", "/named", routes)]
    )
    client = TestClient(app, "http://localhost")
    assert client.get("/api/named").json() == "one"
    assert client.get("/api/models").json()["views"] == [{"name": "Named", "path": "/named"}]
