"""Everything that the endpoints of one server share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request

from transduce.errors import ConfigError
from transduce.serving.access import Access, Client
from transduce.serving.detection import LanguageDetector
from transduce.serving.document_store import DocumentStore
from transduce.serving.glossaries import GlossaryStore
from transduce.serving.http import ApiError, Bodies
from transduce.serving.metrics import Metrics
from transduce.serving.models import Served, ServedLanguageModel, ServedParser, ServedTranslator

__all__ = ["ServerState"]


@dataclass(slots=True, eq=False)
class ServerState:
    """The models of a server, its clients and measurements."""

    models: Sequence[Served[Any, Any]]
    access: Access = field(default_factory=Access)
    metrics: Metrics = field(default_factory=Metrics)
    request_timeout_s: float = 60.0  # a request that has waited longer is refused
    document_timeout_s: float = 900.0  # a document that takes longer is not translated
    is_stopping: bool = False
    documents: DocumentStore = field(default_factory=DocumentStore)
    glossaries: GlossaryStore = field(default_factory=GlossaryStore)
    bodies: Bodies = field(default_factory=Bodies)
    translators: dict[tuple[str, str], ServedTranslator] = field(init=False)
    parsers: list[ServedParser] = field(init=False)
    language_models: dict[str, ServedLanguageModel] = field(init=False)
    detector: LanguageDetector = field(init=False)

    def __post_init__(self) -> None:
        """Raise ConfigError if two models do the same."""
        self.translators, self.parsers, self.language_models = {}, [], {}
        for served in self.models:
            match served:
                case ServedTranslator(direction=direction):
                    if direction in self.translators:
                        raise ConfigError(
                            f"{served.folder} and {self.translators[direction].folder} both translate "
                            f"{'-'.join(direction)}; serve one of them"
                        )
                    self.translators[direction] = served
                case ServedParser():
                    self.parsers.append(served)
                case ServedLanguageModel(name=name):
                    if name in self.language_models:
                        raise ConfigError(f"two language models are called {name}; rename the folder of one")
                    self.language_models[name] = served
        self.detector = LanguageDetector(self.languages)
        self.metrics.ready(lambda: self.is_ready)

    @property
    def is_ready(self) -> bool:
        """Whether the server takes requests."""
        return not self.is_stopping

    @property
    def sources(self) -> list[str]:
        """The source languages."""
        return sorted({source for source, _ in self.translators})

    @property
    def targets(self) -> list[str]:
        """The target languages."""
        return sorted({target for _, target in self.translators})

    @property
    def languages(self) -> list[str]:
        """The languages of either side."""
        return sorted({*self.sources, *self.targets})

    def targets_of(self, source: str) -> list[str]:
        """The languages into which a language is translated."""
        return sorted(target for each, target in self.translators if each == source)

    def client_before_body(self, request: Request) -> Client | None:
        """Return who sent a request, as ``client``; None if a key may be in its body or query."""
        return self.client(request) if _key_in_headers(request) or not self.access.has_keys else None

    def client(self, request: Request, key: str | None = None) -> Client:
        """Return who sent a request, and count it. Raises ApiError or TooManyRequests."""
        key, address = _key_in_headers(request) or key, request.client.host if request.client else ""
        client = self.access.client(key)
        if client is None:
            if key:
                self.access.count_wrong_key(address)
            raise ApiError(403, "Invalid API key" if key else "An API key is needed")
        self.access.count_request(client, address)
        return client

    def reload_changed(self, *, all_models: bool = False) -> list[tuple[Served[Any, Any], Exception | None]]:
        """Read the folders that have changed anew, or all; return which were read, with the error of a failed one."""
        outcomes: list[tuple[Served[Any, Any], Exception | None]] = []
        for served in self.models:
            if all_models or served.has_changed():
                try:
                    served.reload()
                except Exception as error:
                    outcomes.append((served, error))
                else:
                    outcomes.append((served, None))
        return outcomes

    def close(self) -> None:
        """Finish all waiting work and write what is to be kept."""
        self.is_stopping = True
        for served in self.models:
            served.close()
        self.documents.close()
        self.access.save()


def _key_in_headers(request: Request) -> str | None:
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    return value.strip() or None if kind.lower() in ("deepl-auth-key", "bearer") else None
