"""What every page this package writes is made of: one shell, one style, and the texts of the pages."""
