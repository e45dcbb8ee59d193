"""Record batches: header, records, codecs, checksums, control records and the validation pass. Pure."""
