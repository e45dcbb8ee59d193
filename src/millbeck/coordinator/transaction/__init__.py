"""Transaction coordinator: producers of transactional ids and the state of their transactions."""
