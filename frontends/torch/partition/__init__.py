"""The partitioner that AOTAutograd calls: a joint graph is rewritten, proved equal and split into its two halves."""
