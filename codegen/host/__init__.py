"""The host's part of a call: kernels in order, temporaries, parameters."""
