"""One job of the workflow: all cells of one mode and replicate, from the store where they were measured before, else on
one fresh server (M19, B6). Nothing here judges.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from .. import checkpoints, engines, prompts
from ..asked import FAILURE
from ..checkpoints import Checkpoint
from ..checkpoints.compatibility import require_compatible
from ..engines.base import Engine
from ..job import say
from ..launchers import images
from ..quantities import goodput
from ..records.cell import Cell
from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.session import ServerLifetime, Session
from ..records.spec import CellSpec, SessionSpec
from . import failing, ground
from .guard import Guard
from .lifetime import Job, MissingCell, measure
from .store import Store, cell_key
from .store import folder as store_folder


def run(spec: str, *, mode: str, replicate: int, folder: Path, prompts_file: Path, places: int) -> Session:
    """Make every file of one session.

    `spec` is the canonical text that the workflow passed; `folder` gets the cells, session.json, server.log and
    metrics.prom; `places` is what Snakemake granted of the resource `gpu` (it grants less than asked without a word).
    UserError for whatever can be mended; what was measured until then is in the store.
    """
    asked = json.loads(spec)
    session = SessionSpec.model_validate(asked["session"])
    cells = [CellSpec.model_validate(cell) for cell in asked["cells"]]
    if places < max(1, session.server.gpus):
        raise UserError(
            f"Mode {mode} needs {session.server.gpus} GPUs, but the run grants {places}.",
            place="--resources gpu=...",
            fix=f"Run with --resources gpu={session.server.gpus} or more.",
            code="too_few_gpus",
        )
    engine = engines.get(session.server.engine)
    folder.mkdir(parents=True, exist_ok=True)
    # Whatever ends this try, it is not an earlier try's failure that is told of it.
    (folder / FAILURE).unlink(missing_ok=True)
    store = Store(store_folder())
    session = _with_image(session, folder)
    found = {role: checkpoints.fetch(one, say=say) for role, one in session.checkpoints.items()}
    wanted = _asked(mode, replicate, session, cells, prompts.load(prompts_file), engine, found)
    missing = [one for one in wanted if store.get(one.key) is None]
    say(f"{mode} r{replicate}: {len(wanted)} cells, {len(wanted) - len(missing)} of them measured before")
    if missing:
        job = Job(mode, replicate, session, engine, found, folder, store)
        with failing.recorded(job), Guard() as guard:
            require_compatible(session.server.speculative, found)
            measure(job, missing, guard, say)
    return _assemble(mode, replicate, session, wanted, folder, store, measured=len(missing))


def _with_image(session: SessionSpec, folder: Path) -> SessionSpec:
    """The session with the digest of its image, as the image's rule found it; it becomes part of every key (M9)."""
    server = session.server
    if server.launcher != "docker" or server.image is None or server.image_digest is not None:
        return session
    record = folder.parents[2] / "image.json"
    image = images.Image.read(record) if record.exists() else images.locked(server.image, images.LOCK, say=say)
    return session.model_copy(update={"server": server.model_copy(update={"image_digest": image.digest})})


def _asked(
    mode: str,
    replicate: int,
    session: SessionSpec,
    cells: Sequence[CellSpec],
    rows: Sequence[Prompt],
    engine: Engine,
    found: Mapping[str, Checkpoint],
) -> list[MissingCell]:
    out = []
    common = ground.common(session, engine, found)
    for cell in cells:
        chosen = prompts.select(rows, cell.kind, cell.requests)
        own = ground.of(common, chosen)
        key = cell_key(mode, replicate, session, cell, own)
        out.append(MissingCell(cell, chosen, key, ground.digests(own)))
    return out


def _assemble(
    mode: str,
    replicate: int,
    spec: SessionSpec,
    wanted: Sequence[MissingCell],
    folder: Path,
    store: Store,
    *,
    measured: int,
) -> Session:
    """Copy the cells out of the store, with the session they belong to now, and tell which lifetimes they come from."""
    lifetimes: dict[str, ServerLifetime] = {}
    for one in wanted:
        cell = store.get(one.key)
        if cell is None:
            raise UserError(
                f"The cell {one.spec.name} was measured but is no longer in the store.",
                place=str(store.path(one.key)),
                fix="Do not clear the store while a run is going on; start the run again.",
                code="store",
            )
        _write(cell, spec, folder)
        if cell.server not in lifetimes:
            lifetime = store.lifetime(cell.server)
            if lifetime is not None:
                lifetimes[cell.server] = lifetime
    for identity in lifetimes:
        _copy_evidence(store.lifetime_folder(identity), folder)
    _remove_others(wanted, folder)
    session = Session(
        mode=mode,
        replicate=replicate,
        spec=spec,
        cells={one.spec.name: one.key for one in wanted},
        lifetimes=sorted(lifetimes.values(), key=lambda lifetime: lifetime.started_at),
        measured=measured,
    )
    session.write(folder / "session.json")
    return session


def _remove_others(wanted: Sequence[MissingCell], folder: Path) -> None:
    """Cells that an earlier config asked for: they stay in the store, but are no part of this session any more."""
    names = {one.spec.name for one in wanted} | {"session"}
    for path in folder.glob("*.json"):
        if path.stem not in names:
            path.unlink()


def _write(cell: Cell, spec: SessionSpec, folder: Path) -> None:
    """The baseline's name or the objective may have changed since; neither changes what was measured, but how many
    requests met the objective is counted again."""
    summary = cell.summary.model_copy(update={"goodput": goodput(cell.rows, spec.objective)})
    cell.model_copy(update={"session": spec, "summary": summary}).write(folder / f"{cell.cell.name}.json")


def _copy_evidence(lifetime: Path, folder: Path) -> None:
    """Log and last counters of a lifetime; the newest keeps the plain name."""
    for name in ("server.log", "metrics.prom"):
        source = lifetime / name
        if source.exists():
            shutil.copyfile(source, folder / name)
