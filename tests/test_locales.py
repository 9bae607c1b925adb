import ast
import re
from pathlib import Path
from string import Formatter

import pytest

import calculator
from calculator.caches import KINDS
from calculator.errors import ConfigError, FieldError, LimitError
from calculator.footprint import QUANTITIES
from calculator.locales import LANGUAGES, catalogue, label, text
from calculator.scenario import FIELDS

PACKAGE = Path(calculator.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMESPACES = {key.partition(".")[0] for key in catalogue("en")}
KEY = re.compile(r"[a-z]+(\.[a-z0-9_-]+)+")
RAISED = {error.__name__ for error in (FieldError, ConfigError, LimitError)}


def blanks(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def literal_keys(source: Path) -> set[str]:
    """Every catalogue key in the code: what errors, `text` and names are given, and what starts a tuple."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            position = 0 if name in RAISED else 1 if name == "text" else None
            if position is not None and len(node.args) > position:
                found |= {part.value for part in ast.walk(node.args[position]) if is_key(part)}
        if isinstance(node, ast.Assign):
            found |= {part.value for part in ast.walk(node.value) if is_key(part)}
        if isinstance(node, ast.Tuple) and node.elts and is_key(node.elts[0]):
            found.add(node.elts[0].value)
    return found


def is_key(node: ast.AST) -> bool:
    """Whether a literal reads like a key of one of the catalogues' groups."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    return KEY.fullmatch(node.value) is not None and node.value.partition(".")[0] in NAMESPACES


def test_the_languages_say_the_same_things():
    for language in LANGUAGES:
        assert catalogue(language).keys() == catalogue("en").keys()


@pytest.mark.parametrize("key", catalogue("en"))
def test_a_sentence_has_the_same_blanks_in_every_language_and_is_not_empty(key):
    for language in LANGUAGES:
        sentence = catalogue(language)[key]
        assert blanks(sentence) == blanks(catalogue("en")[key])
        assert sentence.strip() == sentence != ""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_key_in_the_code_is_in_the_catalogues(source):
    assert literal_keys(source) <= catalogue("en").keys()


def test_the_search_for_keys_finds_those_of_errors_commands_and_notices(tmp_path):
    keys = {key for source in SOURCES for key in literal_keys(source)}
    assert {"error.range", "error.empty", "error.integer", "error.limit", "notice.tp", "cli.about"} <= keys
    example = tmp_path / "example.py"
    example.write_text(
        'text(language, "error.a" if wrong else "error.b")\nraise errors.FieldError("error.c", field="x")'
    )
    assert literal_keys(example) == {"error.a", "error.b", "error.c"}


def test_no_file_says_a_thing_twice():
    for language in LANGUAGES:
        lines = (PACKAGE / "locales" / f"{language}.json").read_text(encoding="utf-8").splitlines()
        keys = [line.split('"')[1] for line in lines if line.startswith('  "')]
        assert len(keys) == len(set(keys)) == len(catalogue(language))


sizes = {name for kind in KINDS.values() for name, _ in kind.sized()}


@pytest.mark.parametrize("name", sorted({*FIELDS, *sizes, "latent_width", "version", "address", "bytes"}))
def test_every_field_has_a_label_in_every_language(name):
    for language in LANGUAGES:
        assert f"field.{name}" in catalogue(language)
        assert label(language, name) == catalogue(language)[f"field.{name}"]


def test_no_two_fields_share_a_label():
    names = {*FIELDS, "latent_width"}
    for language in LANGUAGES:
        assert len({label(language, name) for name in names}) == len(names)


def test_every_figure_and_scope_has_words():
    for language in LANGUAGES:
        assert {f"quantity.{name}" for name in QUANTITIES} <= catalogue(language).keys()
        assert {"scope.per_rank", "scope.whole_model"} <= catalogue(language).keys()


def test_a_field_that_only_code_knows_keeps_its_name():
    assert label("en", "no_such_field") == label("zh", "no_such_field") == "no_such_field"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1_024, "1,024"),
        (-5, "-5"),
        (2**64 - 1, "18,446,744,073,709,551,615"),
        (2**64, "> 2^64"),
        (10**5000, "> 2^64"),
        (-(2**64), "< -2^64"),
        ("1024", "1024"),
        ("{lowest}", "{lowest}"),
        (2.5, "2.5"),
    ],
    ids=range(9),
)
def test_numbers_have_thousands_separators_and_text_stays_as_typed(value, shown):
    sentence = text("en", "error.range", field="Layers", value=value, lowest=1, highest=2)
    assert sentence.startswith(f"Layers: {shown} is outside 1 to 2.")


def test_an_error_is_its_english_sentence_and_knows_the_others():
    error = FieldError("error.range", field="num_layers", value=0, lowest=1, highest=1024)
    assert (
        str(error) == error.message("en") == "Layers: 0 is outside 1 to 1,024. Choose a number in that range."
    )
    assert error.message("zh") == "层数：0 超出 1 到 1,024 的范围。请输入范围内的数。"


def test_an_error_of_a_configuration_names_the_key_to_look_at():
    error = ConfigError("error.empty", field="num_hidden_layers", lowest=1, highest=2)
    assert error.field == "num_hidden_layers"
    assert str(error).startswith("num_hidden_layers: ")
