# vLLM with suffix decoding: the official image and the suffix tree of Arctic Inference, which that image does not have.
#
#   docker build -f containers/vllm/suffix.Dockerfile -t specdec-lab/vllm-suffix:v0.33.0 containers/vllm
#
# The package exists as source only, and its own build wants an old PyTorch beside the one in the image. Suffix decoding
# needs none of that: one extension is compiled, and the package around it stays empty, so that its vLLM plugin (which
# patches the engine) is never loaded. Baselines must run in this same image, or the two differ in more than speculation.
ARG BASE_IMAGE=vllm/vllm-openai:v0.33.0

FROM ${BASE_IMAGE} AS built
# The official image has both, because it compiles kernels as it runs; it does not promise them.
RUN command -v g++ >/dev/null && test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" \
    || { apt-get update -qq && apt-get install -y -qq --no-install-recommends g++ python3-dev && rm -rf /var/lib/apt/lists/*; }
COPY fetch_sdist.py /
RUN python3 /fetch_sdist.py arctic-inference 0.1.1 \
        36857e2fbe3ead34821a04be98dfab95086050c1e38199c8fdfe308234fdcf63 /source.tar.gz \
    && python3 -m venv /tools \
    && /tools/bin/pip install --no-cache-dir --disable-pip-version-check cmake==3.31.10 ninja==1.13.0 nanobind==2.9.2
RUN mkdir /work && tar -C /work --strip-components=1 -xzf /source.tar.gz \
    && export PATH="/tools/bin:$PATH" \
    && cmake -S /work/csrc/suffix_decoding -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DPython_EXECUTABLE=/tools/bin/python -Dnanobind_DIR="$(python -c 'import nanobind; print(nanobind.cmake_dir())')" \
    && cmake --build /build \
    && mkdir -p /package/arctic_inference/suffix_decoding \
    && cp /work/arctic_inference/suffix_decoding/*.py /build/_C*.so /package/arctic_inference/suffix_decoding/ \
    && : > /package/arctic_inference/__init__.py

FROM ${BASE_IMAGE}
COPY --from=built /package /opt/suffix
ENV PYTHONPATH=/opt/suffix
# What vLLM imports at the first draft: a fault shows here and not in a server's start.
RUN python3 -c "from arctic_inference.suffix_decoding import SuffixDecodingCache"
