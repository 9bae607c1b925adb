"""What moves between machines, per engine: the units of a copy and the bytes of a whole request."""
