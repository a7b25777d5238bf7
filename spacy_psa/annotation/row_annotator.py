"""The annotator that data engines send to their workers: rows in, annotated rows out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from spacy_psa.annotation.annotator import Annotated, Annotator, Outcome
from spacy_psa.annotation.input import MalformedLine
from spacy_psa.annotation.rows import ANNOTATION, annotation, docbin_bytes
from spacy_psa.errors import InputError, check_sizes
from spacy_psa.loading import load_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

ADDED = (*ANNOTATION, "docbin", "error")
"""The columns that can be added."""

open_once = cache(load_pipeline)
"""Opens a pipeline, once in this process."""

_one_at_a_time = Lock()  # A pipeline, and its memory zone, is for one thread.


class RowAnnotator:
    """Annotates batches of rows, for engines that send a Python object to their workers.

    It holds the path of the pipeline, not the pipeline, and can be pickled at any time. Each
    process opens the pipeline once, with the first batch. A batch comes back in its own form, with
    the annotation added, and without any spaCy object:

    - rows, as a list or another iterable of dicts (Dask bags), become a list of dicts;
    - a `pandas.DataFrame` (Spark, Dask) and a `pyarrow.Table` (Ray) get the columns `ents`, `spans`
      and `tokens`, as `spacy-psa annotate` writes them to JSON lines, and `error`, the reason why
      a row could not be annotated, else null. `ARROW_SCHEMA` and `SPARK_SCHEMA` in
      `spacy_psa.annotation.tables` have their types.

    Columns of these names are replaced, other columns stay. No row is left out. Plain rows lack the
    keys of annotation that the document does not have.

    Args:
        model: folder or installed package of a pipeline, as each worker finds it.
        text_key: the column of the text.
        tokens: whether to add the tokens, also without tags.
        docbin: whether to add one column `docbin`, a `.spacy` file of the document, in place of
            `ents`, `spans` and `tokens`.
        batch_size: the number of documents that are annotated at a time.

    Raises:
        InputError: from a batch, if the pipeline cannot be opened or there is no such column.

    Examples:
        >>> import pickle, tempfile, spacy
        >>> folder = tempfile.mkdtemp()
        >>> nlp = spacy.blank("en")
        >>> nlp.add_pipe("entity_ruler").add_patterns([{"label": "PER", "pattern": "Ada"}])
        >>> nlp.to_disk(folder)
        >>> annotator = pickle.loads(pickle.dumps(RowAnnotator(folder)))
        >>> annotator([{"id": 7, "text": "Ada left"}])
        [{'id': 7, 'text': 'Ada left',
          'ents': [{'start': 0, 'end': 3, 'label': 'PER', 'text': 'Ada'}], 'error': None}]
    """

    def __init__(
        self,
        model: str,
        text_key: str = "text",
        tokens: bool = False,
        docbin: bool = False,
        batch_size: int = 256,
    ) -> None:
        check_sizes(batch_size=batch_size)
        if text_key in ADDED:
            raise InputError(f"text_key {text_key}: the annotation has this key; rename the column")
        # Workers may run in another folder.
        self.model = str(Path(model).resolve()) if Path(model).is_dir() else model
        self.text_key = text_key
        self.tokens = tokens
        self.docbin = docbin
        self.batch_size = batch_size

    def __call__(self, batch: Any) -> Any:
        """Annotate a batch: rows, a `pandas.DataFrame`, or a `pyarrow.Table` or `RecordBatch`."""
        library = type(batch).__module__.partition(".")[0]
        if isinstance(batch, Mapping):
            raise InputError(
                'a batch is a dict of columns; call map_batches with batch_format="pyarrow"'
            )
        if library not in ("pandas", "pyarrow"):
            return self._rows(list(batch))
        from spacy_psa.annotation.tables import ARROW_SCHEMA, DOCBIN_SCHEMA, with_columns

        names = batch.columns if library == "pandas" else batch.schema.names
        if self.text_key not in names:
            raise InputError(
                f"there is no column {self.text_key} among {', '.join(map(str, names))}; "
                "set text_key"
            )
        column = batch[self.text_key]
        texts = column.tolist() if library == "pandas" else column.to_pylist()
        added = [self._added(outcome) for outcome in self.outcomes(texts)]
        return with_columns(batch, added, DOCBIN_SCHEMA if self.docbin else ARROW_SCHEMA)

    def _rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        outcomes = self.outcomes([row.get(self.text_key) for row in rows])
        return [
            {
                **{key: value for key, value in row.items() if key not in ADDED},
                **self._added(outcome),
            }
            for row, outcome in zip(rows, outcomes, strict=True)
        ]

    def stream(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Annotate a stream of batches, as Spark's `mapInPandas` and `mapInArrow` call it."""
        return map(self, batches)

    def outcomes(self, texts: Sequence[Any]) -> list[Outcome]:
        """Annotate texts; the row of one that is annotated is only the annotation."""
        outcomes: list[Outcome] = []
        with _one_at_a_time:
            annotator = Annotator(partial(open_once, self.model), _doc_of, self._encode)
            for start in range(0, len(texts), self.batch_size):
                outcomes += annotator(texts[start : start + self.batch_size])
        return outcomes

    def _encode(self, doc: "Doc") -> dict[str, Any]:
        return {"docbin": docbin_bytes(doc)} if self.docbin else annotation(doc, self.tokens)

    def _added(self, outcome: Outcome) -> Mapping[str, Any]:
        if isinstance(outcome, Annotated):
            return {**outcome.row, "error": None}
        nothing = ("docbin",) if self.docbin else ("ents",)
        return {**dict.fromkeys(nothing), "error": outcome.reason}


def _doc_of(nlp: "Language", text: Any) -> "Doc":
    if not isinstance(text, str):
        raise MalformedLine(f"the text is a {type(text).__name__}, not a string")
    return nlp.make_doc(text)
