"""Changes real configurations at random and reads them: always a plan or a typed refusal.

    python tests/fuzz.py --count 100000 [--seed 0]

Prints how many of each outcome there were; stops with a traceback, the seed and the text at the first one
that is neither. `python3 build.py fuzz` runs it; the tests run a part of it.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from calculator import outline  # noqa: E402 - found on the path set above
from calculator.engine_view import engine_views  # noqa: E402
from calculator.errors import ConfigError, LimitError  # noqa: E402
from calculator.hf_config import read_config  # noqa: E402
from calculator.hf_config.layer_pattern import SUPERSEDED, WORDS  # noqa: E402
from calculator.hf_config.mechanisms import MECHANISMS  # noqa: E402
from calculator.locales import LANGUAGES, text  # noqa: E402
from calculator.serving import SGLANG, VLLM, Serving  # noqa: E402

CONFIGS = ROOT / "tests" / "hf_config" / "configs"
ENGINES = (Serving(engine=VLLM), Serving(engine=SGLANG))
LONGEST_MESSAGE = 900
KEYS = sorted(
    {
        *MECHANISMS,
        *SUPERSEDED,
        "text_config",
        "thinker_config",
        "quantization_config",
        "head_dim",
        "num_key_value_heads",
        "num_kv_heads",
        "new_decoder_architecture",
        "use_mla",
        "use_sliding_window",
        "model_type",
        "swa_v_head_dim",
        "global_head_dim",
        "no_rope_layers",
        "mamba_ssm_dtype",
        "num_nextn_predict_layers",
        "num_mtp_modules",
        "mtp_layers_block_type",
        "latent_size",
        "<b>window</b>",
    }
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 3, 7, 64, 128, 512, 1023, 1025, 4096, 131072, -1, -128),
    *(2**31, 2**53, 2**64, 10**400, -(10**400), 0.5, -0.0, 1e308, float("nan"), float("inf"), -float("inf")),
    *(
        "",
        "8",
        "auto",
        "llama",
        "<script>alert(1)</script>",
        "\u202e\n\x00",
        "\ud800",
        "x" * 5000,
        "LLLG",
        "M*-E",
    ),
    *(
        [],
        {},
        [None],
        [0],
        [1] * 80,
        [[]],
        {"": {}},
        {"02": {"head_dim": 64}},
        {"attention": {"no_op": True}},
    ),
    *({"kv_n_heads": 2}, {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}, {"num_heads": 4}),
)
Config = dict[str, Any]


def load() -> list[Config]:
    """The test data: configurations as published, without keys that no cache depends on."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(CONFIGS.rglob("*.json"))]


def places(config: Config) -> list[Config]:
    """The objects of a configuration, itself first."""
    found, waiting = [], [config]
    while waiting and len(found) < 50:
        place = waiting.pop()
        found.append(place)
        for value in place.values():
            if isinstance(value, dict):
                waiting.append(value)
            if isinstance(value, list):
                waiting += [entry for entry in value[:3] if isinstance(entry, dict)]
    return found


def odd(rng: random.Random) -> object:
    """One of the odd values, for this configuration alone."""
    return deepcopy(rng.choice(ODD))


def drop(rng: random.Random, place: Config, key: str) -> None:
    del place[key]


def rename(rng: random.Random, place: Config, key: str) -> None:
    place[rng.choice([*KEYS, key.upper(), key + "s", ""])] = place.pop(key)


def replace(rng: random.Random, place: Config, key: str) -> None:
    place[key] = odd(rng)


def add(rng: random.Random, place: Config, key: str) -> None:
    place[rng.choice(KEYS)] = rng.choice([odd(rng), deepcopy(place[key])])


def negate(rng: random.Random, place: Config, key: str) -> None:
    value = place[key]
    place[key] = not value if isinstance(value, bool) else -value if isinstance(value, int | float) else None


def retype(rng: random.Random, place: Config, key: str) -> None:
    value = place[key]
    place[key] = rng.choice([str(value)[:50], [value], {"value": value}, value == value])


def scale(rng: random.Random, place: Config, key: str) -> None:
    value = place[key]
    if isinstance(value, int):
        place[key] = value * rng.choice([2, 3, 1000, 2**40, 10**300]) + rng.choice([0, 0, 1, -1])


def stretch(rng: random.Random, place: Config, key: str) -> None:
    value = place[key]
    if isinstance(value, list):
        place[key] = rng.choice([value * 2, value[:-1], [*value, *value[-1:]], [], value[::-1]])


def fill(rng: random.Random, place: Config, key: str) -> None:
    place[key] = [
        rng.choice([*WORDS, 0, 1, 4, 128, None, "", {}, []]) for _ in range(rng.choice([3, 28, 32, 48, 80]))
    ]


def edit(rng: random.Random, place: Config, key: str) -> None:
    value = place[key]
    if isinstance(value, list) and value:
        value[rng.randrange(len(value))] = rng.choice([odd(rng), *WORDS])


def nest(rng: random.Random, place: Config, key: str) -> None:
    inner = dict(place)
    place.clear()
    place |= {"model_type": inner.get("model_type"), rng.choice(["text_config", "llm_config", key]): inner}


CHANGES: tuple[Callable[[random.Random, Config, str], None], ...] = (
    *(drop, rename, replace, add, negate, retype, scale, stretch, fill, edit, nest),
)


def mutated(rng: random.Random, configs: list[Config]) -> Config:
    """One configuration after one to four changes."""
    config: Config = json.loads(json.dumps(rng.choice(configs)))
    for _ in range(rng.randint(1, 4)):
        place = rng.choice([found for found in places(config) if found] or [config])
        if place:
            rng.choice(CHANGES)(rng, place, rng.choice(list(place)))
    return config


def damaged(rng: random.Random, config: Config) -> str | bytes:
    """Its text, mostly as it is."""
    written = json.dumps(config, ensure_ascii=rng.random() < 0.5)
    match rng.randrange(12):
        case 0:  # a key twice
            return written.replace("{", '{"model_type": 1, "model_type": 2, ', 1)
        case 1:  # cut off
            return written[: rng.randrange(len(written))]
        case 2:  # deep
            return "[" * rng.choice([10, 5000, 100_000]) + written
        case 3:  # not UTF-8
            encoded = written.encode("utf-8", "surrogatepass")
            at = rng.randrange(len(encoded))
            return encoded[:at] + bytes([rng.randrange(128, 256)]) + encoded[at:]
        case 4:  # too large
            return written + " " * 10**6
        case 5:
            return written.encode("utf-8", "surrogatepass")
    return written


def outcome(source: Config | str | bytes, *, draft_layers: bool, engines: bool = False) -> str:
    """`plan`, or the kind of refusal; with `engines`, also how each of them answers.

    Raises:
        AssertionError: an outcome that says too little, or says it in more than short plain text.
        Exception: what must never happen.
    """
    try:
        plan = read_config(source, draft_layers=draft_layers)
        lines = [line for language in LANGUAGES for line in outline.report(plan, language)]
        json.dumps(outline.as_json(plan), allow_nan=False)
        for view in engine_views(plan, outline.STORAGE, ENGINES if engines else ()):
            lines += view.report("en")
            json.dumps(view.as_json(), allow_nan=False)
    except LimitError:
        return "too many bytes"
    except ConfigError as refusal:
        check_refusal(refusal)
        return refusal.key
    assert plan.layers
    assert all(line.isprintable() for line in lines)  # as long as the layers' numbers are
    names = {name.rpartition(".")[2] for name in plan.provenance}
    assert all(size in names for cache in plan.caches() for size in outline.sizes(cache))
    for key, values in plan.warnings:
        check_line(text("en", key, **values))
    return "plan, with warnings" if plan.warnings else "plan"


def check_refusal(refusal: ConfigError) -> None:
    """A sentence in every language that names the key."""
    assert refusal.field
    for language in LANGUAGES:
        check_line(refusal.message(language))
        assert refusal.field in refusal.message(language)


def check_line(line: str) -> None:
    """One short line of printable text."""
    assert line.isprintable(), line
    assert len(line) < LONGEST_MESSAGE, line
    line.encode()


def run(count: int, seed: int) -> Counter[str]:
    """The outcomes of `count` changed configurations; number i depends on seed and i alone."""
    configs, outcomes = load(), Counter[str]()
    for number in range(count):
        rng = random.Random(f"{seed}/{number}")
        config = mutated(rng, configs)
        source = config if rng.random() < 0.4 else damaged(rng, config)
        try:
            drafts, engines = rng.random() < 0.3, rng.random() < 0.1
            outcomes[outcome(source, draft_layers=drafts, engines=engines)] += 1
        except BaseException:
            print(f"seed {seed}, number {number}: {source!r:.2000}", file=sys.stderr)
            raise
    return outcomes


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description="Reads changed configurations: a plan or a typed refusal.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    outcomes = run(options.count, options.seed)
    for name, number in outcomes.most_common():
        print(f"{number:8,}  {name}")
    seconds = time.monotonic() - start
    print(f"{outcomes.total():8,}  in {seconds:.0f} s: every one a plan or a typed refusal")


if __name__ == "__main__":
    main()
