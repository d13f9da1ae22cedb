"""Elements of tensors, and constants as bytes: the storage, the conversions and the text of dense literals."""
