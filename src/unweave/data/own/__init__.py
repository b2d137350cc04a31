"""A user's data: arrays, folders of images, functions."""
