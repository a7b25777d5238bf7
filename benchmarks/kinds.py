"""What the `results` of a record hold, by kind; `record` has the envelope around them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """An object without unknown keys, whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Evaluation(Strict):
    """Scores on development data during training, fractions of 1.

    `losses` are the sums since the evaluation before, by component.
    """

    epoch: int
    step: int
    score: Share
    scores: dict[str, Any]
    losses: dict[str, float]


class Pipeline(Strict):
    """The pipeline that was scored."""

    path: str
    lang: str
    name: str
    version: str
    pipeline: list[str]


class Test(Strict):
    """The data that it was scored on."""

    path: str
    documents: int
    words: int


class Pass(Strict):
    """One timed pass over the data that was scored."""

    words_per_second: float
    words: int
    seconds: float
    batch_size: int
    threads: int
    device: Literal["cpu", "gpu"]


class TrainingResults(Strict):
    """A pipeline, its training and its scores; the keys are described in
    `spacy_psa.scoring.result`.

    A training that was not scored on test data has null for `model`, `test`, `scores`,
    `support` and `speed`. Scores of a pipeline without the log of its training have an empty
    `dev` and null for `best`. `setup` is what the experiment says of its data, or null.
    """

    model: Pipeline | None
    test: Test | None
    scores: dict[str, Any] | None
    support: dict[str, dict[str, int]] | None
    speed: Pass | None
    dev: list[Evaluation]
    best: Evaluation | None
    setup: dict[str, Any] | None

    @model_validator(mode="after")
    def check(self) -> "TrainingResults":
        tested = [self.model, self.test, self.scores, self.support, self.speed]
        if any(each is None for each in tested) != all(each is None for each in tested):
            raise ValueError("model, test, scores, support and speed must all be there, or none")
        if self.best is None and (self.dev or self.scores is None):
            raise ValueError("there is no best evaluation, and no scores alone either")
        if self.best is not None and self.best not in self.dev:
            raise ValueError("the best evaluation is not one of the evaluations in dev")
        return self


class Spread(Strict):
    """The median, the quartiles and the ends of a rate."""

    median: float
    lower: float
    upper: float
    least: float
    most: float


class Run(Strict):
    """One run of a row: what was done, and how long it took."""

    amount: float
    seconds: float
    cpu_seconds: float


class Summary(Strict):
    """The rates of a row, by the clock and of processor time, and its runs."""

    per_second: Spread
    per_cpu_second: Spread
    runs: list[Run]


class AnnotationSection(Strict):
    """Words a second of each row."""

    words: int
    rows: dict[str, Summary]


class TrainingSection(Strict):
    """Training steps a second of each row."""

    batch: int
    steps: int
    rows: dict[str, Summary]


class LoadingSection(Strict):
    """Loads a second of each row, each in a process of its own."""

    rows: dict[str, Summary]


class Peak(Strict):
    """The memory of a process that annotates so many words."""

    words: int
    seconds: float
    loaded_bytes: int
    peak_bytes: int


class Streams(Strict):
    """Memory for streams of docs, and for single long docs."""

    stream: list[Peak]
    long: list[Peak]


class MemorySection(Strict):
    """Memory of each row."""

    rows: dict[str, Streams]


class GrowthSection(Strict):
    """Words a second of each row, by length of the sentences or number of tags."""

    words: int
    rows: dict[str, dict[str, Summary]]


class SpeedResults(Strict):
    """Sections of `spacy_psa.laboratory.performance.sections`, those that were asked for.

    `rows` has the path of each pipeline, `settings` how it was timed.
    """

    settings: dict[str, Any]
    rows: dict[str, str]
    annotation: AnnotationSection | None = None
    training: TrainingSection | None = None
    loading: LoadingSection | None = None
    memory: MemorySection | None = None
    lengths: GrowthSection | None = None
    labels: GrowthSection | None = None


class Bin(Strict):
    """A bin of the reliability diagram."""

    lower: float
    upper: float
    size: int
    confidence: float | None
    accuracy: float | None


class Fit(Strict):
    """How well confidences fit the truth, at one temperature; `f1` came later than the rest."""

    f1: float | None = None
    ece: float | None
    ece_adaptive: float | None
    brier: float | None
    aupr: float | None
    nll: float
    bins: list[Bin]


class Calibrated(Strict):
    """A file, before and after."""

    path: str
    documents: int
    gold_spans: int
    before: Fit
    after: Fit


class Temperatures(Strict):
    """The temperature before and after."""

    before: float
    after: float


class Decoders(Strict):
    """The decoder before and after."""

    before: str
    after: str


class CalibrationModel(Strict):
    """The pipeline and its component."""

    path: str
    pipe: str


class CalibrationResults(Strict):
    """What `spacy-psa calibrate --json` measures; `data` has "dev" and, if given, "test"."""

    model: CalibrationModel
    criterion: str
    temperature: Temperatures
    decode: Decoders | None = None
    """None in records before there was `--decode`."""
    data: dict[Literal["dev", "test"], Calibrated]


Kind = Literal["training", "speed", "calibration", "figures"]
KINDS: dict[Kind, type[Strict] | None] = {
    "training": TrainingResults,
    "speed": SpeedResults,
    "calibration": CalibrationResults,
    "figures": None,
}
