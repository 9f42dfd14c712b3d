"""Images: found or pulled before any server starts, named by digest, locked (M9, M10, C5, E5)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from ..records.base import Record
from ..records.errors import UserError
from . import references
from .docker_engine import connect
from .docker_errors import explain, text_of

Say = Callable[[str], None]
LOCK = Path("containers/images.lock.json")
"""Where the digests are kept, from the folder that the workflow runs in."""


class Image(Record):
    """An image as the engine of this machine has it."""

    reference: str
    digest: str
    """The registry's digest; for an image that never was in a registry, its id."""
    id: str
    pulled: bool
    """Whether it had to be downloaded now."""
    labels: dict[str, str] = Field(default={}, description="Version and origin as the image states them.")


class ImageLock(Record):
    """`images.lock.json`: the digest that each tag had when it was first used. A tag may move, a digest cannot."""

    schema_version: int = 1
    images: dict[str, str] = Field(default={}, description="Reference -> digest.")

    @classmethod
    def load(cls, path: Path) -> ImageLock:
        """The lock, or an empty one if there is no file; UserError if the file is not a lock."""
        if not path.exists():
            return cls()
        try:
            return cls.read(path)
        except ValidationError as error:
            raise UserError(
                "the image lock cannot be read",
                place=str(path),
                fix="restore it, or remove it to lock anew",
                code="lock",
            ) from error

    def checked(self, image: Image) -> ImageLock:
        """This lock with the image in it; UserError (code `image_moved`) if its tag had another digest before."""
        known = self.images.get(image.reference)
        if known is not None and known != image.digest:
            raise UserError(
                f"{image.reference} is another image now: {image.digest}, locked is {known}",
                fix="their results cannot be compared: pull the locked digest, or remove the entry and measure anew",
                code="image_moved",
            )
        return ImageLock(images={**self.images, image.reference: image.digest})


def locked(reference: str, lock: Path, *, say: Say = lambda _text: None) -> Image:
    """The image of this machine's engine, pulled if needed, checked against the lock and written into it.

    A lock that cannot be written (a read-only checkout) is left as it is. An image that was built on this machine is
    not locked: building it again changes its id, and nobody else has it.
    """
    image = resolve(connect(), reference, say=say)
    if image.digest == image.id:
        return image
    known = ImageLock.load(lock)
    checked = known.checked(image)
    if checked != known:
        with contextlib.suppress(OSError):
            checked.write(lock)
    return image


def resolve(client: Any, reference: str, *, say: Say = lambda _text: None) -> Image:
    """The image, pulled if it is not here; never pulled when it is (case C5 e). UserError says why it cannot be had."""
    from docker.errors import DockerException

    try:
        found = _here(client, reference)
        pulled = found is None
        if found is None:
            say(f"pulling {reference}")
            _pull(client, reference)
            found = client.images.get(reference)
    except DockerException as error:
        raise explain(text_of(error), reference) from error
    labels = (found.attrs.get("Config") or {}).get("Labels") or {}
    return Image(
        reference=reference,
        digest=digest_of(found, reference),
        id=str(found.id),
        pulled=pulled,
        labels={k: v for k, v in labels.items() if k.startswith(("org.opencontainers.image.", "ai.vllm."))},
    )


def _here(client: Any, reference: str) -> Any | None:
    """The image if the engine has it. An image that was built here has no registry's digest: `name@sha256:...` then
    means its id."""
    from docker.errors import ImageNotFound

    for name in dict.fromkeys([reference, reference.partition("@")[2]]):
        if name:
            try:
                return client.images.get(name)
            except ImageNotFound:
                continue
    return None


def digest_of(image: Any, reference: str) -> str:
    """`sha256:...` of the registry for this repository, or what all others agree on, else the image's own id.

    A digest within the reference is the answer where a registry gave it; else it is the id of an image that was built
    here. The digest of another repository (a mirror) is never taken while the own one is there.
    """
    known = [(references.repository(one), given) for one in _listed(image) if (given := references.digest(one))]
    asked = references.digest(reference)
    if asked is not None:
        return asked if asked in (given for _, given in known) else str(image.id)
    repository = references.repository(reference)
    own = [given for where, given in known if where == repository]
    if own:
        return own[0]
    others = {given for _, given in known}
    return others.pop() if len(others) == 1 else str(image.id)


def _listed(image: Any) -> list[str]:
    return [str(one) for one in image.attrs.get("RepoDigests") or []]


def _pull(client: Any, reference: str) -> None:
    """One try. The engine reports some refusals inside a stream that ends well (case C5 d)."""
    from docker.errors import DockerException

    name, _, digest = reference.partition("@")
    has_tag = ":" in name.rpartition("/")[2]
    repository, tag = (name.rpartition(":")[0], name.rpartition(":")[2]) if has_tag else (name, "latest")
    try:
        for record in client.api.pull(repository, tag=digest or tag, stream=True, decode=True):
            if "error" in record:
                raise explain(str(record["error"]), reference)
    except DockerException as error:
        raise explain(text_of(error), reference) from error
