"""What a reader gets beyond the pages: the whole site or none, downloads, formulas, accessibility, links."""
