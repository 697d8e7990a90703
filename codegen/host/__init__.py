"""What the host does for one call: kernels in order, temporaries, parameters."""
