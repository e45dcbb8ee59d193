"""Record batches: header, records, compression codecs, checksums, control records and validation. No I/O."""
