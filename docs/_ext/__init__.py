"""The site's own code, one room a purpose: sessions, facts, pictures, errors, site."""
