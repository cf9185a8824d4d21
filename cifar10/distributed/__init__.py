"""Training by several processes.

Who they are, how they meet, how their gradients or weights come together.
"""
