"""What a local program is, without starting it (M10)."""

import sys

from specdec_lab.launchers import program


def test_packages_of_a_python_program_are_listed():
    found = program.packages(sys.executable)
    assert "pytest" in found


def test_a_script_names_its_interpreter_and_a_binary_none(tmp_path):
    script = tmp_path / "serve"
    script.write_text(f"#!{sys.executable}\nprint()\n")
    script.chmod(0o755)
    assert program.interpreter(str(script)) == sys.executable
    assert program.interpreter("/bin/ls") is None
    assert program.packages("/bin/ls") == {}


def test_the_version_is_that_of_the_package_or_the_digest_of_the_binary(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path))
    assert program.version(sys.executable, "no-such-thing", "pytest").startswith("pytest ")
    assert program.version("/bin/ls", "vllm").startswith("sha256 ")
    assert program.version("/no/such/program", "vllm") is None
