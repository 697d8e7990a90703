"""The imperative IR: nodes, buffers, fragments, sizes, identifiers, launch parameters."""
