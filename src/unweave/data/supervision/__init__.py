"""What is given beside the images: labels, pairs, labelled subsets, correlated factors."""
