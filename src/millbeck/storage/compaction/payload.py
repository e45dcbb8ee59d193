"""The records of a batch as bytes, decompressed where needed, after its checksum was verified.

Compaction drops records and writes batches with new checksums; neither may be based on corrupt bytes, so every batch
whose records are examined is verified first.
"""

from __future__ import annotations

from millbeck.kernel.errors import CorruptMessage, InvalidRecord
from millbeck.records.batch import READ_LIMIT_BYTES
from millbeck.records.compression import Codec, decompress
from millbeck.records.crc import crc32c
from millbeck.records.header import CODEC_MASK, CRC_START, HEADER_SIZE
from millbeck.storage.compaction.job import UncleanableLog
from millbeck.storage.compaction.source_reader import SourceReader


def records_of(batch: SourceReader) -> bytes:
    """The records of the batch at the reader's position, as bytes. Raises `UncleanableLog`."""
    view = memoryview(batch.chunk)
    if crc32c(view[batch.start + CRC_START : batch.end]) != batch.crc:
        raise damaged(batch, "the checksum is wrong")
    number = batch.attributes & CODEC_MASK
    if not number:
        return batch.chunk[batch.start + HEADER_SIZE : batch.end]
    try:
        return decompress(Codec(number), view[batch.start + HEADER_SIZE : batch.end], READ_LIMIT_BYTES)
    except (InvalidRecord, CorruptMessage, ValueError) as error:
        raise damaged(batch, str(error)) from error


def damaged(batch: SourceReader, reason: str) -> UncleanableLog:
    return UncleanableLog(batch.source.path, batch.position, reason)
