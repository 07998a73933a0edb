"""The canonical layout: docs (text with places where it may break), and what of the tree is printed how."""
