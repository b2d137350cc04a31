"""A user's own data: arrays, folders of images, functions."""
