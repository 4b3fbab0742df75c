"""A solver process is warm soon: what OR-Tools imports beside itself is left out."""

import subprocess
import sys


def test_the_solver_does_without_pandas_and_hides_it_from_nobody() -> None:
    script = (
        "import sys; import moorage.solver.cpsat as solver; print('pandas' in sys.modules);"
        "import pandas; print(pandas.Series([7]).sum(), solver.cp_model.CpModel().name == '')"
    )
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False
    )
    assert told.stdout.split() == ["False", "7", "True"], told.stderr
