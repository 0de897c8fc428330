"""The topics of ``transduce help``: short texts about what concerns several verbs."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TOPICS"]

TOPICS: Mapping[str, str] = {
    "own-text": """\
Train a translator on your own text.

  transduce init --src my.en --tgt my.de --minutes 60
  transduce train my.toml --out runs/my
  transduce translate runs/my/model --in new.en --out new.de

init takes two aligned files, or --tsv (source TAB target), --tmx, --po,
--xliff; --direction en-de names the languages. It holds out dev and test text,
and writes a recipe with comments on what you may change. Look for faults of
the text by transduce doctor my.en my.de. A trained model learns from new pairs:

  transduce train --from runs/my/model --tmx new.tmx --out runs/new
""",
    "documents": """\
Translate documents: docx, pptx, xlsx, odt, html, md, po, xliff, srt, epub, ...

  transduce translate MODEL --in report.docx --out report.de.docx
  transduce translate MODEL --in manuals --out manuals.de
  transduce translate MODEL --in page.html --out de.html --review review.html

Texts are translated, everything else stays. A folder or a pattern ('in/*.po')
is translated file by file; the same command goes on after an interruption.
--review writes a page for a person who corrects the result, --report says what
was not translated, and why. PO and XLIFF: --wanted fuzzy or all translates
more than empty texts, --trust leaves out the mark for review. --format NAME
says the format of stdin, and --format text reads a document as lines.
""",
    "terms": """\
Have terms translated as a list says.

  transduce translate MODEL --in report.docx --out de.docx --terms terms.tsv

Each line of the list is SOURCE TAB TARGET; TBX works, too. The model takes the
best hypothesis with the listed terms. --terms-hard makes it search for one
with all of them; endings and articles beside a term may then be wrong.
--avoid FILE bars phrases, one in each line. Terms that are still missing are
told as warnings. transduce serve takes the same options. A new model learns
to use lists by transduce init --terms terms.tsv.
""",
    "memory": """\
Take translations that people have made before.

  transduce memory build old.tmx more.tsv --src en --tgt de --out my.tm
  transduce memory search my.tm 'Press the button.'
  transduce translate MODEL --in manual.docx --out de.docx --memory my.tm

A text that the memory has takes its translation, with its own numbers; similar
texts are only told, by --json and --review. --memory reads TMX, XLIFF, PO and
TSV as well; a file of memory build opens at once. transduce serve --memory
uses one for each direction. To train on a memory: transduce init --tmx, or
transduce train --from MODEL --tmx.
""",
    "recipes": """\
A recipe is a TOML file that says what to train: text, model, training, search.

  preset = "base"              # or big, small, tiny
  [data]
  corpus = "files"
  direction = "en-de"
  train_tsv = "train.tsv"      # source TAB target
  [training]
  max_updates = 5000

transduce init writes one for your text. What it leaves out has the values of
the preset. train, prepare and demo take --set training.max_updates=100 to
change a field. transduce model my.toml shows the model, and transduce doctor
my.toml checks the recipe and its text.
""",
    "resume": """\
Stop, resume and extend a training run.

  transduce train --resume --out runs/my
  transduce train --more 30 --out runs/my

Ctrl-C or SIGTERM saves a checkpoint and stops; a second one stops at once.
--resume goes on from the newest complete checkpoint, also after a crash, and
ends with the same model as a run that was not interrupted. --more extends a
finished run by minutes. --set may change the length of a run, but not its
model or its text; transduce train my.toml --from runs/my/model starts a new
run from the weights. --break-lock frees a run whose process died elsewhere.
""",
    "engines": """\
What computes translations, and how to make it faster.

--engine native is an engine in C for CPUs, which needs no PyTorch; torch is
PyTorch, for GPUs and all models. auto takes native on a CPU if it knows the
model. --device cuda:1 names a GPU; auto takes one if there is one.

--precision int8 or bf16 is faster, and less exact than fp32. --beam 1 is
greedy search. --workers 4 uses four processes. --shortlist FOLDER, made by
transduce shortlist, scores only the likely words. --draft SMALL lets a smaller
model propose words. TRANSDUCE_ENGINE names the engine where no option does.
""",
    "exit-codes": """\
What transduce returns to the shell.

  0       success
  1       a wrong value, file or data, told in one line; a problem that
          transduce doctor found; files that could not be translated
  2       an unknown verb or option
  128+n   ended by signal n: 130 is Ctrl-C, 143 SIGTERM

Results go to stdout; progress, warnings and errors go to stderr. --json prints
results as JSON, which programs can rely on.
""",
    "environment": """\
Environment variables.

  TRANSDUCE_DATA        a folder with corpora, searched after that of --data
  TRANSDUCE_ENGINE      native or torch, where --engine is auto
  TRANSDUCE_ISA         code of the engine in C: amx, avx512, avx2, neon,
                        portable; by default the best that the processor runs
  TRANSDUCE_LIBRARY     the file of the engine in C, in place of the installed
  TRANSDUCE_TRACEBACK   1 prints the traceback of an unexpected error
  XDG_CACHE_HOME        downloads and histories are in its folder transduce
  OMP_NUM_THREADS       threads of a process
  CUDA_VISIBLE_DEVICES  the GPUs that may be used
""",
}  # fmt: skip
