"""The tutorial's two modules, and the runner of programs that were written for them."""
