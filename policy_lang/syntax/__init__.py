"""From text to the syntax tree, in reading order: layout, tables, driver, tokens and what rules make, failures."""
