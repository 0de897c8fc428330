"""The corpora that have a name: what they are, which texts they hold, and where those can be had.

A text is a pair (or a triple) of aligned files ``FOLDER/STEM.LANGUAGE`` in a data folder, see ``padding.py``. A name
that is not in ``CATALOGUE`` is a folder of the user's own with the texts train, dev and test.

Checksums are those that somebody has published: torchtext 0.9 for Multi30k, sacreBLEU for the test sets, TensorFlow
Datasets for the training archives. A file without one has it recorded once it was first read to its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from transduce.config import SPLITS, Split
from transduce.errors import ConfigError

__all__ = ["BUILT_IN", "CATALOGUE", "OWN_FILES", "Corpus", "RemoteFile", "Text", "corpus_named", "text_named"]

BUILT_IN = "grammar"  # made by a grammar of our own, at any size
OWN_FILES = "files"  # the files that a recipe names


@dataclass(frozen=True, slots=True)
class Text:
    """Aligned files ``folder/stem.LANGUAGE``, or ``folder/stem.PAIR.LANGUAGE``, plain or compressed."""

    folder: str
    stem: str
    languages: tuple[str, ...] = ()  # in which it exists; empty: look and see
    pivot: str | None = None  # the language that each other is aligned with; None: all of them are with all others

    def is_in(self, src_language: str, tgt_language: str) -> bool:
        """Whether it can exist in both."""
        both = {src_language, tgt_language}
        return not self.languages or (both <= set(self.languages) and (self.pivot is None or self.pivot in both))


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to download, and the texts in it."""

    address: str
    members: Mapping[str, str]  # name in the data folder -> name in the archive, "" for the file itself
    checksum: str | None = None  # as published: "md5:..." or "sha256:..."

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.address.rsplit("/", 1)[1]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What ``transduce corpus list`` tells and ``get`` fetches."""

    name: str
    languages: tuple[str, ...]
    size: str
    licence: str
    source: str
    train: tuple[Text, ...] = ()
    dev: tuple[Text, ...] = ()
    test: tuple[Text, ...] = ()
    further: tuple[Text, ...] = ()  # other test sets
    remote: tuple[RemoteFile, ...] = field(default=(), repr=False)
    is_tokenised: bool = False  # by Moses; training text is detokenised as it is read

    def texts(self, split: Split) -> tuple[Text, ...]:
        """Those of a split."""
        return {"train": self.train, "dev": self.dev, "test": self.test}[split]

    @property
    def directions(self) -> tuple[str, ...]:
        """The pairs of languages that training text can be in; empty where that is for the disk to say.

        >>> CATALOGUE["tatoeba"].directions
        ('en-de', 'en-fr')
        """
        pairs = combinations(self.languages, 2)
        return tuple(f"{a}-{b}" for a, b in pairs if any(text.is_in(a, b) for text in self.train))


def text_named(name: str) -> Text:
    """A text by the name of its corpus or folder and its own: ``multi30k/test_2017_flickr``, ``multi30k/test``.

    Raises ConfigError if the name has not two parts.

    >>> text_named("multi30k/test").stem
    'test_2016_flickr'
    """
    corpus, slash, stem = name.partition("/")
    if not (corpus and slash and stem):
        raise ConfigError(f"a text is named CORPUS/TEXT, as in multi30k/test_2017_flickr; got {name!r}")
    known = CATALOGUE.get(corpus)
    if known is None:
        return Text(corpus, stem)
    by_split: dict[str, tuple[Text, ...]] = {split: known.texts(split) for split in SPLITS}
    if len(by_split.get(stem, ())) == 1:
        return by_split[stem][0]
    texts = (*known.train, *known.dev, *known.test, *known.further)
    return next((text for text in texts if text.stem == stem), Text(known.train[0].folder, stem))


def corpus_named(name: str) -> Corpus:
    """A corpus of the catalogue, or a folder of that name with the texts train, dev and test."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    train, dev, test = ((Text(name, split),) for split in SPLITS)
    return Corpus(
        name, languages=(), size="any", licence="yours", source="your own folder", train=train, dev=dev, test=test
    )


_EN_DE, _EN_FR, _EN_DE_FR = ("en", "de"), ("en", "fr"), ("en", "de", "fr")

_RESEARCH = "free for research (shared task data)"


def _multi30k() -> Corpus:
    folder = "multi30k"
    published = {
        "train.de": "81ff90b99829c0cd4b1b587d394afd39",
        "train.en": "0065d13af80720a55ca8153d126e6627",
        "train.fr": "6cb767741dcad3931f966fefbc05203f",
        "val.de": "6e0e229eb049e3fc99a1ef02fb2d5f91",
        "val.en": "2b69aa9253948ac9f67e94917272dd40",
        "val.fr": "93fc564584b7e5ba410c761ea5a1c682",
        "test_2016_flickr.de": "efd67d314d98489b716b145475101932",
        "test_2016_flickr.en": "ff2c0fcb4893a13bd73414306bc250ae",
        "test_2016_flickr.fr": "08dc7cd4a662f31718412de95ca9bfe3",
        "test_2017_flickr.de": "6a8d5c87f6ae19e3d35681aa6fd16571",
        "test_2017_flickr.en": "005396bac545d880abe6f00bbb7dbbb4",
        "test_2017_flickr.fr": "cb09af7d2b501f9112f2d6a59fa1360d",
    }
    raw = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    return Corpus(
        name="multi30k",
        languages=_EN_DE_FR,
        size="29,000 pairs; dev 1,014; test 1,000 (2016), 1,000 (2017)",
        licence="research and education, not commercial (from Flickr30k)",
        source="captions of pictures; github.com/multi30k/dataset",
        train=(Text(folder, "train", _EN_DE_FR),),
        dev=(Text(folder, "val", _EN_DE_FR),),
        test=(Text(folder, "test_2016_flickr", _EN_DE_FR),),
        further=(Text(folder, "test_2017_flickr", _EN_DE_FR),),
        remote=tuple(
            RemoteFile(f"{raw}/{name}.gz", {f"{folder}/{name}.gz": ""}, f"md5:{digest}")
            for name, digest in published.items()
        ),
    )


NEWS = "wmt_news"
_NEWSTEST2013 = Text(NEWS, "newstest2013", _EN_DE_FR)
_NEWSTEST2014 = Text(NEWS, "newstest2014", _EN_DE_FR, pivot="en")

# Plain text of the older sets, in three languages.
_WMT_DEV = RemoteFile(
    "https://data.statmt.org/wmt19/translation-task/dev.tgz",
    {
        f"{NEWS}/{stem}.{language}": f"dev/{stem}.{language}"
        for stem in ("news-test2008", "newssyscomb2009", *(f"newstest{year}" for year in range(2009, 2014)))
        for language in _EN_DE_FR
    },
    "sha256:7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
)


def _test_sets(address: str, md5: str, sgm_folder: str, *stems: str) -> RemoteFile:
    """An archive of a later shared task: SGML files, named after the direction of translation."""
    members = {}
    for stem in stems:
        name, src, tgt = re.split("[.-]", stem)
        # In 2014 one text was used in both directions, and its files are named after the English side as target.
        direction = tgt + src if name == "newstest2014" else src + tgt
        members[f"{NEWS}/{stem}.{src}"] = f"{sgm_folder}/{name}-{direction}-src.{src}.sgm"
        members[f"{NEWS}/{stem}.{tgt}"] = f"{sgm_folder}/{name}-{direction}-ref.{tgt}.sgm"
    return RemoteFile(address, members, f"md5:{md5}")


_WMT14_TEST = _test_sets(
    "https://statmt.org/wmt14/test-full.tgz",
    "a8cd784e006feb32ac6f3d9ec7eb389a",
    "test-full",
    "newstest2014.en-de",
    "newstest2014.en-fr",
)

_WMT_TESTS = (
    _WMT14_TEST,
    _test_sets(
        "https://statmt.org/wmt15/test.tgz",
        "67e3beca15e69fe3d36de149da0a96df",
        "test",
        "newstest2015.en-de",
        "newsdiscusstest2015.en-fr",
    ),
    *(
        _test_sets(
            f"https://data.statmt.org/wmt{year % 100}/translation-task/test.tgz",
            md5,
            sgm_folder,
            *(f"newstest{year}.{direction}" for direction in directions),
        )
        for year, md5, sgm_folder, *directions in (
            (2016, "3d809cd0c2c86adb2c67034d15c4e446", "test", "en-de"),
            (2017, "86a1724c276004aa25455ae2a04cef26", "test", "en-de"),
            (2018, "f996c245ecffea23d0006fa4c34e9064", "test", "en-de"),
            (2019, "84de7162d158e28403103b01aeefc39a", "sgm", "en-de", "de-en"),
            (2020, "3b1f777cfd2fb15ccf66e9bfdb2b1699", "sgm", "en-de", "de-en"),
        )
    ),
)


def _newstest() -> Corpus:
    three_ways = ("news-test2008", "newssyscomb2009", *(f"newstest{year}" for year in range(2009, 2013)))
    en_de = (*(f"newstest{year}.en-de" for year in range(2015, 2021)), "newstest2019.de-en", "newstest2020.de-en")
    return Corpus(
        name="newstest",
        languages=_EN_DE_FR,
        size="en-de 30,943 pairs, en-fr 15,073; dev newstest2013 3,000; test newstest2014",
        licence=_RESEARCH,
        source="news test sets of WMT 2008 to 2020 as training text; statmt.org",
        train=(
            *(Text(NEWS, stem, _EN_DE_FR) for stem in three_ways),
            *(Text(NEWS, stem, _EN_DE) for stem in en_de),
            Text(NEWS, "newsdiscusstest2015.en-fr", _EN_FR),
        ),
        dev=(_NEWSTEST2013,),
        test=(_NEWSTEST2014,),
        remote=(_WMT_DEV, *_WMT_TESTS),
    )


# Sizes and SHA-256 of the archives: TensorFlow Datasets. The last two have none.
_STATMT = "https://www.statmt.org"
_TRAINING_ARCHIVES = {
    "europarl-v7": (
        f"{_STATMT}/wmt13/training-parallel-europarl-v7.tgz",
        "training/europarl-v7.{pair}",
        "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
    ),
    "commoncrawl": (
        f"{_STATMT}/wmt13/training-parallel-commoncrawl.tgz",
        "commoncrawl.{pair}",
        "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
    ),
    "news-commentary-v9": (
        f"{_STATMT}/wmt14/training-parallel-nc-v9.tgz",
        "training/news-commentary-v9.{pair}",
        "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
    ),
    "undoc.2000": (f"{_STATMT}/wmt13/training-parallel-un.tgz", "un/undoc.2000.{pair}", None),
    "giga-fren.release2.fixed": (f"{_STATMT}/wmt10/training-giga-fren.tar", "giga-fren.release2.fixed", None),
}


def _wmt14(other: str, stems: tuple[str, ...], *, size: str) -> Corpus:
    """The training data of the paper (section 5.1): English with German or French."""
    folder, languages = f"wmt14_en_{other}", ("en", other)
    remote = []
    for stem in stems:
        address, pattern, checksum = _TRAINING_ARCHIVES[stem]
        member, ending = pattern.format(pair=f"{other}-en"), ".gz" if address.endswith(".tar") else ""
        members = {f"{folder}/{stem}.{language}{ending}": f"{member}.{language}{ending}" for language in languages}
        remote.append(RemoteFile(address, members, checksum))
    return Corpus(
        name=f"wmt14-en-{other}",
        languages=languages,
        size=size,
        licence=_RESEARCH,
        source="the training data of the paper; statmt.org/wmt14",
        train=tuple(Text(folder, stem, languages) for stem in stems),
        dev=(_NEWSTEST2013,),
        test=(_NEWSTEST2014,),
        remote=(*remote, _WMT_DEV, _WMT14_TEST),
    )


CATALOGUE: Mapping[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        _multi30k(),
        _wmt14(
            "de",
            ("europarl-v7", "commoncrawl", "news-commentary-v9"),
            size="about 4.5 million pairs; dev newstest2013 3,000; test newstest2014 3,003",
        ),
        _wmt14(
            "fr",
            tuple(_TRAINING_ARCHIVES),
            size="about 40 million pairs; dev newstest2013 3,000; test newstest2014 3,003",
        ),
        _newstest(),
        Corpus(
            name="libreoffice-help",
            languages=_EN_DE_FR,
            size="en-de 26,733 pairs, dev 1,066, test 918; en-fr 25,668, 1,067, 778 (Debian 12)",
            licence="MPL-2.0",
            source="help pages of LibreOffice, made from the Debian packages libreoffice-help-{en-us,de,fr}; needs "
            "apt-get",
            train=(Text("libreoffice_help", "train", _EN_DE_FR, pivot="en"),),
            dev=(Text("libreoffice_help", "dev", _EN_DE_FR, pivot="en"),),
            test=(Text("libreoffice_help", "test", _EN_DE_FR, pivot="en"),),
        ),
        Corpus(
            name="tatoeba",
            languages=_EN_DE_FR,
            size="en-de 16,448 pairs, en-fr 11,547; no dev, no test",
            licence="CC BY 2.0 FR",
            source="short sentences; test set 2021-08-07 of the Tatoeba Challenge; from a copy on the disk only",
            train=(Text("tatoeba", "tatoeba-2021-08-07", _EN_DE_FR, pivot="en"),),
        ),
        Corpus(
            name="wmt-sample10k",
            languages=_EN_DE,
            size="10,000 pairs; no dev, no test",
            licence=_RESEARCH,
            source="a sample of WMT training text, from github.com/OpenNMT/OpenNMT-py; from a copy on the disk only",
            train=(Text("wmt_sample10k", "train.tok", _EN_DE),),
            is_tokenised=True,
        ),
    )
}
