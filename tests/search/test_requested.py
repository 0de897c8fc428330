from __future__ import annotations

from transduce.config import SampledSearchConfig, SearchConfig
from transduce.config.search import ProcessedSearchConfig
from transduce.search import REQUESTED, Chain, Constrained, MinLength, NoRepeatNgrams, requested_processor


def test_every_field_asks_for_a_processor() -> None:
    names = [name for each in REQUESTED for name in each.fields]
    assert sorted(names) == sorted(ProcessedSearchConfig.model_fields.keys() - SearchConfig.model_fields.keys())


def test_what_settings_ask_for() -> None:
    last = Constrained(lambda sentence, prefix: [0])
    both = SearchConfig(kind="greedy", min_length=3, no_repeat_ngram=2)
    assert requested_processor(both, last, eos_id=7) == Chain([MinLength(3, 7), NoRepeatNgrams(2), last])
    for plain in (SearchConfig(), SearchConfig(kind="greedy"), SampledSearchConfig()):
        assert requested_processor(plain, eos_id=7) is None
        assert requested_processor(plain, last, eos_id=7) == Chain([last])
