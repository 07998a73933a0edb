"""The daemon's settings: a TOML file in, checked `Settings` or diagnostics out."""
