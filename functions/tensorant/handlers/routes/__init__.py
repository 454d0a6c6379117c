"""The routes of the user API, one module a subject."""
