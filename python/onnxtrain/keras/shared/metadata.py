"""The place in a file where from_keras leaves what to_keras needs."""

KEY = "onnxtrain.keras"  # the JSON object of a file that came from Keras
