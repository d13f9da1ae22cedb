"""What modules go through before and beside the passes: steps inside blocks, repeatable calls, memory timelines."""
