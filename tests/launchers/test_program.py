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
