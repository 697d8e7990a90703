"""What the panel of an editor shows of rules, derivations and kernels, found out in a process of its own."""
