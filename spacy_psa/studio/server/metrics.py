"""What a server has done so far, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server.

    Examples:
        >>> metrics = Metrics()
        >>> metrics.requests.labels(path="/api/annotate", status="200").inc()
        >>> b'status="200"' in metrics.text()
        True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "spacy_psa_requests", "Requests.", ("path", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "spacy_psa_request_seconds", "Time to answer.", ("path",), registry=self.registry
        )
        self.texts = Counter("spacy_psa_texts", "Texts annotated.", registry=self.registry)
        self.characters = Counter(
            "spacy_psa_characters", "Characters annotated.", registry=self.registry
        )
        self.batches = Histogram(
            "spacy_psa_batch_texts", "Texts in a batch.", buckets=SIZES, registry=self.registry
        )
        self.waiting = Gauge(
            "spacy_psa_waiting_texts", "Texts that wait for the model.", registry=self.registry
        )

    def text(self) -> bytes:
        """Write all counters as text."""
        return generate_latest(self.registry)
