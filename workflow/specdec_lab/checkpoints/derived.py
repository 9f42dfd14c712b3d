"""A checkpoint made from another one by a recipe: whole or not there at all, and named by its source and recipe."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath

from ..records.base import digest
from ..records.errors import UserError
from .checkpoint import Checkpoint, cache_dir, writable_cache


@dataclass(frozen=True)
class Recipe:
    """How the files come out of a source.

    Attributes:
        suffix: what the made thing is called after the source's stem; a file's extension makes it a file.
        words: what was done, for people ("dequantised to bfloat16").
        version: raise it when the files that come out would differ.
        key: names the recipe in the digest.
        main: the file in the folder that the checkpoint's path must hold; None if the folder itself is the path.
        write: makes the files of a source in an empty folder.
    """

    suffix: str
    words: str
    version: int
    key: str
    main: str | None
    write: Callable[[Path, Path], None]

    def digest(self, source_digest: str) -> str:
        """The same files on every machine have the same digest, without reading them."""
        return digest({"gguf": source_digest, self.key: self.version})


def place(recipe: Recipe, source: PurePath, source_digest: str) -> PurePosixPath:
    """What the recipe makes of a source, in the cache: a file or a folder."""
    folder = PurePosixPath("models", f"{source.stem}-{recipe.suffix}-{recipe.digest(source_digest)[:12]}")
    return folder / recipe.main if recipe.main else folder


def _folder(recipe: Recipe, source: Path, source_digest: str) -> Path:
    made = cache_dir() / place(recipe, source, source_digest)
    return made.parent if recipe.main else made


def _checkpoint(recipe: Recipe, folder: Path, source: Path, source_digest: str) -> Checkpoint:
    return Checkpoint(
        path=folder / recipe.main if recipe.main else folder,
        digest=recipe.digest(source_digest),
        size_bytes=sum(file.stat().st_size for file in folder.iterdir()),
        origin=f"{source.name}, {recipe.words}",
    )


def locate(recipe: Recipe, source: Path, source_digest: str) -> Checkpoint:
    """What was made earlier; UserError (code `not_fetched`) if nothing was."""
    folder = _folder(recipe, source, source_digest)
    if not folder.is_dir():
        raise UserError(
            f"{source.name} was not {recipe.words} yet",
            place=str(folder),
            fix="run the checkpoint step first (Snakemake does it by itself)",
            code="not_fetched",
        )
    return _checkpoint(recipe, folder, source, source_digest)


def make(recipe: Recipe, source: Path, source_digest: str, *, say: Callable[[str], None]) -> Checkpoint:
    """The checkpoint, made now if it is not there."""
    folder = _folder(recipe, source, source_digest)
    if not folder.is_dir():
        say(f"{source.name}: being {recipe.words}")
        work = Path(tempfile.mkdtemp(dir=writable_cache("models"), prefix=".make-"))
        try:
            recipe.write(source, work)
            work.chmod(0o755)
            work.replace(folder)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return _checkpoint(recipe, folder, source, source_digest)
