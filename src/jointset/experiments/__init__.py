"""Methods run through the cells of a benchmark, as its protocols say."""
