"""Printed CUDA on the CPU: the emulator, its headers, and the number of steps that a kernel may take."""
