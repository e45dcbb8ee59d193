from __future__ import annotations

import click
import pytest

from millbeck.cli.sizes import ByteSizeType


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("50000000", 50_000_000),
        ("10KB", 10_000),
        ("10kb", 10_000),
        ("10K", 10_000),
        ("10KiB", 10_240),
        ("10 B", 10),
        ("2MB", 2_000_000),
        ("3Gi", 3 << 30),
        ("1TB", 10**12),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert ByteSizeType().convert(text, None, None) == size


@pytest.mark.parametrize("text", ["", "KB", "-1", "1.5MB", "10XB", "0", "0KB", "7iB", "1e6"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        ByteSizeType().convert(text, None, None)
