"""Claims of the papers, each with what a study measured and a verdict by a stated rule; one module per paper."""
