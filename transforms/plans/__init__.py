"""Apply plans: insert copies into the program, and convert between marks and the notes of plan files."""
