"""Names by which programs reach PyTorch's ahead-of-time autograd: graphs of forward and backward, for compilers of their own."""
