"""What passes ask of a program: who uses what, which threads meet, where a definition can be placed."""
