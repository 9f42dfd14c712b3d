"""Content digest of the code that a stage consists of: the stage's modules and all that they import from this package.

Snakemake's own `code` trigger goes by the script's mtime and does not see imported modules. Here comments and blank
lines do not count, everything else does; nothing depends on the Python version, the place of the files or their dates.
"""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

STAGES: dict[str, tuple[str, ...]] = {
    "prompts": ("prompts",),
    "checkpoint": ("checkpoints",),
    "measure": ("session.measure",),
    "session": ("session.run",),
    "compare": ("analysis.compare", "analysis.tables"),
    "decide": ("analysis.decision",),
    "report": ("report.html", "report.prometheus"),
    "bundle": ("bundle.pack",),
}
"""Stage -> the modules (or packages) that define it. `measure` is what a number in a cell depends on and so enters the
cell's key; `session` is everything that writes a session's files: it may rerun the job, but measures nothing again."""

ASSETS = {"report.html": "report/assets"}
"""Module -> folder of files that are no Python and yet part of what it does."""


def digest(stage: str) -> str:
    """sha256 over the normalised sources of the stage, by module name. KeyError for an unknown stage."""
    seen: dict[str, str] = {}
    for name in STAGES[stage]:
        for module in _modules(name):
            _collect(module, seen)
    text = "\n".join(f"{name} {seen[name]}" for name in sorted(seen))
    return hashlib.sha256(text.encode()).hexdigest()


def modules(stage: str) -> list[str]:
    """Names of the modules that the stage's digest covers, sorted."""
    seen: dict[str, str] = {}
    for name in STAGES[stage]:
        for module in _modules(name):
            _collect(module, seen)
    return sorted(seen)


def _file(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    if base.is_dir():
        return base / "__init__.py"
    path = base.with_suffix(".py")
    return path if path.exists() else None


def _modules(name: str) -> list[str]:
    """The module, or every module of the package."""
    folder = PACKAGE.joinpath(*name.split("."))
    if not folder.is_dir():
        return [name]
    return [
        ".".join((name, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
    ]


def _collect(module: str, seen: dict[str, str]) -> None:
    if module in seen:
        return
    path = _file(module)
    if path is None:
        return
    seen[module], imports = _read(path, module)
    for asset in sorted((PACKAGE / ASSETS[module]).iterdir()) if module in ASSETS else []:
        seen[f"{module}/{asset.name}"] = hashlib.sha256(asset.read_bytes()).hexdigest()
    for name in imports:
        _collect(name, seen)


@cache
def _read(path: Path, module: str) -> tuple[str, tuple[str, ...]]:
    source = path.read_text(encoding="utf-8")
    return hashlib.sha256(normalised(source).encode()).hexdigest(), tuple(_imports(source, module, path))


def normalised(source: str) -> str:
    """The source without comments, blank lines and trailing spaces."""
    lines = source.splitlines()
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _imports(source: str, module: str, path: Path) -> list[str]:
    """Modules of this package that the source imports, also inside functions; type-only imports do not count."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[str] = []
    for node in _walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                parts = package.split(".") if package else []
                base = ".".join(parts[: len(parts) - node.level + 1])
                origin = ".".join(p for p in (base, node.module or "") if p)
            elif node.module and node.module.split(".")[0] == PACKAGE.name:
                origin = node.module.partition(".")[2]
            else:
                continue
            found.extend(_targets(origin, [alias.name for alias in node.names]))
        elif isinstance(node, ast.Import):
            found.extend(a.name.partition(".")[2] for a in node.names if a.name.split(".")[0] == PACKAGE.name)
    return [name for name in found if name]


def _targets(origin: str, names: list[str]) -> list[str]:
    """`from x import y`: y may be a module of x, or a name inside x."""
    out = [origin]
    for name in names:
        candidate = f"{origin}.{name}" if origin else name
        if _file(candidate) is not None:
            out.append(candidate)
    return out


def _walk(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING:`."""
    out: list[ast.AST] = []
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop(0)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            queue.extend(node.orelse)
            continue
        out.append(node)
        queue.extend(ast.iter_child_nodes(node))
    return out
