"""The tutorial's modules, for programs that import them."""
