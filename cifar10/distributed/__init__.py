"""Training by several processes: the cluster, and the exchange of gradients or weights."""
