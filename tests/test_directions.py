"""Language codes with scripts and regions, and directions of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import DataConfig, canonical_code, canonical_direction, config_from_mapping, split_direction
from transduce.corpora.languages import fault_of_code, language_in_name, language_name
from transduce.errors import ConfigError
from transduce.recipes import read_recipe
from transduce.text import split_sentences, to_sentence_case

CODES = st.from_regex("[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", fullmatch=True)


@given(src=CODES, tgt=CODES)
def test_a_direction_has_one_reading(src: str, tgt: str) -> None:
    assert split_direction(f"{src}-{tgt}") == (src, tgt)
    assert canonical_direction(f"{src}-{tgt}") == f"{src}-{tgt}"
    assert canonical_direction(f"{src.replace('-', '_')}-{tgt.replace('-', '_')}") == f"{src}-{tgt}"
    for name in (src, src.upper(), src.lower(), src.replace("-", "_")):
        assert canonical_code(name) == src


@pytest.mark.parametrize("direction", ["en", "en-", "en-de-fr", "en-de\n", "zh-hans-en", "en-d", "e-de", "en_de", ""])
def test_what_is_no_direction(direction: str) -> None:
    with pytest.raises(ValueError, match="two languages"):
        split_direction(direction)
    with pytest.raises(ConfigError, match="two languages"):
        config_from_mapping(DataConfig, {"direction": direction}, where="data")


def test_a_recipe_may_have_a_region(tmp_path: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        'preset = "tiny"\n[data]\ncorpus = "files"\ndirection = "zh-Hans-pt-BR"\ntrain_src = "a"\ntrain_tgt = "b"\n'
    )
    data = read_recipe(recipe).data
    assert (data.src_language, data.tgt_language) == ("zh-Hans", "pt-BR")


def test_names_of_varieties() -> None:
    assert language_name("zh-Hant") == "Chinese (traditional) (zh-Hant)"
    assert fault_of_code("pt-BR") is None
    assert fault_of_code("xx-BR") is not None
    names = ("a.pt-BR", "a.pt_br.gz", "b.zh-Hans.xz", "a.EN", "a.b-c", "a.md")
    found = [language_in_name(Path(name)) for name in names]
    assert found == ["pt-BR", "pt-BR", "zh-Hans", None, None, None]


def test_import_takes_a_region(transduce: Callable[..., Any], tmp_path: Path) -> None:
    outcome = transduce("import", tmp_path / "none.npz", "--out", tmp_path / "out", "--direction", "en_de")
    assert outcome.code == 1
    assert "en-pt-BR" in outcome.err


def test_a_region_changes_no_rule_of_a_language() -> None:
    text = "Das ist z.B. gut. Herr Dr. Meier kommt am 3. Mai. Ja."
    assert split_sentences(text, "de-AT") == split_sentences(text, "de")
    assert to_sentence_case("THE DOG AND I SLEEP", "en-GB") == to_sentence_case("THE DOG AND I SLEEP", "en")
