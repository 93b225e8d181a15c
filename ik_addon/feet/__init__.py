"""Contacts of feet and hands over a range of frames: finding, keying and planting them."""
