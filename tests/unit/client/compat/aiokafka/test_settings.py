"""aiokafka's arguments as Kafka's settings, its errors, its contexts and its names."""

from __future__ import annotations

import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from millbeck.client.compat.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, errors
from millbeck.client.compat.aiokafka.errors import translated
from millbeck.client.compat.aiokafka.settings import COMMON, arguments, common_settings
from millbeck.client.compat.aiokafka.tls_contexts import create_ssl_context, settings_of
from millbeck.client.errors import ClientClosed, NoBrokerReachable, NoOffsetForPartition, RequestTimeout
from millbeck.kernel import errors as kernel
from millbeck.kernel.errors import ApiError


def settings(**given: Any) -> dict[str, Any]:
    return common_settings(arguments("Client", COMMON, given))


def test_servers_may_lack_a_port_and_be_a_list() -> None:
    assert settings()["bootstrap.servers"] == "localhost:9092"
    assert settings(bootstrap_servers=["a", "b:1", "[::1]", "[::1]:2"])["bootstrap.servers"] == (
        "a:9092,b:1,[::1]:9092,[::1]:2"
    )


def test_unknown_arguments_are_refused_as_by_a_signature() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'group'"):
        AIOKafkaConsumer("t", group="g")


def test_logins_are_translated_or_refused() -> None:
    given = settings(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username="u",
        sasl_plain_password="p",
    )
    assert (given["sasl.mechanism"], given["sasl.username"], given["sasl.password"]) == ("SCRAM-SHA-256", "u", "p")
    with pytest.raises(errors.KafkaConfigurationError, match="GSSAPI"):
        settings(security_protocol="SASL_SSL", sasl_mechanism="GSSAPI")
    with pytest.raises(errors.KafkaConfigurationError, match="token_provider"):
        settings(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=object())


PRODUCERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "default": ({}, {"acks": "1", "enable_idempotence": False, "max_in_flight": 1, "delivery_timeout_ms": 40_000}),
    "idempotent": ({"enable_idempotence": True}, {"acks": "all", "enable_idempotence": True, "max_in_flight": 5}),
    "all": ({"acks": -1, "compression_type": "gzip"}, {"acks": "all", "compression_type": "gzip"}),
    "transactions": ({"transactional_id": "t"}, {"acks": "all", "transactional_id": "t", "enable_idempotence": True}),
    "batches": ({"max_batch_size": 1000, "linger_ms": 5}, {"batch_size": 1000, "linger_ms": 5}),
}


@pytest.mark.parametrize(("given", "expected"), PRODUCERS.values(), ids=PRODUCERS.keys())
def test_a_producer_has_the_settings_that_aiokafka_has(given: dict[str, Any], expected: dict[str, Any]) -> None:
    config = AIOKafkaProducer(**given)._producer.config
    assert {name: getattr(config, name) for name in expected} == expected


def test_a_consumer_has_the_settings_that_aiokafka_has() -> None:
    config = AIOKafkaConsumer("t", group_id="g", auto_offset_reset="earliest")._consumer.config
    assert (config.session_timeout_ms, config.assignors, config.enable_auto_commit) == (10_000, ("roundrobin",), True)
    assert config.auto_offset_reset == "earliest"
    assert not AIOKafkaConsumer("t")._consumer.config.enable_auto_commit


TRANSLATED: dict[str, tuple[ApiError, type[Exception]]] = {
    "unreachable": (NoBrokerReachable("x"), errors.KafkaConnectionError),
    "late": (RequestTimeout("x"), errors.KafkaTimeoutError),
    "closed": (ClientClosed("x"), errors.ConsumerStoppedError),
    "no offset": (NoOffsetForPartition("x"), errors.NoOffsetForPartitionError),
    "fenced": (kernel.ProducerFenced("x"), errors.ProducerFenced),
    "by code": (kernel.TopicAuthorizationFailed("x"), errors.TopicAuthorizationFailedError),
    "unknown code": (kernel.UnsupportedEndpointType("x"), errors.UnknownError),
}


@pytest.mark.parametrize(("own", "other"), TRANSLATED.values(), ids=TRANSLATED.keys())
def test_errors_have_aiokafka_s_classes(own: ApiError, other: type[Exception]) -> None:
    found = translated(own)
    assert type(found) is other
    assert "x" in str(found) or other is errors.ConsumerStoppedError


def test_error_classes_know_their_codes() -> None:
    assert errors.for_code(36) is errors.TopicAlreadyExistsError
    assert (errors.NotLeaderForPartitionError.errno, errors.NotLeaderForPartitionError.retriable) == (6, True)
    assert errors.for_code(9999) is errors.UnknownError
    assert issubclass(errors.UnknownError, errors.KafkaError)


def test_a_context_remembers_its_files(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("me").private_key_and_cert_chain_pem.write_to_path(tmp_path / "me.pem")
    context = create_ssl_context(cafile=tmp_path / "ca.pem", certfile=str(tmp_path / "me.pem"))
    assert settings_of(context) == {
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "me.pem"),
    }
    given = settings(security_protocol="SSL", ssl_context=context)
    assert given["ssl.ca.location"] == str(tmp_path / "ca.pem")
    other = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    other.check_hostname = False
    assert settings_of(other)["ssl.endpoint.identification.algorithm"] == ""
    assert settings_of(other)["ssl.ca.pem"].count("BEGIN CERTIFICATE") == 1
    other.verify_mode = ssl.CERT_NONE
    with pytest.raises(ValueError, match="does not verify"):
        settings_of(other)
    with pytest.raises(ValueError, match="capath"):
        create_ssl_context(capath=str(tmp_path))


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_libraries_that_import_aiokafka_get_these_classes() -> None:
    done = run_python(
        "from millbeck.client.compat import aiokafka as ours\n"
        "ours.install(); ours.install()\n"
        "import aiokafka, aiokafka.admin\n"
        "from importlib.util import find_spec\n"
        "from aiokafka.errors import KafkaError\n"
        "from aiokafka.helpers import create_ssl_context\n"
        "from aiokafka.structs import TopicPartition\n"
        "from aiokafka.admin.client import AIOKafkaAdminClient\n"
        "from aiokafka.producer.producer import _missing\n"
        "from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor\n"
        "assert aiokafka.AIOKafkaProducer is ours.AIOKafkaProducer\n"
        "assert aiokafka.admin.client.AIOKafkaAdminClient is AIOKafkaAdminClient\n"
        "assert aiokafka.errors.KafkaError is KafkaError\n"
        "assert find_spec('aiokafka') is not None\n"
    )
    assert done.returncode == 0, done.stderr


def test_installing_after_aiokafka_itself_is_an_error() -> None:
    done = run_python(
        "import sys, types\n"
        "sys.modules['aiokafka'] = types.ModuleType('aiokafka')\n"
        "from millbeck.client.compat import aiokafka\n"
        "aiokafka.install()\n"
    )
    assert "call install() before" in done.stderr
