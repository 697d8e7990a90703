"""Printed CUDA on the CPU: the emulator, its headers, and how many steps a kernel may take."""
