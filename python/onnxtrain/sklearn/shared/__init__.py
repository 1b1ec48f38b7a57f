"""What both directions need: the classes that are known, an estimator as JSON, names of state variables, versions."""
