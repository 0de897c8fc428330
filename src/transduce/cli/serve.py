"""``transduce serve``."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from transduce.cli import options
from transduce.cli.decoding import SHARED_FIELDS, decoding_options
from transduce.cli.imports import command_imports
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.output import echo, print_line
from transduce.cli.signals import HANGUP, heeded_signals
from transduce.config.decoding import NO_CHANGES, DecodingOptions
from transduce.errors import ConfigError
from transduce.imports import library
from transduce.inference.devices import usable_precision

__all__ = ["serve"]

MAX_BATCH, MAX_QUEUE, MAX_WAIT_MS, MAX_SECONDS = 1024, 10**6, 10_000.0, 86_400.0


@decoding_options(*SHARED_FIELDS)
def serve(
    folders: Annotated[
        list[Path],
        Argument(
            metavar="MODEL",
            help="The model folders: translators of different directions, parsers, language models.",
            show_default=False,
        ),
    ],
    host: Annotated[str, Option(help="Listen on this address; 0.0.0.0 is every one of this machine.")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Listen on this port; 0 takes a free one.")] = 5000,
    keys: Annotated[
        Path | None, Option(help="Read API keys and limits from this TOML file.", show_default=False)
    ] = None,
    terms: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Prefer translations with these terms: SOURCE TAB TARGET in each line, or TBX, which "
            "several directions need.",
            show_default=False,
        ),
    ] = None,
    terms_hard: options.TermsHard = False,
    avoid: options.Avoid = None,
    memory: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE",
            help="Take the translations of lines and paragraphs that this memory has: of memory build, TMX, XLIFF, PO "
            "or TSV. May be repeated, once for each direction.",
            show_default=False,
        ),
    ] = None,
    glossaries: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Keep the glossaries of clients in this folder; without it until the server ends.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int,
        Option(
            min=1,
            max=MAX_BATCH,
            help="Translate at most this many sentences together.",
            rich_help_panel=options.REQUESTS,
        ),
    ] = 32,
    wait_ms: Annotated[
        float,
        Option(
            min=0.0,
            max=MAX_WAIT_MS,
            help="Wait at most this long for more sentences.",
            rich_help_panel=options.REQUESTS,
        ),
    ] = 10.0,
    queue: Annotated[
        int,
        Option(
            min=1,
            max=MAX_QUEUE,
            help="Refuse requests (429) when this many sentences wait.",
            rich_help_panel=options.REQUESTS,
        ),
    ] = 1024,
    timeout_s: Annotated[
        float,
        Option(
            min=0.1,
            max=MAX_SECONDS,
            help="Refuse a request (503) that has waited this many seconds.",
            rich_help_panel=options.REQUESTS,
        ),
    ] = 60.0,
    drain_s: Annotated[
        float,
        Option(
            min=0.0,
            max=MAX_SECONDS,
            help="After SIGTERM, go on accepting requests for this many seconds.",
            rich_help_panel=options.REQUESTS,
        ),
    ] = 0.0,
    watch: Annotated[
        bool, Option("--watch", help="Read a model folder anew when it changes; SIGHUP does, too.")
    ] = False,
    cors: Annotated[
        list[str] | None,
        Option(
            help="Let scripts of this site use the server; may be repeated. Default: all.",
            show_default=False,
            rich_help_panel=options.REQUESTS,
        ),
    ] = None,
    prefix: Annotated[
        str, Option(help="Answer under this path, as in /translator, where a proxy has others.", show_default=False)
    ] = "",
    decoding: DecodingOptions = NO_CHANGES,
    device: options.Device = "auto",
    precision: options.Precision = "fp32",
    engine: options.Engine = "auto",
) -> None:
    """Serve models over HTTP, with a page for browsers at /.

    It has LibreTranslate's API, and DeepL's under /v2. Prints the address when it is ready. SIGTERM ends it after the
    requests that it has accepted.

    Examples:
        transduce serve runs/my/model
        transduce serve runs/en-de/model runs/de-en/model --port 8080
    """
    require_model_folders(*folders)
    with command_imports():
        for module in ("prometheus_client", "python_multipart", "starlette", "uvicorn"):
            library(module, needed_for="serve", extra="serve")
        from transduce.serving.access import Access, read_access
        from transduce.serving.app import make_app
        from transduce.serving.compute_threads import ComputeThreads
        from transduce.serving.glossaries import GlossaryStore
        from transduce.serving.metrics import Metrics
        from transduce.serving.models import ServingOptions, compute_on_each_core, load_served
        from transduce.serving.server import bound_socket
        from transduce.serving.server import serve as run_server
        from transduce.serving.state import ServerState
        from transduce.serving.term_lists import TranslatorLists

    for site in cors or ():
        if site != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/?#@\s]+", site):
            raise BadParameter(f"should be like https://my.site, without a path, got {site!r}", param_hint="'--cors'")
    prefix = prefix.rstrip("/")
    if not re.fullmatch(r"(?:/[A-Za-z0-9._~-]+)*", prefix):
        raise BadParameter(f"should be like /translator, got {prefix!r}", param_hint="'--prefix'")
    if terms_hard and terms is None:
        raise ConfigError("--terms-hard needs --terms, a list of terms")
    access = Access() if keys is None else read_access(keys)
    kept, lists = GlossaryStore(glossaries), TranslatorLists(terms, terms_hard, memory or (), avoid)
    bound = bound_socket(host, port)
    device = chosen_device(device)
    serving = ServingOptions(
        device=device, precision=usable_precision(precision, device), engine=engine, decoding=decoding, lists=lists,
        max_batch=batch, max_wait_s=wait_ms / 1000, capacity=queue,
    )  # fmt: skip
    metrics, compute = Metrics(), ComputeThreads()
    models = [load_served(each, options=serving, compute=compute, metrics_of=metrics.of_model) for each in folders]
    compute_on_each_core(models, compute)
    state = ServerState(models, access=access, metrics=metrics, glossaries=kept, request_timeout_s=timeout_s)
    lists.require_use(list(state.translators))
    address, real_port = bound.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address

    def announce() -> None:
        echo(f"serving {', '.join(each.name for each in models)}")
        print_line(f"http://{shown}:{real_port}{prefix}")
        sys.stdout.flush()

    app = make_app(state, cors_origins=cors or ["*"], prefix=prefix)
    # SIGHUP ends nothing here, so it is heeded under nohup as well.
    signals = [*heeded_signals(signal.SIGTERM, signal.SIGINT), *([HANGUP] if HANGUP is not None else [])]
    run_server(app, state, [bound], log=echo, on_ready=announce, signals=signals, drain_s=drain_s, is_watched=watch)
