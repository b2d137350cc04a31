"""The papers' questions to a study, as functions from the results table to small tables."""
