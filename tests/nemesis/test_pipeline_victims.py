"""Driver, Java and workers are told apart by who started whom; the keeper and strangers are no victims."""

from __future__ import annotations

import os
import subprocess
import sys

from nemesis.pipeline_victims import DRIVER, JAVA, WORKER, Process, is_running, processes, victims


def test_victims_by_kind() -> None:
    running = {
        process.process_id: process
        for process in (
            Process(1, 0, 0, "init"),
            Process(10, 1, 0, "python keeper"),
            Process(11, 10, 0, "python driver"),
            Process(12, 11, 0, "java org.apache.spark.deploy.SparkSubmit"),
            Process(13, 12, 0, "python -m pyspark.daemon"),
            Process(14, 13, 0, "python -m pyspark.daemon"),
            Process(15, 12, 0, "python -m pyspark.sql.streaming.python_streaming_source_runner"),
            Process(16, 11, 0, "sh"),
            Process(20, 1, 0, "java org.apache.spark.deploy.SparkSubmit"),
        )
    }
    found = victims(10, running)
    assert {kind: sorted(each.process_id for each in found[kind]) for kind in found} == {
        DRIVER: [11],
        JAVA: [12],
        WORKER: [13, 14, 15],
    }


def test_processes_that_run_and_have_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = processes()[process.pid]
        assert found.parent_id == os.getpid()
        assert is_running(found)
        assert not is_running(found._replace(started=found.started + 1))
        process.kill()
        # It has ended, though nobody has asked how yet.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(found)
        assert process.pid not in processes()
    finally:
        process.kill()
        process.wait()
