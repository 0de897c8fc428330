"""The description of the server's routes as a page without scripts, made from that for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from transduce.pages import content_hash

__all__ = ["docs_html"]

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; } h3 { margin: 1.5rem 0 0; font-size: 1rem; }
code, h3 { font-family: ui-monospace, monospace; } p { margin: 0.25rem 0; }
table { border-collapse: collapse; margin: 0.5rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.15rem 1rem 0.15rem 0; border-bottom: 1px solid #8884; }
@media (max-width: 45rem) {
  body { overflow-wrap: anywhere; }
  tr { display: block; border-bottom: 1px solid #8884; } td { display: inline; border: 0; }
}
"""


def docs_html(openapi: Mapping[str, Any]) -> str:
    """Return the page. Its content security policy allows its own style and nothing else."""
    routes: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            routes.setdefault(operation["tags"][0], []).extend(_route(path, method, operation))
    sections = "\n".join(f"<h2>{escape(tag)}</h2>\n" + "\n".join(lines) for tag, lines in routes.items())
    info = openapi["info"]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; style-src '{content_hash(STYLE)}'; img-src data:">
<link rel="icon" href="data:,">
<title>{escape(info["title"])}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(info["title"])}</h1>
<p>{escape(info["description"])} <a href="openapi.json">openapi.json</a> says the same to programs.</p>
{sections}
</body>
</html>
"""


def _route(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of one route: what it does, its fields, its answers."""
    yield f"<h3>{method.upper()} {escape(path)}</h3>"
    yield f"<p>{escape('. '.join(operation[key] for key in ('summary', 'description') if key in operation))}</p>"
    fields = {each["name"]: (each["schema"], each.get("required", False)) for each in operation.get("parameters", ())}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        fields |= {name: (each, name in schema["required"]) for name, each in schema["properties"].items()}
    if fields:
        yield "<table>"
        for name, (schema, is_required) in fields.items():
            description = escape(schema.get("description", ""))
            cells = f"<code>{escape(name)}</code>", escape(_kind(schema)), "required" * is_required, description
            yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        yield "</table>"
    statuses = (f"{code} {each['description']}" for code, each in operation["responses"].items())
    yield f"<p>{escape('; '.join(statuses))}</p>"


def _kind(schema: Mapping[str, Any]) -> str:
    """Return the type of a field in words."""
    if "oneOf" in schema:
        return " or ".join(map(_kind, schema["oneOf"]))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}s"
    limits = [f"{words} {schema[key]}" for key, words in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([str(schema["type"]), *limits])
