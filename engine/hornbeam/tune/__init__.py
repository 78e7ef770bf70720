"""Training an adapter for this engine's own questions: `hornbeam tune`."""
