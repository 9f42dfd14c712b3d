"""Secrets are really found, and this field's own words are left alone (case E9)."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdec_lab.provenance.redact import REDACTED, is_secret_name, redact, redact_values, secret_values

SECRET = "hf_TESTSECRET123"
PLAIN = "correct-horse.battery/staple"

LEAKS = [
    "HF_TOKEN={}",
    "export HF_TOKEN='{}'",
    'HUGGING_FACE_HUB_TOKEN="{}"',
    "env HUGGINGFACE_TOKEN={} vllm serve",
    '"Env": ["PATH=/bin", "HF_TOKEN={}", "LANG=C"]',
    '{{"HF_TOKEN": "{}"}}',
    '{{\\"HF_TOKEN\\": \\"{}\\"}}',
    "{{'hf_token': '{}', 'model': 'm'}}",
    '{{"name": "HF_TOKEN", "value": "{}"}}',
    "non-default args: {{'model': 'm', 'hf_token': '{}', 'seed': 0}}",
    "Namespace(api_key=['{}'], port=8000)",
    "Namespace(api_key=['first-one', '{}'], port=8000)",
    "vllm serve m --api-key {} --port 8000",
    "vllm serve m --api-key={} --port 8000",
    "['vllm', 'serve', '--api-key', '{}', '--seed', '0']",
    "--hf-token {}",
    "OPENAI_API_KEY={}",
    "NGC_API_KEY: {}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "{{'Authorization': 'Bearer {}'}}",
    '"Authorization": "Bearer {}"',
    "('authorization', 'Bearer {}')",
    "curl -H 'Authorization: Bearer {}' http://127.0.0.1",
    "X-Api-Key: {}",
    "AWS_SECRET_ACCESS_KEY={}",
    "AWS_SESSION_TOKEN={}",
    "password: {}",
    "client_secret={}&grant=x",
    "?api_key={}&q=1",
    "Cookie: session={}",
]


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("secret", [SECRET, "Zx9-secret_value"])
def test_e9_a_secret_beside_its_name_is_removed(leak: str, secret: str) -> None:
    cleaned = redact(leak.format(secret))
    assert secret not in cleaned
    assert REDACTED in cleaned


@pytest.mark.parametrize(
    "shape",
    [
        SECRET,
        "hf_" + "aB3" * 11 + "x",
        "nvapi-" + "aB3_-" * 6,
        "sk-" + "aB3" * 10,
        "sk-proj-" + "aB3" * 10,
        "ghp_" + "aB3" * 12,
        "glpat-" + "aB3" * 7,
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    ],
)
def test_e9_what_looks_like_a_secret_is_removed_wherever_it_stands(shape: str) -> None:
    for text in (shape, f"OSError: cannot use {shape}: denied", f"/x/{shape}/y", f'"{shape}"', f"({shape})"):
        assert shape not in redact(text)


def test_e9_a_password_in_a_url_is_removed_and_the_host_stays() -> None:
    assert redact("http://me:s3cret@proxy.example:3128/x") == f"http://me:{REDACTED}@proxy.example:3128/x"


def test_e9_a_known_value_is_removed_in_every_form() -> None:
    known = 'pa ss"w/rd'
    text = f"{known} | pa%20ss%22w%2Frd | {json.dumps(known)} | x{known}x"
    cleaned = redact(text, [known])
    assert cleaned == f'{REDACTED} | {REDACTED} | "{REDACTED}" | x{REDACTED}x'


def test_e9_known_values_come_from_the_environment_by_name() -> None:
    environment = {
        "HF_TOKEN": PLAIN,
        "MY_API_KEY": PLAIN + "longer",
        "PATH": "/usr/bin:/bin",
        "X_TOKEN_COUNT": "123456",
    }
    assert secret_values(environment) == [PLAIN + "longer", PLAIN]
    assert redact(f"a {PLAIN}longer b {PLAIN}", secret_values(environment)) == f"a {REDACTED} b {REDACTED}"


HARMLESS = [
    "max_tokens=300 completion_tokens: 40 num_speculative_tokens=5",
    '{"max_tokens": 300, "usage": {"prompt_tokens": 12}, "token_ids": [1, 2]}',
    "eos_token='</s>' bos_token=<s> pad_token: None",
    "hf_token=None api_key=None, hf_overrides={} hf_config_path=None",
    "Successfully installed hf_transfer-0.1.9 hf_xet-1.5.0 huggingface_hub-1.2",
    "--max-num-batched-tokens 8192 --tokenizer m --enable-prompt-tokens-details",
    "vllm:spec_decode_num_accepted_tokens_total 274",
    "author: Ilse Brandt; keyword=value; monkey: banana",
    "http://127.0.0.1:8000/v1/chat/completions",
    "skipping task-based-scheduling-with-long-words",
    "prefix caching hash algo: sha256, tokens: 93184, secretary: yes",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_e9_this_fields_own_words_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("leak", LEAKS + HARMLESS)
def test_e9_doing_it_twice_changes_nothing(leak: str) -> None:
    once = redact(leak.format(SECRET) if leak in LEAKS else leak)
    assert redact(once) == once


@pytest.mark.parametrize("name", ["HF_TOKEN", "hf_token", "OPENAI_API_KEY", "--api-key", "HUGGING_FACE_HUB_TOKEN"])
def test_secret_names_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["max_tokens", "token", "PATH", "tokenizer", "keyboard", "eos_token"])
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=80))
def test_e9_any_text_around_a_token_leaves_no_token(around: str) -> None:
    assert SECRET not in redact(f"{around} {SECRET} {around}")


@pytest.mark.parametrize(
    "secret",
    [
        "hf_ABCDEFGH12345678",
        "nvapi-ABCDEFGH12345678abcd",
        "sk-proj-ABCDEFGH12345678abcd",
        "ghp_ABCDEFGH12345678abcdABCD",
        "github_pat_ABCDEFGH12345678abcdABCD",
        "glpat-ABCDEFGH12345678abcd",
        "AKIAABCDEFGH12345678",
        "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    ],
)
def test_every_shape_is_also_taken_out_of_measured_text(secret):
    assert redact_values(f"an answer with {secret} in it") == "an answer with [redacted] in it"


@pytest.mark.parametrize(
    "text",
    [
        "['--api-key', 'abcd efgh']",
        '["--hf-token", "abcd efgh"]',
        "{'hf_token': b'abcdefgh'}",
        "git clone https://abcdefgh@host/x.git",
    ],
)
def test_e9_no_part_of_a_secret_is_left_behind(text: str) -> None:
    said = redact(text)
    assert not any(part in said for part in ("abcd", "efgh"))
    assert redact(said) == said


def test_e9_a_user_of_a_url_is_no_secret() -> None:
    assert redact("ssh://git@host/x") == "ssh://git@host/x"


COLOURS = ["\x1b[32m", "\x1b[0;1;31m", "\\u001b[36m", "\\x1b[0m"]


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("secret", [SECRET, "abcd efgh", "Zx9-secret_value"])
@pytest.mark.parametrize(
    "line",
    [
        "{c}HF_TOKEN{c}={c}'{s}'{c} next",
        '{c}password{c}: {c}"{s}"{c}',
        "vllm {c}--api-key{c} {c}'{s}'{c} --port 8000",
        '{{{c}"hf_token"{c}: {c}"{s}"{c}, "model": "m"}}',
    ],
)
def test_e9_a_colour_code_between_name_and_value_hides_nothing(line: str, colour: str, secret: str) -> None:
    text = line.format(c=colour, s=secret)
    said = redact(text)
    assert secret not in said
    assert "efgh" not in said
    assert said == line.format(c=colour, s=REDACTED)
    assert redact(said) == said


@pytest.mark.parametrize("colour", COLOURS)
def test_e9_a_shape_behind_a_colour_code_is_seen(colour: str) -> None:
    assert redact(f"{colour}{SECRET}{colour}") == f"{colour}{REDACTED}{colour}"
    assert redact_values(f"{colour}{SECRET}{colour}") == f"{colour}{REDACTED}{colour}"


def test_e9_colours_of_a_text_without_secrets_stay() -> None:
    text = "".join(f"\x1b[{number}mword{number} " for number in range(20)) + "\x1b[0m"
    assert redact(text) == text


@pytest.mark.parametrize(
    ("line", "clean"),
    [
        (r'password="ab\"cd efgh" next=1', 'password="[redacted]" next=1'),
        (r'password="ab\\" next=1', 'password="[redacted]" next=1'),
        ("password='it\"s efgh' next=1", "password='[redacted]' next=1"),
        ('password="it\'s efgh" next=1', 'password="[redacted]" next=1'),
        (r"--password 'ab\'cd efgh' --next", "--password '[redacted]' --next"),
        (r"{\"password\": \"ab\\\"cd efgh\", \"next\": 1}", r"{\"password\": \"[redacted]\", \"next\": 1}"),
        (r'{"name": "HF_TOKEN", "value": "ab\"cd efgh"}', '{"name": "HF_TOKEN", "value": "[redacted]"}'),
    ],
)
def test_e9_a_quote_within_a_quoted_secret_does_not_end_it(line: str, clean: str) -> None:
    assert redact(line) == clean
    assert redact(clean) == clean


@pytest.mark.parametrize("word", ["a-", "api_key_", "--", "\x1b[0m", 'password="\\"', "x://a"])
def test_e9_a_long_line_takes_no_more_than_its_length(word: str) -> None:
    def seconds(times: int) -> float:
        start = time.process_time()
        redact(word * times)
        return time.process_time() - start

    assert seconds(20000) < 0.5 + 20 * seconds(4000)
