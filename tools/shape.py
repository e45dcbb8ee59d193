"""Figures of the tree's shape: sizes, folders, import cycles, wide constructors, duplicates, the walks of a request.

    python -m tools.shape [TREE]

TREE is a source tree of millbeck, this one if none is given. A walk is what one request passes through in a broker that
runs on Python files (`walks`); a change of package or of file is counted between one call and the next.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
SMALL_LINES: Final = 50
WIDE_ARGUMENTS: Final = 8
SHOWN: Final = 8
DUPLICATE_LINES: Final = 8
DUPLICATE_SIMILARITY: Final = 0.8
RUN_OF_WORDS: Final = 5
LONG_TEXT: Final = 80
COMMON_RUN: Final = 40
"""A run of words in more functions than this says nothing about their similarity."""


@dataclass(frozen=True)
class Module:
    path: Path
    name: str
    """Dotted: ``millbeck.kernel.errors``; a package has its own name."""

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return parsed(self.path)

    @property
    def root(self) -> Path:
        """The folder of the top package."""
        return self.path.parents[self.name.count(".") + (self.path.name == "__init__.py")]

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def code_lines(self) -> int:
        """Lines with code: neither blank, nor comments, nor docstrings."""
        prose: set[int] = set()
        for node in ast.walk(self.tree):
            for statement in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
                if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                    prose.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        return sum(
            bool(line.strip()) and not line.lstrip().startswith("#") and number not in prose
            for number, line in enumerate(self.text.split("\n"), 1)
        )

    def imports(self, *, for_types: bool) -> Iterator[str]:
        """The modules that are imported when this one is, and with ``for_types`` those imported for annotations."""
        yield from self._imports(self.tree.body, for_types)

    def _imports(self, body: Iterable[ast.stmt], for_types: bool) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                parts = self.name.split(".")
                above = parts[: len(parts) - node.level + (self.path.name == "__init__.py")] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    is_module = _is_module(self.root, base, alias.name)
                    yield f"{base}.{alias.name}" if is_module else base
            elif isinstance(node, ast.If):
                if for_types or "TYPE_CHECKING" not in ast.dump(node.test):
                    yield from self._imports(node.body, for_types)
                yield from self._imports(node.orelse, for_types)
            elif isinstance(node, ast.Try):
                yield from self._imports([*node.body, *node.orelse, *node.finalbody], for_types)

    def wide_constructors(self) -> Iterator[tuple[int, str]]:
        """Constructors of more than `WIDE_ARGUMENTS` arguments besides ``self``.

        Not those that only store their arguments: a data class in all but name. Compiled, one written out is created
        in 35 ns, and one made by `dataclasses`, whose constructor stays interpreted, in 300.
        """
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for function in node.body:
                if isinstance(function, ast.FunctionDef) and function.name == "__init__":
                    arguments = function.args
                    count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs) - 1
                    if count > WIDE_ARGUMENTS and not _only_stores(function):
                        yield count, f"{self.name}.{node.name}"


@cache
def parsed(path: Path) -> ast.Module:
    """The tree of a file, parsed once in a process: that takes most of the time of everything here."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def _is_module(root: Path, package: str, name: str) -> bool:
    return (root / package.replace(".", "/") / f"{name}.py").exists()


def _only_stores(constructor: ast.FunctionDef) -> bool:
    """Whether every statement is ``self.name = name``, or the docstring."""
    return all(
        (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        or (
            isinstance(each, ast.Assign)
            and isinstance(target := each.targets[0], ast.Attribute)
            and isinstance(each.value, ast.Name)
            and target.attr == each.value.id
        )
        for each in constructor.body
    )


def modules_under(tree: Path, folder: str, top: str) -> list[Module]:
    found = []
    for path in sorted((tree / folder).rglob("*.py")):
        parts = [top, *path.relative_to(tree / folder).with_suffix("").parts]
        found.append(Module(path, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)))
    return found


def cycles(modules: Iterable[Module], *, for_types: bool) -> list[list[str]]:
    """The groups of modules that import each other in a circle, largest first."""
    by_name = {module.name: module for module in modules}
    graph = {}
    for name, module in by_name.items():
        imported = dict.fromkeys(module.imports(for_types=for_types))
        graph[name] = [each for each in imported if each in by_name and each != name]
    return sorted((group for group in _components(graph) if len(group) > 1), key=len, reverse=True)


def _components(graph: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(graph[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            name, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(graph[other])))
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    group = stack[stack.index(name) :]
                    del stack[-len(group) :]
                    on_stack.difference_update(group)
                    yield group


@dataclass(frozen=True, eq=False)
class Function:
    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef

    @property
    def shown(self) -> str:
        return f"{self.module.name}.{self.node.name}"

    @property
    def body(self) -> list[ast.stmt]:
        """Without the docstring."""
        first = self.node.body[0]
        is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        return self.node.body[1:] if is_docstring else self.node.body

    @property
    def lines(self) -> int:
        return sum((each.end_lineno or each.lineno) - each.lineno + 1 for each in self.body)

    def contains(self, other: Function) -> bool:
        return self.module is other.module and any(node is other.node for node in ast.walk(self.node))

    @cached_property
    def runs(self) -> Counter[tuple[str, ...]]:
        """Each run of words of the body, where all local names are one word, and all constants of a type."""
        local = {each.arg for each in ast.walk(self.node) if isinstance(each, ast.arg)}
        stored = (each for each in ast.walk(self.node) if isinstance(each, ast.Name))
        local |= {each.id for each in stored if isinstance(each.ctx, ast.Store)}
        words = [word for statement in self.body for word in _words(statement, local)]
        return Counter(tuple(words[index : index + RUN_OF_WORDS]) for index in range(len(words) - RUN_OF_WORDS + 1))


def _words(node: ast.AST, local: set[str]) -> Iterator[str]:
    match node:
        case ast.Name():
            yield "local" if node.id in local else node.id
        case ast.Constant():
            # A long text is the point of a function, as the program that a test runs.
            yield type(node.value).__name__ if len(str(node.value)) < LONG_TEXT else str(node.value)
        case ast.arg():
            yield "local"
        case _:
            yield type(node).__name__
            yield from (str(getattr(node, name)) for name in ("attr", "arg") if hasattr(node, name))
            for name, value in ast.iter_fields(node):
                if name not in ("annotation", "returns", "ctx", "decorator_list"):
                    for each in value if isinstance(value, list) else [value]:
                        if isinstance(each, ast.AST):
                            yield from _words(each, local)


def duplicates(modules: Iterable[Module]) -> list[tuple[float, Function, Function]]:
    """Pairs of functions that are the same but for names and constants, or nearly so.

    Functions shorter than `DUPLICATE_LINES`, or of a single statement, which is a list of values, are left out.
    """
    functions = [
        function
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (function := Function(module, node)).lines >= DUPLICATE_LINES
        and len(function.body) > 1
    ]
    by_run: dict[tuple[str, ...], list[int]] = {}
    for index, function in enumerate(functions):
        for run in function.runs:
            by_run.setdefault(run, []).append(index)
    pairs = {pair for found in by_run.values() if len(found) <= COMMON_RUN for pair in combinations(found, 2)}
    sizes = [function.runs.total() for function in functions]
    result = []
    for first, second in pairs:
        # Of sets whose sizes differ by more, too little can be common.
        if min(sizes[first], sizes[second]) < DUPLICATE_SIMILARITY * max(sizes[first], sizes[second]):
            continue
        one, other = functions[first], functions[second]
        similarity = (one.runs & other.runs).total() / (one.runs | other.runs).total()
        if similarity >= DUPLICATE_SIMILARITY and not one.contains(other) and not other.contains(one):
            result.append((similarity, one, other))
    return sorted(result, key=lambda each: (-each[0], each[1].shown))


def report(tree: Path) -> Iterator[str]:
    source = modules_under(tree, "src/millbeck", "millbeck")
    tests = modules_under(tree, "tests", "tests")
    for title, modules in (("src", source), ("tests", tests)):
        lines, code = sum(each.lines for each in modules), sum(each.code_lines for each in modules)
        yield f"{title}: {len(modules)} files, {lines} lines, {code} lines of code"
    # A file that only marks a package has no idea of its own to be too small for.
    files = [each for each in source if each.path.name != "__init__.py"]
    small = [each for each in files if each.lines < SMALL_LINES]
    yield f"files under {SMALL_LINES} lines: {len(small)} of {len(files)} ({len(small) / len(files):.1%})"
    yield from _folders(source, tree)
    for title, for_types in (("import cycles", False), ("import cycles with TYPE_CHECKING", True)):
        groups = cycles(source, for_types=for_types)
        sizes = ", ".join(str(len(group)) for group in groups) or "none"
        yield f"{title} (modules each): {sizes}"
        for group in groups:
            if len(group) > 5:
                yield f"    {len(group)}: {' '.join(sorted(name.removeprefix('millbeck.') for name in group))}"
    wide = sorted((found for each in source for found in each.wide_constructors()), reverse=True)
    yield f"constructors of more than {WIDE_ARGUMENTS} arguments: {len(wide)}"
    for count, name in wide:
        yield f"    {count} {name}"
    for title, modules in (("src", source), ("tests", tests)):
        pairs = duplicates(modules)
        yield f"duplicate pairs of functions in {title}: {len(pairs)}"
        for similarity, one, other in pairs[:SHOWN]:
            yield f"    {similarity:.2f} {one.shown} {other.shown}"


def _folders(source: list[Module], tree: Path) -> Iterator[str]:
    counts: Counter[Path] = Counter()
    lines: Counter[Path] = Counter()
    for module in source:
        counts[module.path.parent] += 1
        lines[module.path.parent] += module.lines
    for title, totals in (("files", counts), ("lines", lines)):
        most = ", ".join(f"{folder.relative_to(tree / 'src')} {total}" for folder, total in totals.most_common(SHOWN))
        yield f"{title} directly in a folder: {most}"


def report_walks(tree: Path) -> Iterator[str]:
    # Imported here: the walks need the package, the other figures need none.
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    from tools.walks import trace

    for name, walk in sorted(trace(tree).items(), reverse=True):
        changes = f"{walk.package_changes} changes of package, {walk.file_changes} of file"
        yield f"{name.removeprefix('handle_')}: {changes} in {len(walk.calls)} calls"


def main() -> None:
    tree = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    for line in report(tree):
        print(line)
    for line in report_walks(tree):
        print(line, flush=True)


if __name__ == "__main__":
    main()
