"""A Flower app over a training file: client.py and server.py are what pyproject.toml names."""
