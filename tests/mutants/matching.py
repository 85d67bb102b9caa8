"""Words of a function's source, found whatever its local variables are called.

Source and words are compared token by token: they need not be a whole expression (`!= 1`), and spaces, line breaks and
comments do not count. A name in the words stands for itself where the function still has it; another name stands for
one local variable, the same throughout, and no two for the same. What is put in place of the words is written with the
function's own names.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pygments.lexers.python import PythonLexer
from pygments.token import Comment


class _Token(NamedTuple):
    start: int
    text: str


def edited(source: str, old: str, new: str, free: Collection[str] = ()) -> str:
    """The source of a function with words changed. LookupError where they do not occur exactly once.

    `free` are the variables of functions around it.
    """
    tokens, words = _tokens(source), _tokens(old)
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name | ast.arg)]
    places, present = _local_places(source, nodes, free), {_name(node) for node in nodes}
    found = [
        (i, names)
        for i in range(len(tokens) - len(words) + 1)
        if (names := _matched(words, tokens[i : i + len(words)], places, present)) is not None
    ]
    if not words or len(found) != 1:
        raise LookupError(f"{old!r} occurs {len(found)} times in {source.splitlines()[0]!r}")
    [(first, names)] = found
    last = tokens[first + len(words) - 1]
    start, end = tokens[first].start, last.start + len(last.text)
    # Spaces around the words are part of them where the source has them.
    before, after = len(old) - len(old.lstrip()), len(old) - len(old.rstrip())
    start -= before if source[start - before : start].isspace() else 0
    end += after if source[end : end + after].isspace() else 0
    keywords = {w.text for w, t in zip(words, tokens[first:], strict=False) if t.start not in places}
    return source[:start] + _renamed(new, names, keywords) + source[end:]


def _matched(
    words: Sequence[_Token],
    tokens: Sequence[_Token],
    places: Collection[int],
    present: Collection[str],
) -> Mapping[str, str] | None:
    """What the names in the words are called in the source; None where that says something else."""
    names: dict[str, str] = {}
    for word, token in zip(words, tokens, strict=True):
        if token.start not in places:
            if word.text != token.text:
                return None
            continue
        if word.text != token.text and (not _is_name(word.text) or word.text in present):
            return None
        if names.setdefault(word.text, token.text) != token.text:
            return None
    return names if len({*names.values()}) == len(names) else None


def _renamed(new: str, names: Mapping[str, str], keywords: Collection[str]) -> str:
    """Words with other names of variables. Attributes stay, and keywords of calls (`x=`)."""
    tokens, depth = _tokens(new), 0
    texts: list[str] = []
    end = 0
    for i, (start, text) in enumerate(tokens):
        depth += (text in "([{") - (text in ")]}")
        is_attribute = i > 0 and tokens[i - 1].text == "."
        is_keyword = i + 1 < len(tokens) and tokens[i + 1].text == "=" and (depth > 0 or text in keywords)
        texts += new[end:start], text if is_attribute or is_keyword else names.get(text, text)
        end = start + len(text)
    return "".join((*texts, new[end:]))


def _local_places(source: str, nodes: Sequence[ast.Name | ast.arg], free: Collection[str]) -> set[int]:
    """Where a function's source names its parameters and variables, those of functions in it included."""
    local = {_name(node) for node in nodes if isinstance(node, ast.arg) or isinstance(node.ctx, ast.Store)}
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    return {
        starts[node.lineno - 1] + len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
        for node in nodes
        if _name(node) in local or _name(node) in free
    }


def _name(node: ast.Name | ast.arg) -> str:
    return node.id if isinstance(node, ast.Name) else node.arg


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _tokens(text: str) -> list[_Token]:
    return [*_split(text)]


def _split(text: str) -> Iterator[_Token]:
    """What is neither space nor comment, and where it starts."""
    for start, kind, found in PythonLexer().get_tokens_unprocessed(text):
        if kind not in Comment and (bare := found.strip()):
            yield _Token(start + found.index(bare), bare)


__all__ = ["edited"]
