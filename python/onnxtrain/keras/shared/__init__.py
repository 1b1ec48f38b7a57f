"""What both directions between Keras and a file need."""
