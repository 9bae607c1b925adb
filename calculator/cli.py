"""The command line: `python -m calculator estimate --model deepseek-v3 --tensor-parallel-size 8`."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from . import catalogue, outline
from .allocation import DIFFERENCE, Allocated
from .catalogue import writing
from .changed import comparisons
from .check import check
from .comparison import comparison, comparison_json
from .engine_view import engine_views
from .errors import CalculatorError, FieldError
from .estimate import Estimate, estimate
from .fields import FIELDS, VIEW_FIELDS, Choice
from .footprint import QUANTITIES
from .formats import FORMATS, KV_FORMATS, Storage
from .hf_config import LARGEST_BYTES, families, read_config
from .locales import LANGUAGES, text
from .scenario import Scenario, open_address
from .serving import VERSIONS, Serving
from .units import exact, human

COMPARISON = ("compare_tokens", "compared", "pins")
_SHOWN = {"model": "ID", "config": "FILE", "layers": "TEXT", "overrides": "TEXT", "own_name": "TEXT"}
_SHOWN |= {"compared": "ID,ID", "pins": "TEXT"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 2 where the input was refused, with one sentence on stderr.

    It is 1 where cases differ, and where whoever read the output, like `head`, has closed it.
    """
    options = _parser().parse_args(arguments)
    try:
        code = _run(options)
        sys.stdout.flush()
    except CalculatorError as error:
        print(error.message(options.language), file=sys.stderr)
        return 2
    except BrokenPipeError:
        # What is still buffered goes nowhere, or Python complains about it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run(options: argparse.Namespace) -> int:
    """The command that was chosen, and its exit code."""
    if options.command == "models":
        return _models()
    if options.command == "entry":
        return _entry(options)
    if options.command == "address":
        return _address()
    if options.command == "check":
        return max(_check(path, options.configs) for path in options.files)
    if options.command == "families":
        print("\n".join(outline.families_table(families.differences(), len(families.known_types()))))
        return 0
    if options.command == "plan":
        return _plan(options)
    if options.command == "changed":
        return _changed(options)
    if options.command == "compare":
        return _compare(options)
    return _estimate(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m calculator", description=text("en", "cli.about"))
    parser.add_argument("--language", choices=LANGUAGES, default="en", help=text("en", "cli.language"))
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("models", help=text("en", "cli.models"))
    commands.add_parser("address", help=text("en", "cli.address_keys"))
    cases = commands.add_parser("check", help=text("en", "cli.check"))
    cases.add_argument("files", nargs="+", type=Path, metavar="FILE")
    cases.add_argument("--configs", type=Path, metavar="DIR", help=text("en", "cli.configs"))
    commands.add_parser("families", help=text("en", "cli.families"))
    plan = commands.add_parser("plan", help=text("en", "cli.plan"))
    plan.add_argument("file", type=Path, metavar="FILE", help=text("en", "cli.plan_file"))
    plan.add_argument("--json", action="store_true", help=text("en", "cli.plan_json"))
    plan.add_argument("--draft-layers", action="store_true", help=text("en", "cli.plan_drafts"))
    plan.add_argument(
        "--kv-cache-dtype", choices=KV_FORMATS, default=KV_FORMATS[0], help=text("en", "cli.plan_format")
    )
    for engine, versions in VERSIONS.items():
        if versions:
            plan.add_argument(
                f"--{engine}-version",
                choices=versions,
                default=versions[-1],
                help=text("en", "cli.plan_version"),
            )
    made = commands.add_parser("entry", help=text("en", "cli.entry"))
    made.add_argument("file", type=Path, metavar="FILE", help=text("en", "cli.plan_file"))
    made.add_argument("--hub-id", required=True, help=text("en", "cli.entry_hub_id"))
    made.add_argument("--source", required=True, help=text("en", "cli.entry_source"))
    known = ", ".join(catalogue.CONFIDENCES)
    made.add_argument("--confidence", default="exact", help=text("en", "cli.entry_confidence", options=known))
    made.add_argument("--id", help=text("en", "cli.entry_id"))
    made.add_argument("--name", help=text("en", "cli.entry_name"))
    made.add_argument("--maker", help=text("en", "cli.entry_maker"))
    made.add_argument("--date", metavar="YYYY-MM-DD", help=text("en", "cli.entry_date"))
    for name, key in (("estimate", "cli.estimate"), ("changed", "cli.changed")):
        _add_scenario(commands.add_parser(name, help=text("en", key)))
    _add_scenario(commands.add_parser("compare", help=text("en", "cli.compare")), *COMPARISON)
    return parser


def _add_scenario(answer: argparse.ArgumentParser, *more: str) -> None:
    """The options of a command that is about a scenario; `more` are fields of its view."""
    answer.add_argument("--address", default="", help=text("en", "cli.address"))
    answer.add_argument("--json", action="store_true", help=text("en", "cli.json"))
    for name in FIELDS:
        if name not in VIEW_FIELDS or name in ("units", *more):
            _add_field(answer, name)


def _add_field(command: argparse.ArgumentParser, name: str) -> None:
    rule = FIELDS[name].rule
    shown = "{" + ",".join(rule.options) + "}" if type(rule) is Choice else _SHOWN.get(name, "N")
    option = f"--{name.replace('_', '-')}"
    read = Path if name == "config" else str
    command.add_argument(option, metavar=shown, dest=name, type=read, help=text("en", f"field.{name}"))


def _models() -> int:
    entries = [catalogue.entry(name) for name in catalogue.ids()]
    widths = {field: max(len(getattr(entry, field)) for entry in entries) for field in ("id", "hub_id")}
    for entry in entries:
        print(f"{entry.id:{widths['id']}}  {entry.hub_id:{widths['hub_id']}}  {entry.source}")
    return 0


def _entry(options: argparse.Namespace) -> int:
    names = ("hub_id", "source", "confidence", "date", "id", "name", "maker")
    made = writing.new_entry(options.file, **{name: getattr(options, name) for name in names})
    print(writing.as_file(made))
    return 0


def _address() -> int:
    """The table of the address keys, as it stands in the README."""
    print("| key | field | values |\n|---|---|---|")
    for name, item in FIELDS.items():
        print(f"| `{item.key}` | {text('en', f'field.{name}')} (`{name}`) | {item.rule.words} |")
    return 0


def _plan(options: argparse.Namespace) -> int:
    source = sys.stdin.buffer.read(LARGEST_BYTES + 1) if str(options.file) == "-" else options.file
    plan = read_config(source, draft_layers=options.draft_layers)
    storage = Storage(kv=FORMATS[options.kv_cache_dtype])
    servings = (
        Serving(engine=engine, engine_version=getattr(options, f"{engine}_version"))
        for engine, versions in VERSIONS.items()
        if versions
    )
    views = list(engine_views(plan, storage, servings))
    if options.json:
        engines = {"engines": [view.as_json() for view in views]}
        print(json.dumps(outline.as_json(plan, storage) | engines, ensure_ascii=False))
    else:
        lines = [line for view in views for line in view.report(options.language)]
        print("\n".join([*outline.report(plan, options.language, storage), *lines]))
    return 0


def _check(path: Path, configs: Path | None) -> int:
    """One line per difference, totals by kind; 1 where anything differs."""
    report = check(path, configs)
    for found in report.differences:
        print(f"{found.case}: {found.field}: expected {found.expected}, got {found.got}")
    for kind, count in sorted(report.cases.items()):
        print(f"{kind:24}{count - report.failed[kind]:6} of {count}")
    passed, total = report.cases.total() - report.failed.total(), report.cases.total()
    print(f"{report.engine} {report.version}: {passed} of {total} cases of {path}")
    return int(passed < total)


def _compare(options: argparse.Namespace) -> int:
    """One line for each model: name, bytes per token, windows, states, total."""
    scenario = _scenario(options)
    if options.json:
        print(json.dumps(comparison_json(scenario), ensure_ascii=False))
        return 0
    found = comparison(scenario)
    names = {one.key: one.name or text(options.language, "compare.this") for one in found}
    width = max(map(len, names.values()), default=0)
    for one in found:
        if one.weighed is None or one.parts is None:
            print(f"{names[one.key]:{width}}  {one.refusal and one.refusal.message(options.language)}")
        else:
            rates = (one.weighed.bytes_per_token, one.weighed.bounded_bytes, one.weighed.constant_bytes)
            cells = (f"{exact(amount):>18}" for amount in (*rates, one.parts.total))
            print(f"{names[one.key]:{width}}{''.join(cells)}  {human(one.parts.total, scenario.units)}")
    return 0


def _estimate(options: argparse.Namespace) -> int:
    answer = estimate(_scenario(options))
    if options.json:
        print(json.dumps(answer.as_json(), ensure_ascii=False))
    else:
        print(_report(answer, options.language))
    return 0


def _changed(options: argparse.Namespace) -> int:
    """What the newest version of the engine makes otherwise."""
    answer = estimate(_scenario(options))
    found = comparisons(answer.scenario, answer.plan)
    if options.json:
        print(json.dumps([one.as_json() for one in found], ensure_ascii=False))
    else:
        print("\n".join(line for one in found for line in one.report(options.language)))
    return 0


def _scenario(options: argparse.Namespace) -> Scenario:
    given = {name: getattr(options, name) for name in FIELDS if getattr(options, name, None) is not None}
    return _start(options.address).changed(given)


def _start(address: str) -> Scenario:
    """The scenario of an address, strictly: on the command line nothing is replaced or left out."""
    opened = open_address(address)
    unknown = (FieldError("error.unknown", field="address", value=key) for key in opened.unknown)
    for problem in (*opened.problems, *unknown):
        raise problem
    return opened.scenario


def _report(answer: Estimate, language: str) -> str:
    units = answer.scenario.units
    lines = []
    for scope, amounts in (("per_rank", answer.per_rank), ("whole_model", answer.whole_model)):
        for name in QUANTITIES:
            formula = getattr(amounts, name)
            title = f"{text(language, f'scope.{scope}')}, {text(language, f'quantity.{name}')}"
            lines.append(f"{title}: {exact(formula.value)} B = {human(formula.value, units)}")
            lines.append(f"    {formula.symbols} = {formula.numbers}")
    if answer.allocated:
        lines += _allocated(answer.allocated, language, units)
    lines += [text(language, key, **values) for key, values in answer.notices()]
    return "\n".join(lines)


def _allocated(found: Allocated, language: str, units: str) -> Iterator[str]:
    """What the engine makes of it, and where the difference comes from."""
    engine = text(language, f"option.engine.{found.engine}")
    yield text(language, "engine.title", engine=engine, version=found.version)
    for name in QUANTITIES:
        amount = getattr(found.per_rank, name).value
        yield f"  {text(language, f'quantity.{name}')}: {exact(amount)} B = {human(amount, units)}"
    for figure in (*found.capacity, *found.transfer):
        yield f"  {text(language, f'figure.{figure.name}')}: {exact(figure.value.value)}"
    if found.difference:
        yield f"  {text(language, 'engine.parts')}:"
    for part in found.difference:
        amounts = (
            f"{text(language, f'quantity.{name}')} {exact(getattr(part, name).value)} B"
            for name in DIFFERENCE
        )
        yield f"    {text(language, f'part.{part.reason}')}: {', '.join(amounts)}"
