"""Files that others made, and files for others: exports, images, sound, many texts at once."""

from __future__ import annotations

import tempfile
from pathlib import Path

from register import Setting, case, wrong


@case("export-masks", models=["help"])
def _exports_say_what_is_lost(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        code, out, errors = setting.run("export", setting.model("help"), "--to", "hf", "--out", f"{folder}/hf")
        card = "".join(path.read_text() for path in Path(folder).rglob("README.md"))
    return None if code == 0 and "URL" in card and "URL" in out + errors else wrong(code, out, errors)


@case("eps-named-png")
def _no_other_program(setting: Setting) -> str | None:
    from transduce.errors import DataError
    from transduce.media import read_image  # type: ignore[attr-defined]

    try:
        read_image(setting.cases / "attack" / "eps-named-png" / "ps.png")
    except DataError:
        return None
    return wrong("it was read")


@case("exif", "stereo-inverted")
def _media_as_people_see_and_hear_them(setting: Setting) -> str | None:
    import numpy as np

    from transduce.media import reader_of

    image, audio = reader_of("image", width=32), reader_of("audio", width=80)
    pictures = [image.read(setting.cases / "exif" / name) for name in ("plain.png", "exif6.jpg", "exif3.jpg")]
    sounds = [audio.read(setting.cases / "stereo-inverted" / name) for name in ("mono16.wav", "stereo_inverted.wav")]
    same = [np.corrcoef(one.ravel(), other.ravel())[0, 1] > 0.99
            for one, other in ((pictures[0], pictures[1]), (pictures[0], pictures[2]), (sounds[0], sounds[1]))
            if one.shape == other.shape]  # fmt: skip
    return None if same == [True] * 3 else wrong(same, [each.shape for each in (*pictures, *sounds)])


@case("bulk-dangling", "bulk-long-name", models=["demo"])
def _shards_by_name(setting: Setting) -> str | None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case, other in (("dangling", "shard2.txt"), ("long", "n" * 250)):
            (folder / case).mkdir()
            (folder / case / "good.txt").write_text("The dog sleeps.\n")
            if case == "dangling":
                (folder / case / other).symlink_to("/nowhere/shard2.txt")
            else:
                (folder / case / other).write_text("The dog sleeps.\n")
        dangling, long = (
            setting.run(
                "translate", setting.model("demo"), "--in", f"{folder}/{case}/*", "--out", f"{folder}/{case}-out"
            )
            for case in ("dangling", "long")
        )
        is_named = dangling[0] == 1 and "shard2.txt" in dangling[2]
        is_done = "this is a bug" not in long[2] and (folder / "long-out" / "good.txt").exists()
    return None if is_named and is_done else wrong(dangling, long)
