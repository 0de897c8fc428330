"""Measurements of the server in the text format of Prometheus. Labels are routes, models and codes: never texts, keys
or addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

__all__ = ["CONTENT_TYPE", "Metrics", "ModelMetrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """All measurements of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self._requests = counter("transduce_requests", "Answered requests.", ["api", "route", "code"])
        self._seconds = histogram(
            "transduce_request_seconds", "Time from a request to its answer.", ["api", "route"], buckets=SECONDS
        )
        self._ready = gauge("transduce_ready", "1 if the server takes requests.")
        self._characters = counter("transduce_characters", "Characters of translated text.", ["model"])
        self._sentences = counter("transduce_sentences", "Sentences done.", ["model"])
        self._batch_sizes = histogram("transduce_batch_sentences", "Sentences of a batch.", ["model"], buckets=SIZES)
        self._batch_seconds = histogram("transduce_batch_seconds", "Time of a batch.", ["model"], buckets=SECONDS)
        self._dropped = counter("transduce_dropped_sentences", "Sentences left out.", ["model", "reason"])
        self._waiting = gauge("transduce_waiting_sentences", "Sentences in the queue.", ["model"])
        self._swaps = counter("transduce_model_swaps", "Models read anew.", ["model", "outcome"])

    def request(self, api: str, route: str, code: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(api, route, str(code)).inc()
        self._seconds.labels(api, route).observe(seconds)

    def ready(self, is_ready: Callable[[], bool]) -> None:
        """Say how to find out whether the server is ready."""
        self._ready.set_function(lambda: float(is_ready()))

    def of_model(self, name: str) -> ModelMetrics:
        """Return the measurements of one model."""
        return ModelMetrics(self, name)

    def text(self) -> bytes:
        """Return all measurements."""
        return generate_latest(self.registry)


class ModelMetrics:
    """The measurements of one model; a ``BatchObserver``."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._metrics, self._name = metrics, name

    def batch(self, n_jobs: int, seconds: float) -> None:
        """Count a batch."""
        self._metrics._sentences.labels(self._name).inc(n_jobs)
        self._metrics._batch_sizes.labels(self._name).observe(n_jobs)
        self._metrics._batch_seconds.labels(self._name).observe(seconds)

    def dropped(self, reason: str) -> None:
        """Count a job that was left out."""
        self._metrics._dropped.labels(self._name, reason).inc()

    def characters(self, n: int) -> None:
        """Count the characters of texts."""
        self._metrics._characters.labels(self._name).inc(n)

    def swap(self, outcome: str) -> None:
        """Count a model that was read anew: ``done`` or ``failed``."""
        self._metrics._swaps.labels(self._name, outcome).inc()

    def waiting(self, n_waiting: Callable[[], int]) -> None:
        """Say how to find the number of waiting jobs."""
        self._metrics._waiting.labels(self._name).set_function(lambda: float(n_waiting()))
