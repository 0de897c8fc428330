"""``transduce train``."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from json import dumps as json_text
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from transduce.cli import options
from transduce.cli.fine_tuning import FineTuning, Mix, changes_of
from transduce.cli.machine import chosen_device
from transduce.cli.model_folders import require_model_folders
from transduce.cli.next_commands import uses_of_trained
from transduce.cli.output import echo, echo_stopped, print_json, print_line, print_scores
from transduce.cli.pair_files import Po, Tmx, Xliff, given_files
from transduce.cli.paths import require_folder, require_utf8_name
from transduce.cli.recipe_list import list_recipes
from transduce.cli.recipe_paths import paths_in_recipe
from transduce.errors import ConfigError, quoted

if TYPE_CHECKING:
    from transduce.config import RunConfig

__all__ = ["train"]


def train(
    recipe: Annotated[
        Path | None,
        Argument(
            metavar="RECIPE",
            help="A TOML file, or a name that --list shows; not needed with --resume, nor with --from and --tmx.",
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="Write the run to this folder. Default: runs/<recipe>-<time>.")] = None,
    resume: Annotated[bool, Option("--resume", help="Resume the run in --out.")] = False,
    start_from: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="MODEL",
            help="Start from the weights of this model folder, where they fit, with its vocabulary.",
            show_default=False,
        ),
    ] = None,
    tmx: Tmx = None,
    po: Po = None,
    xliff: Xliff = None,
    mix: Mix = None,
    store: Annotated[
        Path | None,
        Option(help="Use this prepared folder instead of preparing the text.", rich_help_panel=options.TEXT),
    ] = None,
    data: options.Data = None,
    treebank: options.Treebank = None,
    minutes: Annotated[
        float | None,
        Option(callback=options.check_minutes, help="Stop after this many minutes of training over all sessions."),
    ] = None,
    more: Annotated[
        float | None,
        Option(
            callback=options.check_minutes,
            help="Extend the finished run in --out by this many minutes.",
            show_default=False,
        ),
    ] = None,
    settings: options.Settings = None,
    on_nan: Annotated[
        str | None,
        Option(
            "--on-nan",
            metavar="stop|skip:N",
            help="Stop on a non-finite loss or gradient, or skip at most N such updates in the whole run.",
            show_default=False,
            rich_help_panel=options.RECOVERY,
        ),
    ] = None,
    shard: Annotated[
        bool,
        Option(
            "--shard",
            help="With torchrun: shard the model and the optimiser across processes (FSDP2).",
            rich_help_panel=options.SPEED,
        ),
    ] = False,
    break_lock: Annotated[
        bool,
        Option(
            "--break-lock",
            help="Take over the lock left by a dead process on another machine.",
            rich_help_panel=options.RECOVERY,
        ),
    ] = False,
    device: options.Device = "auto",
    is_list: Annotated[
        bool, Option("--list", help="List the recipes that come with transduce, and their folder, and exit.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Train a model by a recipe, or fine-tune one on your files.

    Prepares the text, trains, averages checkpoints and evaluates (sections 5 and 6.1 of the paper). Ctrl-C saves and
    stops; --resume goes on.

    With --from and --tmx, --po or --xliff, a translator learns from these pairs without a recipe: at a low rate, with
    its old text mixed in; the dev sets of both are translated before and after. --minutes then plans the run.

    Several processes: torchrun --nproc-per-node N -m transduce train ...

    Examples:
        transduce train my.toml --out runs/my
        transduce train --resume --out runs/my
        transduce train --from runs/my/model --tmx new.tmx --out runs/new
    """
    if is_list:
        list_recipes(json=json)
        return 0
    from transduce.cli.progress import TrainingProgress
    from transduce.cli.signals import StopRequest, told_how_to_resume
    from transduce.runs import train as run_training
    from transduce.tasks import task_of
    from transduce.training import local_device, torchrun_context

    given = given_files(tmx, po, xliff)
    changes = [
        *(settings or ()),
        *options.treebank_settings(treebank),
        *_starting_settings(start_from),
        *([] if minutes is None or given else [f"training.max_minutes={float(minutes)}"]),
        *([] if on_nan is None else [f"training.max_skipped_updates={_n_skippable(on_nan)}"]),
    ]
    changes = options.set_once(changes)
    undone_on_error: AbstractContextManager[None] = nullcontext()
    if mix and not given:
        raise ConfigError("--mix needs --from with --tmx, --po or --xliff; recipes name their text in data.corpus")
    if given:
        if start_from is None or recipe is not None or resume or store is not None or more is not None:
            raise ConfigError(
                "--tmx, --po and --xliff need --from, the model that learns from them, and neither a recipe nor --more"
            )
        folder = out or _default_folder(start_from)
        tuning = FineTuning(start_from, given, folder, chosen_device(device), mix or (), data, minutes)
        config, undone_on_error = tuning.config(changes), tuning.undone_on_error()
    elif more is not None:
        if recipe is not None or start_from is not None or out is None:
            raise ConfigError("--more extends the run in --out; leave out the recipe and --from, and name --out")
        if minutes is not None or any(change.startswith("training.patience=") for change in changes):
            raise ConfigError("--more trains for its minutes to the end; leave out --minutes and training.patience")
        config, folder, resume = _extended(out, more, changes), out, True
    else:
        config, folder = _config_and_folder(recipe, out, resume=resume, changes=changes)
    require_folder("--out", folder)
    require_utf8_name("--out", folder)  # required by TensorBoard
    require_utf8_name("--store", None if store is None else store.resolve())  # stored in the run folder
    device = local_device(chosen_device(device))
    stop_request = StopRequest()
    with (
        undone_on_error,
        paths_in_recipe(recipe),
        torchrun_context(device) as distributed,
        TrainingProgress(config.training, counted=task_of(config).counted_noun) as progress,
    ):
        # The default name contains the time, which differs between processes.
        folder = Path(distributed.broadcast_from_first(lambda: str(folder)))
        if not resume:
            echo(f"run folder: {folder}")
        with told_how_to_resume(folder):
            result = run_training(
                config,
                folder,
                resume=resume,
                store=store,
                data_folder=data,
                device=device,
                distributed=distributed,
                is_sharded=shard,
                break_lock=break_lock,
                listeners=[progress],
                should_stop=stop_request,
                while_training=stop_request,
                log=progress.log,
            )
        signals = distributed.all_gather_json(stop_request.signal)
    if result.reason == "interrupted":
        echo_stopped(result.updates, folder)
        return 128 + next(filter(None, signals), 0)
    if not distributed.is_first:
        return 0
    found = changes_of(config, result, device)
    if json:
        scores = None if result.scores is None else result.scores.as_json()
        values = {"run": str(folder), "model": str(result.model_folder), "updates": result.updates}
        compared = {"compared": [asdict(each) for each in found]} if found else {}
        print_json({**values, "reason": result.reason, "split": result.scored_split, "scores": scores, **compared})
        return 0
    if result.scores is not None:
        print_line(f"scores on {result.scored_split} ({result.scored_text}):")
        print_scores(result.scores)
    for change in found:
        print_line(str(change))
    print_line(f"model: {result.model_folder}")
    if result.model_folder is not None:
        for line in uses_of_trained(result.model_folder, config.data):
            echo(line)
    return 0


def _config_and_folder(
    recipe: Path | None, out: Path | None, *, resume: bool, changes: list[str]
) -> tuple[RunConfig, Path]:
    """Return the run's configuration and folder."""
    from transduce.recipes import read_recipe, with_settings
    from transduce.runs import read_run_config
    from transduce.runs.run_file import require_run

    if resume and out is None:
        raise ConfigError("--resume needs --out, the folder of the run to resume")
    if recipe is not None:
        config = read_recipe(recipe, changes, log=echo)
    elif resume and out is not None:
        require_run(out)
        config = with_settings(read_run_config(out), changes, log=echo)
    else:
        raise ConfigError(
            "name a recipe (train --list shows those of transduce), or resume a run with --resume --out RUN"
        )
    return config, out or _default_folder(recipe)


def _extended(run: Path, minutes: float, changes: list[str]) -> RunConfig:
    """Return the configuration of a finished run that goes on."""
    from transduce.recipes import with_settings
    from transduce.runs import extended_run

    return with_settings(extended_run(run, minutes, echo), changes, log=echo)


def _default_folder(named_after: Path | None) -> Path:
    return Path("runs") / f"{named_after.stem if named_after else 'run'}-{time.strftime('%Y%m%d-%H%M%S')}"


def _starting_settings(model: Path | None) -> list[str]:
    """Return ``--from`` as settings. Raises CheckpointError if it is no model folder."""
    if model is None:
        return []
    require_model_folders(model)
    require_utf8_name("--from", model.resolve())
    path = json_text(str(model.resolve()))
    return [f"training.init_from={path}", f"data.tokenizer_from={path}"]


def _n_skippable(on_nan: str) -> int:
    """Parse ``--on-nan`` into the number of updates that may be skipped. Raises ConfigError."""
    kind, colon, number = on_nan.partition(":")
    if on_nan == "stop":
        return 0
    if kind == "skip" and colon and re.fullmatch("[0-9]{1,18}", number):
        return int(number)
    raise ConfigError(f"--on-nan should be stop, or skip:N with a number, as in skip:10; got {quoted(on_nan)}")
