"""From solutions to the channels of pose bones."""
