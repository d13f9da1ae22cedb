"""The private attributes of JAX that the frontend uses."""
