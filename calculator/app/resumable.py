"""The session that a memory snapshot keeps, and its document as the page paints it before Python is there."""

import gc
import importlib
import json
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from bokeh.core.property.bases import Property
from param import Parameter

from .. import catalogue
from ..hf_config.families import classes
from ..locales import LANGUAGES
from ..locales import catalogue as sentences
from .browser import Session
from .readouts import templates
from .theme import THEMES

KEPT = {"language": LANGUAGES[0], "theme": "light"}
session: Session  # what a worker goes on with


def prepare(modules: Iterable[str]) -> str:
    """Import what a rehearsal imported, make `session`, give its document as JSON by language and theme.

    The model ids are the same in all. The rehearsal itself would leave twice its own size of garbage behind.

    Raises:
        RuntimeError: a language or theme has other models: views must change properties, not replace models.
    """
    global session
    for module in modules:
        if module != "__main__":
            importlib.import_module(module)
    _read()
    session = Session("", json.dumps(KEPT))
    looks = [{"language": language, "theme": theme} for language in LANGUAGES for theme in THEMES]
    documents = {}
    for look in [*looks, KEPT]:  # ends with what is kept
        session.change("{}", json.dumps(look))
        session.page()
        documents[f"{look['language']}-{look['theme']}"] = session.painted()
    models = {name: _ids(json.loads(document)) for name, document in documents.items()}
    for name, ids in models.items():
        if ids != models[f"{KEPT['language']}-{KEPT['theme']}"]:
            raise RuntimeError(f"the document of {name} has other models than that of {KEPT}")
    _shed()
    return json.dumps(documents)


def _read() -> None:
    """Read every file of the calculator's: the memory is kept, the file system is not."""
    for model in catalogue.ids():
        catalogue.entry(model)
    for language in LANGUAGES:
        sentences(language)
    classes()
    for name in templates().list_templates():
        templates().get_template(name)


def _shed() -> None:
    """Let go of what nobody reads in a browser: descriptions and annotations, a tenth of the memory."""
    for found in gc.get_objects():
        if isinstance(found, FunctionType):
            found.__doc__ = found.__annotate__ = None
        elif isinstance(found, Parameter):
            found.doc = None
        elif isinstance(found, Property):
            found._help = None  # noqa: SLF001 - what it keeps is nowhere else


def _ids(part: Any) -> set[str]:
    """The ids of all models in a piece of a document's JSON."""
    match part:
        case {"type": "object", "id": str(identity), **rest}:
            return {identity} | _ids(list(rest.values()))
        case dict():
            return _ids(list(part.values()))
        case list():
            return {identity for one in part for identity in _ids(one)}
        case _:
            return set()
