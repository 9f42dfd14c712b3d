"""What suffix.Dockerfile adds to vLLM's image, built on a small base: the suffix tree drafts, without any plugin."""

from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

FOLDER = Path(__file__).parents[2] / "containers" / "vllm"
# As vllm/v1/spec_decode/suffix_decoding.py calls it.
DRAFT = """
import arctic_inference, importlib.metadata, numpy
from arctic_inference.suffix_decoding import SuffixDecodingCache
cache = SuffixDecodingCache(max_tree_depth=24, max_cached_requests=100)
cache.start_request("a", numpy.array([1, 2, 3, 4, 5, 6, 7, 1, 2], dtype=numpy.int32))
cache.add_active_response("a", [3])
pattern = numpy.array([1, 2, 3], dtype=numpy.int32)
print(cache.speculate("a", pattern, max_spec_tokens=3, max_spec_factor=2.0, min_token_prob=0.1).token_ids)
print([e.name for e in importlib.metadata.entry_points(group="vllm.general_plugins")])
"""


@pytest.fixture(scope="module")
def base_with_numpy(engine, base_image, tmp_path_factory):
    """vLLM's image has NumPy; the small base gets it."""
    folder = tmp_path_factory.mktemp("base")
    install = "python3 -m pip --version >/dev/null 2>&1 && python3 -m pip install -q numpy || "
    install += "{ apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-numpy; }"
    (folder / "Dockerfile").write_text(f"FROM {base_image}\nRUN {install}\n", encoding="utf-8")
    engine.images.build(path=str(folder), tag="specdec-ci/numpy-base:local", rm=True)
    return "specdec-ci/numpy-base:local"


def test_the_suffix_tree_is_compiled_and_drafts_without_arctics_plugin(engine, base_with_numpy):
    image, _ = engine.images.build(
        path=str(FOLDER),
        dockerfile="suffix.Dockerfile",
        tag="specdec-lab/vllm-suffix:test",
        buildargs={"BASE_IMAGE": base_with_numpy},
        rm=True,
    )
    said = engine.containers.run(image, ["python3", "-c", DRAFT], remove=True, entrypoint="")
    assert said.decode().splitlines() == ["[4, 5, 6]", "[]"]
