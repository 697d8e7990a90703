"""The imperative program: nodes, buffers, fragments, sizes, identifiers, launch parameters."""
