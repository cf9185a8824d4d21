"""The tutorial's own two modules, and programs that were written against them, run as printed."""
