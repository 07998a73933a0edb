"""The decision log: what happened, on disk, so that what was altered, added or taken away afterwards is noticed."""
