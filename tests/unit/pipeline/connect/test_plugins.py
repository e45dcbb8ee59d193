"""What is installed besides the package itself is imported by the plugin that needs it."""

from __future__ import annotations

import subprocess
import sys

EXTRAS = ("google.protobuf", "fastavro", "jsonschema_rs", "obstore", "pyarrow", "psycopg", "pymysql", "pyspark")


def test_plugins_are_listed_without_the_extras() -> None:
    program = (
        "import sys\n"
        "from millbeck.pipeline.connect.plugins import PluginKind, listed_plugins\n"
        "assert listed_plugins(PluginKind.CONVERTER)\n"
        f"print([name for name in {EXTRAS!r} if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
