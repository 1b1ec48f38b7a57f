"""What converters to other frameworks share. Nothing here imports a framework; docs/adding-a-converter.md explains
how the parts go together."""
