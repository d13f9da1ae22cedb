"""The partitioner that AOTAutograd calls: it rewrites a joint graph, proves it equal, and splits it in two halves."""
