"""Public homes of data sets, one module per source: where the files are and how they become a panel."""
