"""The partitioner that AOTAutograd calls: it rewrites a joint graph, proves it equal, and splits it into two halves."""
