"""Training by several processes: who they are, how they meet, how their gradients or weights come
together."""
