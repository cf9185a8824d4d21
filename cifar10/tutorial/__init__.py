"""The tutorial's two modules, and the runner for its programs."""
