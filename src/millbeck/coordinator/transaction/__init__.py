"""The transaction coordinator: who may write under a transactional id, and what becomes of its transactions."""
