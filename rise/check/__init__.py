"""The checker: from programs as written to typed expressions."""
