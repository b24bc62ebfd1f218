"""Choose the weights of the side tables by what they predict."""
