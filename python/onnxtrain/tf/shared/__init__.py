"""What both directions need: versions, element types, names."""
