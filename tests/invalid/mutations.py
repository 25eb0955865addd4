"""Wrong input made of right input: texts with pieces cut out, doubled, swapped or replaced, and JSON values with one
part of another kind."""

from __future__ import annotations

import re
from random import Random
from typing import Any, cast

WORDS = (
    "0", "-1", "1e400", "nan", "[[", "]]", "{", "}", "(", ")", "\x00", "é", "pl.FP32", "pl.tile.add", "None", "True",
    "lambda: 0", "x" * 3000, "9" * 5000, "'", '"""', "\\", "\t", "\n", "  ", "@", "#", "=", ":=", "*", "**", "//",
    "%", "<<", "if", "for", "while", "return", "1/0", "[]", "{}", "...", "[1]*10", "pl", "self", "10**9", "1<<40", "-",
    "~", "not ", "[memory.X]", "capacity = -1", '"0 KiB"', "2024-01-01", "0x", "1_0", "true", "(" * 300, "-" * 300,
    "[" * 3000,
)  # fmt: skip
NUMBERS = ("0", "-1", "1", "99999999999999999999", "3.5", "'a'", "x", "None")
ODD: tuple[Any, ...] = (None, True, -1, 0, 1 << 70, 1.5, float("nan"), "", "x", [], {}, [[]], {"type": "x"}, "9" * 5000)


def changed_text(text: str, random: Random) -> str:
    """`text` after one to three changes."""
    for _ in range(random.randrange(1, 4)):
        text = _changed(text, random)
    return text


def _changed(text: str, random: Random) -> str:
    begin = random.randrange(len(text) + 1)
    end = min(len(text), begin + random.randrange(1, 30))
    match random.randrange(7):
        case 0:
            return text[:begin] + text[end:]
        case 1:
            return text[:begin] + random.choice(WORDS) + text[begin:]
        case 2:
            return text[:begin] + random.choice(WORDS) + text[end:]
        case 3:
            return text[:begin] + text[begin:end] * random.randrange(2, 5) + text[end:]
        case 4:
            lines = text.split("\n")
            one, two = random.randrange(len(lines)), random.randrange(len(lines))
            lines[one], lines[two] = lines[two], lines[one]
            return "\n".join(lines)
        case 5:
            return _swapped(text, r"\d+", random, list(NUMBERS))
        case _:
            return _swapped(text, r"[A-Za-z_]\w*", random, re.findall(r"[A-Za-z_]\w*", text))


def _swapped(text: str, pattern: str, random: Random, others: list[str]) -> str:
    found = list(re.finditer(pattern, text))
    if not found or not others:
        return text
    place = random.choice(found)
    return text[: place.start()] + random.choice(others) + text[place.end() :]


def changed_json(data: Any, random: Random) -> Any:
    """A copy of `data` in which one part is something else, missing, or there twice."""
    if isinstance(data, dict) and data and random.random() < 0.9:
        made = dict(cast("dict[str, Any]", data))
        name = random.choice(sorted(made))
        if random.random() < 0.1:
            made[name + "_"] = made.pop(name)
        elif random.random() < 0.1:
            del made[name]
        else:
            made[name] = changed_json(made[name], random)
        return made
    if isinstance(data, list) and data and random.random() < 0.9:
        items = list(cast("list[Any]", data))
        place = random.randrange(len(items))
        if random.random() < 0.1:
            items.append(items[place])
        else:
            items[place] = changed_json(items[place], random)
        return items
    return random.choice(ODD)
