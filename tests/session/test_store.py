"""What was measured is kept under everything it depends on; nothing stale is taken, nothing torn believed (B6)."""

import json

import pytest
from tests.session.making import CELL, GROUND, SPEC, a_cell, a_server

from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, SessionSpec
from specdec_lab.session.store import Ground, Store, cell_key


def key(**changes) -> str:
    asked = {"mode": "ngram", "replicate": 1, "spec": SPEC, "cell": CELL, "ground": GROUND} | changes
    return cell_key(asked["mode"], asked["replicate"], asked["spec"], asked["cell"], asked["ground"])


def server(**changes) -> SessionSpec:
    return SPEC.model_copy(update={"server": SPEC.server.model_copy(update=changes)})


@pytest.mark.parametrize(
    "changed",
    [
        {"mode": "placebo"},
        {"replicate": 2},
        {"spec": server(args={"ctx-size": 4096})},
        {"spec": server(env={"X": "1"})},
        {"spec": server(speculative={"method": "ngram-simple", "ngram-simple-size-n": 5})},
        {"spec": server(version="2")},
        {"spec": server(gpus=2)},
        {"spec": SPEC.model_copy(update={"checkpoints": {"target": CheckpointSpec(path="other")}})},
        {"spec": SPEC.model_copy(update={"sampling": SPEC.sampling.model_copy(update={"temperature": 0.5})})},
        {"spec": SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"total_s": 9.0})})},
        {"cell": CELL.model_copy(update={"requests": 9})},
        {"cell": CELL.model_copy(update={"warmup": 9})},
        {"cell": CELL.model_copy(update={"max_tokens": 9})},
        {"cell": CELL.model_copy(update={"load": Load(concurrency=2)})},
        {"cell": CELL.model_copy(update={"load": Load(rate=2.0)})},
        {"cell": CELL.model_copy(update={"ignore_eos": True})},
        *({"ground": Ground(**{**vars(GROUND), name: "other"})} for name in vars(GROUND) if name != "checkpoints"),
        {"ground": Ground(**{**vars(GROUND), "checkpoints": {"target": "other"}})},
    ],
    ids=str,
)
def test_whatever_can_change_a_number_changes_the_key(changed):
    assert key(**changed) != key()


@pytest.mark.parametrize(
    "changed",
    [
        {"spec": SPEC.model_copy(update={"against": "other"})},
        {"spec": SPEC.model_copy(update={"placebo": True})},
        {"spec": server(ready_timeout_s=5.0)},
        {"spec": server(stop_timeout_s=5.0)},
        {"spec": SessionSpec.model_validate(dict(reversed(SPEC.model_dump().items())))},
    ],
    ids=str,
)
def test_what_changes_no_number_changes_no_key(changed):
    assert key(**changed) == key()


def test_the_key_is_the_same_on_every_machine_and_python():
    assert key() == "4c5c8798ac373d08a9d850f078be01aee65691f3761d6322091575cac851ca53"


def test_a_cell_comes_back_as_it_was_put(tmp_path):
    store = Store(tmp_path)
    cell = a_cell("a" * 64)
    assert store.get(cell.key) is None
    store.put(cell)
    assert Store(tmp_path).get(cell.key) == cell


def test_what_was_measured_first_stays(tmp_path):
    store = Store(tmp_path)
    store.put(a_cell("a" * 64, order=0))
    store.put(a_cell("a" * 64, order=5))
    found = store.get("a" * 64)
    assert found is not None
    assert found.order == 0


@pytest.mark.parametrize("damage", ["", "{", '{"schema_version": 1}', "half"])
def test_a_torn_file_is_set_aside_and_measured_again(tmp_path, damage):
    store = Store(tmp_path)
    path = store.put(a_cell("b" * 64))
    path.write_text(path.read_text()[:200] if damage == "half" else damage)
    assert store.get("b" * 64) is None
    assert [aside.exists() for aside in store.set_aside] == [True]
    store.put(a_cell("b" * 64))
    assert store.get("b" * 64) is not None


def test_a_cell_under_a_foreign_key_is_not_believed(tmp_path):
    store = Store(tmp_path)
    path = store.put(a_cell("c" * 64))
    other = store.path("d" * 64)
    other.parent.mkdir(parents=True)
    other.write_text(path.read_text())
    assert store.get("d" * 64) is None


def test_lifetimes_are_kept_beside_the_cells(tmp_path):
    store = Store(tmp_path)
    assert store.lifetime("x") is None
    store.put_lifetime(a_server("x"))
    assert store.lifetime("x") == a_server("x")
    assert json.loads((store.lifetime_folder("x") / "lifetime.json").read_text())["id"] == "x"


def test_the_key_of_the_same_cell_spec_written_twice_is_one():
    again = CellSpec.model_validate_json(CELL.model_dump_json())
    assert key(cell=again) == key()
