"""TensorFlow 1 for programs and notebooks: the runner, and what TensorFlow has removed."""
