"""The server: its APIs' clients, those that do harm, and long requests."""

from __future__ import annotations

from register import Setting, case, wrong


@case("split-sentences-0", models=["demo"])
def _all_sentences(setting: Setting) -> str | None:
    status, answer = setting.ask(["demo"], "/v2/translate", setting.input("split-sentences-0"))
    text = answer["translations"][0]["text"] if status == 200 else ""
    is_right = status == 400 or (text.count(".") == 3 and text.count("\n") == 1)
    return None if is_right else wrong(status, answer)


@case("double-slash", "glossary-null", models=["demo"])
def _clients(setting: Setting) -> str | None:
    slash, _ = setting.ask(["demo"], "//translate", {"q": "The dog sleeps.", "source": "en", "target": "de"})
    null, _ = setting.ask(["demo"], "/v2/translate", setting.input("glossary-null"))
    return None if slash in (200, 307, 308) and null == 200 else wrong(slash, null)


@case("language-codes", models=["demo", "chinese"])
def _codes(setting: Setting) -> str | None:
    spellings = [("demo", "EN", "de"), ("demo", "en", "DE"), ("chinese", "zh-Hans", "en"), ("chinese", "ZH", "EN"),
                 ("chinese", "zh_Hans", "en")]  # fmt: skip
    found = [
        (source, target, setting.ask([model], "/translate", {"q": "你好。", "source": source, "target": target})[0])
        for model, source, target in spellings
    ]
    return None if all(status == 200 for *_, status in found) else wrong(found)


@case("html-500", "sigpipe", models=["demo"])
def _clients_that_do_harm(setting: Setting) -> str | None:
    body = {"q": "&#" + "1" * 4301, "source": "en", "target": "de", "format": "html"}
    status, _ = setting.ask(["demo"], "/translate", body)
    for _ in range(100):
        setting.server("demo").connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20).close()
    alive, _ = setting.ask(["demo"], "/health", None)
    return None if status in (200, 400) and alive == 200 else wrong(status, alive)
