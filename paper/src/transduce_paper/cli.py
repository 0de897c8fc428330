"""``transduce paper``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from transduce.cli import (
    DataOption,
    DeviceOption,
    JsonOption,
    TreebankOption,
    chosen_device,
    echo,
    echo_error,
    print_json,
    require_folder,
    require_utf8_name,
)
from transduce.errors import ConfigError, TransduceError, quoted

if TYPE_CHECKING:
    from transduce_paper import Report, Scale

__all__ = ["paper"]

FIGURES_OF_ATTENTION = ("figure3", "figure4", "figure5")


def paper(
    name: Annotated[
        str,
        Argument(
            metavar="WHAT",
            help="What to reproduce: table1 to table4, figure1 to figure5, compatibility, curves, future, notes, or"
            " all.",
        ),
    ],
    scale: Annotated[
        str,
        Option(
            help="Size of the runs: cpu for small models in minutes, hours for larger ones of table2 to table4, gpu"
            " for still larger ones on a GPU, paper for its own runs, test for a version in seconds whose numbers mean"
            " nothing."
        ),
    ] = "cpu",
    out: Annotated[
        Path,
        Option(help="Write the reports to this folder; its folder runs keeps a small record of each finished run."),
    ] = Path("reports"),
    work: Annotated[
        Path | None,
        Option(help="Keep runs and models in this folder. Default: work in --out.", show_default=False),
    ] = None,
    row: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Run only this row of table3, for example A-h1 or big; repeat for several. It is trained with its"
            " first seed, base with all of its seeds.",
            show_default=False,
        ),
    ] = None,
    recorded: Annotated[
        bool,
        Option("--recorded", help="Report what of table2, table3 or table4 has a record so far, and train nothing."),
    ] = False,
    jobs: Annotated[
        int,
        Option(
            metavar="N",
            min=1,
            help="Train up to N runs of table2 or table3 at once: one model with small batches does not fill a GPU.",
        ),
    ] = 1,
    sentence: Annotated[
        str | None, Option(help="Show this sentence in the attention figures, beside the paper's.", show_default=False)
    ] = None,
    model: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Show this model, which translates from English, in figures 3 to 5, in place of one trained for them.",
            show_default=False,
        ),
    ] = None,
    treebank: TreebankOption = None,
    data: DataOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> int:
    """Reproduce a table or figure of the paper.

    Writes our numbers beside the printed ones, as Markdown, CSV and SVG. Trains the models that are missing and
    resumes interrupted runs. all makes every one but future, and claims.md: each sentence of the paper that was
    tested, and what came out. With --scale hours all trains the larger models that claims.md takes once all of them
    have a record: some days of one core, in runs of about an hour.

    Examples:
        transduce paper table1
    """
    from transduce.cli import StopRequest, TrainingProgress
    from transduce.config import nearest_name
    from transduce_paper import ARTEFACTS, LARGER, ON_REQUEST, Experiments, Request, Stopped, write_claims, write_report
    from transduce_paper.experiments import SCALES

    of_all = LARGER if scale == "hours" else (each for each in ARTEFACTS if each not in ON_REQUEST)
    names = list(of_all) if name == "all" else [name]
    if name != "all" and name not in ARTEFACTS:
        raise ConfigError(f"unknown table or figure {quoted(name)}; {nearest_name(name, [*ARTEFACTS, 'all'])}")
    if scale not in SCALES:
        raise ConfigError(f"--scale should be {', '.join(SCALES[:-1])} or {SCALES[-1]}, got {quoted(scale)}")
    rows = tuple(row or ())
    if rows:
        _require_table3_rows(name, rows)
    if jobs > 1 and not {"table2", "table3"} & set(names):
        raise ConfigError(f"--jobs {jobs} is for the runs of table2 and table3, got it with {quoted(name)}")
    if recorded and (rows or not LARGER.keys() >= set(names)):
        raise ConfigError(
            f"--recorded reports all that is recorded of {', '.join(LARGER)}, got it with"
            f" {'--row' if rows else quoted(name)}"
        )
    if scale == "hours" and not LARGER.keys() >= set(names):
        raise ConfigError(
            f"--scale hours is for {', '.join(LARGER)} and all, got it with {quoted(name)}; the others have --scale cpu"
        )
    if model is not None and name not in FIGURES_OF_ATTENTION:
        raise ConfigError(f"--model is shown in figures 3 to 5, got it with {quoted(name)}")
    _require_inputs(names, scale, treebank, sentence)
    reports = out if scale == "cpu" else out / scale
    for option, folder in (("--out", out), ("--work", work or out / "work")):
        require_folder(option, folder)
        require_utf8_name(option, folder.resolve())
    stop = StopRequest()
    experiments = Experiments(
        out / "runs",
        work or out / "work",
        scale=scale,
        data_folder=data,
        device=chosen_device(device),
        follow=lambda config: TrainingProgress(config.training),
        should_stop=stop,
        while_training=stop,
        log=echo,
    )
    requests = {
        each: LARGER[each].require_recorded(each, experiments)
        if recorded
        else Request(sentence, treebank, rows, model, jobs)
        for each in names
    }
    written: dict[str, list[str]] = {}
    made: dict[str, Report] = {}
    n_failed = 0
    for each in names:
        echo(f"{each}:")
        try:
            report = ARTEFACTS[each](experiments, requests[each])
        except Stopped:
            echo(f"stopped; run the same command again to continue with {each}")
            return stop.exit_code
        except TransduceError as error:
            if len(names) == 1:
                raise
            echo_error(f"{each}: {error}")
            n_failed += 1
            continue
        paths = write_report(report, reports)
        made[each] = report
        written[each] = [str(path) for path in paths]
        if not json:
            print(paths[0].read_text(encoding="utf-8"))
    if name == "all" and scale != "hours":
        if scale == "cpu":
            made = _with_recorded(made, out / "runs", work or out / "work")
        written["claims"] = [str(write_claims(made, reports, scale=scale))]
    if json:
        print_json({"scale": scale, "written": written})
    return 1 if n_failed else 0


def _with_recorded(made: dict[str, Report], records: Path, work: Path) -> dict[str, Report]:
    """Return the reports that test the claims: of larger models in place of small ones, and those made on request.

    Only recorded ones, so nothing is trained. Of a claim in several reports the first counts.
    """
    from transduce_paper import ARTEFACTS, LARGER, ON_REQUEST, Experiments, Request

    def larger(name: str, small: Report) -> dict[str, Report]:
        """Return the reports in place of a small one, until one has all."""
        reports = {}
        for scale in LARGER[name].scales if name in LARGER else ():
            experiments = Experiments(records, work, scale=scale)
            request = LARGER[name].recorded(experiments)
            if request is not None:
                report = ARTEFACTS[name](experiments, request)
                reports[f"{scale}/{report.name}"] = report
            if request == Request():
                return reports
        return {**reports, name: small}

    small = Experiments(records, work, scale="cpu")
    on_request = {name: ARTEFACTS[name](small, Request()) for name, has in ON_REQUEST.items() if has(small)}
    in_order = {name: report for name in ARTEFACTS if (report := (made | on_request).get(name))}
    return {name: each for of_small in in_order.items() for name, each in larger(*of_small).items()}


def _require_table3_rows(name: str, rows: tuple[str, ...]) -> None:
    """Raise ConfigError for --row with another table or figure, or for an unknown row."""
    from transduce_paper.table3.rows import require_rows

    if name != "table3":
        raise ConfigError(f"--row {quoted(rows[0])} selects a row of table3, got it with {quoted(name)}")
    require_rows(rows)


def _require_inputs(names: list[str], scale: Scale, treebank: Path | None, sentence: str | None) -> None:
    """Raise ConfigError before training for input that is missing or invalid, not only when it is read hours later."""
    from importlib.util import find_spec

    if "table4" in names and scale == "paper" and treebank is None:
        raise ConfigError("table4 at --scale paper needs --treebank, the folder of the Penn Treebank")
    if sentence is not None and not sentence.strip():
        raise ConfigError("--sentence is empty")
    if find_spec("matplotlib") is None:
        raise ConfigError("plots need matplotlib, which is not installed; install matplotlib")
