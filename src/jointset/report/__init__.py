"""What a user looks at: figures and a page that needs no network."""
