"""STUB, replaced by the page work: fills the page template at build time."""

import json


def render(template: str, site: dict[str, object]) -> str:
    return template.replace("{{site}}", json.dumps(site))
